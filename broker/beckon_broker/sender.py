"""The HTTP client for subscribers, dead-letter sinks and inboxes, and the meaning of their answers."""

import math
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http, is_event
from beckon_contract.knative.delivery import is_retriable
from beckon_contract.retry_after import read_retry_after
from beckon_runtime.post_client import IDLE_SECONDS, PostClient
from beckon_runtime.posts import Ack, RawHeader, Target

MAX_DATA_BYTES = 768
"""The bytes of an answer in a dead letter: 1024 characters in Base64, Knative's bound."""

NO_ANSWER = 500
"""The value of `knativeerrorcode` where there was no HTTP answer, as in Knative."""

_UNRECOGNISED = 502
_DELAYING = frozenset({429, 503})
# Other client errors refuse a request; these may come half-way: time-outs, conflicts and busy services.
_MAY_HAVE_BEGUN = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt: code and data for a dead letter, and retriability.

    `retry_after` is the delay requested by the subscriber, in seconds, 0 without such a request. `begun` is
    false if the subscriber cannot have begun its work. `asks_again` is true if it asks for the event again
    (429, or 503 with Retry-After).
    """

    code: int
    data: bytes
    retriable: bool
    retry_after: float = 0.0
    begun: bool = True
    asks_again: bool = False


def read_answer(answer: Ack) -> CloudEvent | FailedAttempt | None:
    """Return the reply in a subscriber's answer, or the failure. `None` is a success without a reply."""
    if not 200 <= answer.status < 300:
        return _refused(answer)
    if not answer.body and not is_event(answer.headers):
        return None
    if not answer.complete:
        return _unusable(answer, f"its body exceeds the limit of {len(answer.body)} bytes")
    if answer.header(b"content-encoding").lower() not in {"", "identity"}:
        return _unusable(answer, "its body is compressed, which was not requested")
    if not is_event(answer.headers):
        return _unusable(answer, "its body is not a CloudEvent; answer with one or with an empty body")
    try:
        return from_http(answer.headers, answer.body, relayed=True)
    except EventError as error:
        return _unusable(answer, str(error))


def read_any_answer(answer: Ack, call: CloudEvent, source: str) -> CloudEvent | FailedAttempt | None:
    """Return the reply in an answer as `read_answer` does; an answer that is no event is a reply, too.

    Its body becomes the data of the reply, whose type is that of the call with `.reply` behind it.
    """
    if not 200 <= answer.status < 300 or is_event(answer.headers) or not answer.complete:
        return read_answer(answer)
    content_type = answer.header(b"content-type") or "application/octet-stream"
    try:
        return CloudEvent(
            id=str(uuid4()),
            source=source,
            type=f"{call.type}.reply",
            data=answer.body or None,
            datacontenttype=content_type if answer.body else None,
            subject=call.subject,
        )
    except EventError as error:
        return _unusable(answer, str(error))


def read_dead_letter_answer(answer: Ack) -> FailedAttempt | None:
    """Return the failure in a dead-letter sink's answer, or `None`. A reply of the sink is dropped."""
    return None if 200 <= answer.status < 300 else _refused(answer)


def _refused(answer: Ack) -> FailedAttempt:
    if not answer.status:
        error = f"dispatch error: {answer.error}".encode()
        return FailedAttempt(NO_ANSWER, error, retriable=True, begun=answer.sent)
    delay = read_retry_after(answer.retry_after) if answer.status in _DELAYING else None
    may_have_begun = not 400 <= answer.status < 500 or answer.status in _MAY_HAVE_BEGUN
    asks_again = answer.status == 429 or (answer.status == 503 and bool(answer.retry_after))
    data = answer.body[:MAX_DATA_BYTES]  # more is not kept while a delivery waits for its next attempt
    return FailedAttempt(
        answer.status, data, is_retriable(answer.status), delay or 0.0, may_have_begun, asks_again
    )


def _unusable(answer: Ack, why: str) -> FailedAttempt:
    message = f"the answer {answer.status} cannot be used as a reply: {why}"
    return FailedAttempt(_UNRECOGNISED, message.encode(), retriable=False)


# Below the 5 s after which uvicorn and Node close an idle connection, with the second in which it is noticed:
# a POST on a connection that the other side has just closed is lost.
_IDLE_SECONDS = 3.0
_OWN_HEADERS = [(b"user-agent", b"beckon-broker"), (b"accept", b"*/*"), (b"accept-encoding", b"identity")]

Headers = list[tuple[str, str]]


class Post(Protocol):
    """Sends one request and returns its answer of any status."""

    async def __call__(self, url: str, headers: Headers, body: bytes, timeout: float) -> Ack:
        """POST these bytes; `timeout` is the seconds until the answer is complete."""
        ...


class Sender:
    """Posts to subscribers, dead-letter sinks and inboxes; the dispatcher limits the deliveries in progress.

    Of an answer's body `max_answer_bytes` are read. With `repeats` a post whose kept-alive connection breaks
    goes out once more: its receiver must recognise a second delivery.
    """

    def __init__(self, max_answer_bytes: int, *, repeats: bool = False) -> None:
        idle_seconds = IDLE_SECONDS if repeats else _IDLE_SECONDS
        # Each post has a time limit of its own.
        self._client = PostClient(
            math.inf, repeats=repeats, idle_seconds=idle_seconds, longest_body=max_answer_bytes
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def post(self, url: str, headers: Headers, body: bytes, timeout: float) -> Ack:
        """POST these bytes and read the answer up to the limit; redirects are answers, too."""
        try:
            return await self._client.deliver(Target(url), _OWN_HEADERS + _raw(headers), body, timeout)
        except ValueError as error:
            return Ack(0, f"the address {url!r} cannot be used: {error}", sent=False)


def _raw(headers: Headers) -> list[RawHeader]:
    """Return the bytes of headers. A value is UTF-8 where Latin-1, the encoding of HTTP, has no character."""
    try:
        return [(name.encode(), value.encode("latin-1")) for name, value in headers]
    except UnicodeEncodeError:
        return [(name.encode(), value.encode()) for name, value in headers]
