"""The calls: the same events for both sides, each answer checked."""

from collections.abc import Callable
from itertools import count

from bench.shim.load import Unit
from bench.shim.wire import Pool, request

_TEXT = "x" * 260
_serial = count(1)


def headers(kind: str, *, wait: int = 30, identity: str | None = None) -> list[tuple[str, str]]:
    """Return a call's headers; no colon in the id, which RequestReply cannot match."""
    return [
        ("ce-specversion", "1.0"),
        ("ce-id", identity or f"call-{next(_serial)}"),
        ("ce-source", "/bench"),
        ("ce-type", kind),
        ("ce-time", "2026-01-31T09:30:00Z"),
        ("ce-traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("prefer", f"wait={wait}"),
        ("content-type", "application/json"),
    ]


def echoes(pool: Pool, path: str) -> Unit:
    """Return a unit that is one call, answered with its own data."""

    def unit(done: Callable[[bool], None]) -> None:
        body = b'{"serial":%d,"text":"%s"}' % (next(_serial), _TEXT.encode())
        message = request(path, headers("bench.echo"), body)
        pool.send(message, lambda status, got: done(status == 200 and got == body))

    return unit
