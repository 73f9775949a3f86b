"""ASGI applications on uvicorn, with the check of Host and Origin and limits on connections.

uvicorn waits for ever for the rest of a request, takes headers of any size, and accepts connections until
the process has no files left. `server_config` is where every ASGI service gets its own limits.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from types import FrameType
from typing import Any, Literal

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from beckon_runtime.connections import ConnectionLimits, Connections
from beckon_runtime.origins import OriginPolicy, unclear_host
from beckon_runtime.problem import MEDIA_TYPE, Problem
from beckon_runtime.process import copies_of, stop_accepting

_BACKLOG = 4096
_HEAD_BYTES = 65_536
_REQUEST_ID = b"x-request-id"

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Application = Callable[
    [Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class OriginCheck:
    """An ASGI application behind the check of Host and Origin.

    Health and metrics are checked as well. Refusals are problem documents, even if the application's own
    errors have another form.
    """

    def __init__(self, app: Application, policy: OriginPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Serve one scope."""
        problem = self._refuse(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        logger.info("answered %d: %s", problem.status, problem.detail)
        body = problem.body()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *[pair for pair in scope["headers"] if pair[0] == _REQUEST_ID][:1],  # as the application would
        ]
        await send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refuse(self, scope: Scope) -> Problem | None:
        if scope.get("http_version") == "1.1" and not any(name == b"host" for name, _ in scope["headers"]):
            return unclear_host()  # RFC 9112, section 3.2
        return self._policy.refuse(scope["headers"])


class LimitedConfig(uvicorn.Config):
    """uvicorn's settings with the connections of their port."""

    connections: Connections


def server_config(
    app: Application,
    policy: OriginPolicy,
    limits: ConnectionLimits,
    *,
    lifespan: Literal["auto", "on", "off"] = "auto",
    closing_seconds: int | None = None,
    proxy_headers: bool = False,
) -> LimitedConfig:
    """Return uvicorn's settings for an application behind a policy, with these limits.

    `closing_seconds` is how long requests may go on once the server stops. With `proxy_headers` a
    proxy on this machine may name the scheme and the client (`X-Forwarded-…`).
    """
    config = LimitedConfig(
        OriginCheck(app, policy),
        http=LimitedProtocol,
        ws="none",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        proxy_headers=proxy_headers,
        server_header=False,
        backlog=_BACKLOG,
        # uvicorn's own timer would restart with every byte; `Connections` closes what is idle.
        timeout_keep_alive=max(1, round(limits.idle_seconds)),
        timeout_graceful_shutdown=closing_seconds,
    )
    config.connections = Connections(limits)
    return config


class DrainingServer(uvicorn.Server):
    """A server draining on SIGTERM or SIGINT before it stops.

    It still answers while it drains. A second signal stops at once.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Callable[[], Awaitable[None]] | None = None,
        *,
        ports_of_process: int = 1,
    ) -> None:
        """Without `drain`, only the requests in progress are finished."""
        super().__init__(config)
        self._ports = ports_of_process
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._copies: list[socket.socket] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen at these sockets."""
        self._copies = [copy for listener in sockets or () for copy in copies_of(listener, self._ports)]
        await super().startup(sockets and [*sockets, *self._copies])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the sockets, and end."""
        shared = [*(sockets or ()), *self._copies]
        await stop_accepting(listener.fileno() for listener in shared)
        await super().shutdown(shared)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; uvicorn calls this from its signal handlers.

        uvicorn's own method raises the signal again at the end, so a graceful stop would end by a signal.
        """
        del sig, frame
        if self._loop is None or self._drain is None or self._draining is not None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self._begin_drain, self._drain)

    def _begin_drain(self, drain: Callable[[], Awaitable[None]]) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain_and_stop(drain))

    async def _drain_and_stop(self, drain: Callable[[], Awaitable[None]]) -> None:
        try:
            await drain()
        finally:
            self.should_exit = True


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with limits on connections and requests.

    A request is limited in the size of its head and in the time it takes to arrive.
    """

    config: LimitedConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ours = self.config.connections
        self._head_bytes = 0
        self._in_head = self._refused = False

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept the connection, or answer 503 if there is no room."""
        super().connection_made(transport)
        if not self._ours.add(self, self.client[0] if self.client else ""):
            self._refuse(
                Problem(503, "too-many-connections", "Service unavailable", "too many connections; try again")
            )
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place of the connection to others."""
        self._ours.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; answer 431 if the request's head is too large."""
        if self._refused:
            return
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                detail = f"URL and headers are larger than {_HEAD_BYTES} bytes"
                self._refuse(Problem(431, "head-too-large", "Request header fields too large", detail))

    def pause_writing(self) -> None:
        """Note a client not reading its answer."""
        super().pause_writing()
        self._ours.stuck(self)

    def resume_writing(self) -> None:
        """Note a client reading again."""
        super().resume_writing()
        self._ours.flowing(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Start the clock of a request, unless the one before is still being answered."""
        super().on_message_begin()
        self._head_bytes, self._in_head = 0, True
        if self._answered():
            self._ours.receiving(self)

    def on_headers_complete(self) -> None:
        """Stop counting the head: it is whole."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the clock: the request is whole."""
        super().on_message_complete()
        if self._answered():
            self._ours.idle(self)  # it was answered before it was whole
        else:
            self._ours.serving(self)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        if self._answered() and not self.transport.is_closing():
            (self._ours.receiving if self.cycle.more_body or self._in_head else self._ours.idle)(self)

    # What `Connections` calls.

    def close_idle(self) -> None:
        """Close without an answer: none is expected."""
        self.transport.close()

    def close_slow(self) -> None:
        """Answer 408 and close; an answer in progress is cut off."""
        if self.flow.read_paused:
            self._ours.receiving(self)  # the application is slow, not the client
        elif not self._answered() and self.cycle.response_started:
            self.transport.close()
        else:
            seconds = self._ours.limits.receive_seconds
            detail = f"the request took longer than {seconds:g} s to arrive"
            self._refuse(Problem(408, "too-slow", "Request timeout", detail))

    def abort(self) -> None:
        """Close without sending the rest."""
        self.transport.abort()

    def _answered(self) -> bool:
        """Return True if no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return not self.pipeline and (cycle is None or cycle.response_complete)

    def _refuse(self, problem: Problem) -> None:
        """Answer in place of the application, and take nothing more.

        The connection stays half open until the client closes it or the next sweep: closed with bytes unread
        it would be reset, and the answer lost.
        """
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        body = problem.body()
        head = (
            f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        if not self.transport.can_write_eof():  # TLS has no half-open connections
            self.transport.close()
            return
        self.transport.write_eof()
        self._ours.refused(self)
