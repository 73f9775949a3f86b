"""The stream of reports and an answer."""

import asyncio
import base64

import orjson

from beckon_contract.cloudevents.events import from_http, to_structured
from beckon_contract.cloudevents.extensions import FIRST_REPORTS
from beckon_runtime.http_messages import Answer, Piece, Respond
from beckon_runtime.posts import RawHeader
from beckon_shim.messages import WireEvent

_STREAM = b"text/event-stream"
_HEADERS: list[RawHeader] = [(b"content-type", _STREAM), (b"cache-control", b"no-store")]
_EVERY = 0.1  # seconds between two later reports to a caller; of those between them the last is sent
_ENDS = {200: b"reply", 202: b"accepted"}


def wants_reports(headers: list[RawHeader]) -> bool:
    """Return True if a caller accepts event streams by name. `*/*` is not enough."""
    return any(
        kind.split(b";", maxsplit=1)[0].strip().lower() == _STREAM
        for name, value in headers
        if name == b"accept"
        for kind in value.split(b",")
    )


class ProgressStream:
    """The answer to one call: whole, or a stream from the first report on."""

    __slots__ = ("_loop", "_newest", "_respond", "_sent", "_timer", "receipt")

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._loop = asyncio.get_running_loop()
        self.receipt: RawHeader | None = None
        self._sent = 0
        self._newest: WireEvent | None = None
        self._timer: asyncio.TimerHandle | None = None

    def report(self, event: WireEvent) -> None:
        """Send a report now, or shortly after the previous one if it is none of the first."""
        self._newest = event
        if self._timer is None or self._sent < FIRST_REPORTS:
            self._send()

    def end(self, answer: Answer) -> None:
        """Send the answer, after the last report."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._sent:
            self._respond(answer)
            return
        last = b"" if self._newest is None else _progress(self._newest)
        self._respond(Piece(_HEADERS, last + _end(answer), answer))

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._newest is None:
            return
        event, self._newest = self._newest, None
        self._sent += 1
        self._timer = self._loop.call_later(_EVERY, self._send)
        headers = _HEADERS if self.receipt is None else [*_HEADERS, self.receipt]
        self._respond(Piece(headers, _progress(event)))


def _progress(event: WireEvent) -> bytes:
    return _framed(b"progress", _document(event.headers(), event.body))


def _end(answer: Answer) -> bytes:
    name = _ENDS.get(answer.status)
    if name is None:
        return _framed(b"problem", answer.body)
    return _framed(name, _document(answer.headers, answer.body))


def _framed(name: bytes, line: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, line)


def _document(headers: list[RawHeader], body: bytes) -> bytes:
    """Return an event in one line of JSON. Its data is preserved byte for byte."""
    event = from_http(headers, body)
    _, document = to_structured(event)
    if b"\n" not in document and b"\r" not in document:
        return document
    return orjson.dumps({**event.attributes(), "data_base64": base64.b64encode(body).decode()})
