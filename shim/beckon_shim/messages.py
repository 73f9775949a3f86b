"""Messages: requests and answers of HTTP, events on the wire, and acknowledgements."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from beckon_contract.cloudevents.events import from_http, to_binary
from beckon_contract.cloudevents.extensions import is_media_type, is_timestamp
from beckon_runtime.posts import RawHeader
from beckon_runtime.problem import MEDIA_TYPE, Problem


@dataclass(slots=True)
class Request:
    """One complete HTTP request. The names of headers are lower case, and the path is without its query."""

    method: str
    path: str
    headers: list[RawHeader]
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer, and its outcome label for the metrics."""

    status: int
    headers: list[RawHeader]
    body: bytes
    outcome: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer with an open end.

    The headers count only in the first piece. If a client reads too slowly, a piece is replaced by the next.
    The last one is always sent: `whole` is what the answer would have been without any piece before it.
    """

    headers: list[RawHeader]
    body: bytes
    whole: Answer | None = None


Finish = Callable[[Answer], None]
Respond = Callable[[Answer | Piece], None]
HangUp = Callable[[], None]


class Handler(Protocol):
    """The interface between a server and its request handler."""

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Answer through `respond`, now or later.

        One call sends the whole answer, or several calls send the pieces of one answer. Returns a callback
        for a client that hangs up before the end.
        """

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit.

        The request does not have the whole body.
        """


def of_problem(problem: Problem, outcome: str, *extra: RawHeader) -> Answer:
    """Return the answer with a problem document (RFC 9457)."""
    return Answer(problem.status, [(b"content-type", MEDIA_TYPE.encode()), *extra], problem.body(), outcome)


_NAMES = re.compile(rb"(?:ce-[a-z0-9]+\n)+\Z")
_PLAIN = re.compile(rb"[ !#$&-~]*\Z")
_UNUSUAL = frozenset((b"ce-data", b"ce-datacontenttype"))


@dataclass(slots=True)
class WireEvent:
    """A valid event in binary mode: its ce- headers by name, its content type, its data."""

    attributes: dict[bytes, bytes]
    content_type: bytes
    body: bytes

    def headers(self) -> list[RawHeader]:
        """Return the headers of the event, in the order they came."""
        headers = list(self.attributes.items())
        if self.content_type:
            headers.append((b"content-type", self.content_type))
        return headers

    def text(self, name: bytes) -> str:
        """Return the header value of an attribute, "" if it is missing."""
        return self.attributes.get(name, b"").decode("latin-1")


def read(headers: list[RawHeader], body: bytes) -> WireEvent:
    """Return the event in an HTTP message of either mode; header names are lower case.

    Raises `EventError` that says what is wrong.
    """
    attributes: dict[bytes, bytes] = {}
    content_type = b""
    count = 0
    for name, value in headers:
        if name[:3] == b"ce-":
            attributes[name] = value
            count += 1
        elif name == b"content-type":
            content_type = value
    if count == len(attributes) and _is_usual(attributes, content_type):
        return WireEvent(attributes, content_type, body)
    return _read_with_care(headers, body)


def _is_usual(attributes: dict[bytes, bytes], content_type: bytes) -> bool:
    if content_type[:23].lower() == b"application/cloudevents":
        return False
    if not is_media_type(content_type.decode("latin-1") or None):
        return False
    if attributes.get(b"ce-specversion") != b"1.0":
        return False
    if not (attributes.get(b"ce-id") and attributes.get(b"ce-source") and attributes.get(b"ce-type")):
        return False
    values = attributes.values()
    if b"" in values or not _PLAIN.match(b"".join(values)) or not _UNUSUAL.isdisjoint(attributes):
        return False
    time = attributes.get(b"ce-time")
    if time is not None and not is_timestamp(time.decode("latin-1")):
        return False
    return _NAMES.match(b"\n".join(attributes) + b"\n") is not None


def _read_with_care(headers: list[RawHeader], body: bytes) -> WireEvent:
    event = from_http(headers, body)
    pairs, data = to_binary(event)
    attributes = {name.encode("latin-1"): value.encode("latin-1") for name, value in pairs}
    content_type = attributes.pop(b"content-type", b"")
    return WireEvent(attributes, content_type, data)
