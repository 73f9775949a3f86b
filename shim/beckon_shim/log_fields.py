"""The log fields of a call, to follow it through all services."""

from beckon_shim.messages import RawHeader

_LONGEST = 200  # characters of what a stranger wrote
_TRACE_ID, _SPAN_ID = slice(3, 35), slice(36, 52)  # of a traceparent
_NAMES = {b"x-request-id": "request_id", b"ce-id": "event_id"}

NOTED = frozenset((*_NAMES, b"traceparent"))
"""The headers that say it."""


def ids_in(headers: list[RawHeader]) -> dict[str, str]:
    """Return the log fields, named as in other services."""
    found: dict[str, str] = {}
    for name, value in headers:
        text = value[:_LONGEST].decode("latin-1")
        if name in _NAMES:
            found[_NAMES[name]] = text
        elif name == b"traceparent":
            found["trace_id"], found["span_id"] = text[_TRACE_ID], text[_SPAN_ID]
    return found
