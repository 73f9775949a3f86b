"""The state and the log fields shared by both sides of a call."""

from dataclasses import dataclass

from beckon_runtime.posts import RawHeader
from beckon_shim.receipts import Receipts
from beckon_shim.status import Metrics
from beckon_shim.tokens import Tokens
from beckon_shim.waiters import Waiters

_LONGEST = 200  # characters of what a stranger wrote
_TRACE_ID, _SPAN_ID = slice(3, 35), slice(36, 52)  # of a traceparent
_NAMES = {b"x-request-id": "request_id", b"ce-id": "event_id"}

NOTED = frozenset((*_NAMES, b"traceparent"))
"""The headers that say it."""


def ids_in(headers: list[RawHeader]) -> dict[str, str]:
    """Return the log fields, named as in other services."""
    ids: dict[str, str] = {}
    for name, value in headers:
        text = value[:_LONGEST].decode("latin-1")
        if name in _NAMES:
            ids[_NAMES[name]] = text
        elif name == b"traceparent":
            ids["trace_id"], ids["span_id"] = text[_TRACE_ID], text[_SPAN_ID]
    return ids


@dataclass(frozen=True, slots=True)
class Marks:
    """The headers of the token's attributes, on call and reply."""

    correlation: bytes
    reply: bytes

    @classmethod
    def of(cls, correlation: str, reply: str) -> "Marks":
        """Return the headers of these attributes."""
        return cls(b"ce-" + correlation.encode(), b"ce-" + reply.encode())


@dataclass(frozen=True, slots=True)
class Exchange:
    """The state between calls and replies."""

    waiters: Waiters
    tokens: Tokens
    marks: Marks
    metrics: Metrics
    receipts: Receipts
