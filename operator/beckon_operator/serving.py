"""HTTP ports on aiohttp: health, problem documents, checks of Host and Origin, limits (decision 0033).

aiohttp closes a connection if its first request does not come, but accepts as many connections as the process
may open files.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from beckon_runtime.connections import ConnectionLimits, Connections
from beckon_runtime.logs import point_to_log
from beckon_runtime.origins import OriginPolicy
from beckon_runtime.problem import MEDIA_TYPE, Problem, ProblemError
from beckon_runtime.process import stop_accepting

logger = logging.getLogger(__name__)

_BACKLOG = 1024
_NO_BODY = 1024  # bytes that a request for health or metrics may have
_HANDSHAKE_SECONDS = 10.0
_LAST_ANSWERS_SECONDS = 3.0
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 31\r\n"
    b"connection: close\r\n\r\ntoo many connections; try again"
)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def serve_app(
    app: web.Application,
    listener: socket.socket,
    policy: OriginPolicy,
    limits: ConnectionLimits,
    *,
    tls: ssl.SSLContext | None = None,
) -> web.AppRunner:
    """Serve an application on a bound socket; return the runner.

    Serving ends with the cleanup of the runner. The application is changed: the check of Host and Origin
    becomes its first middleware.
    """
    app.middlewares.insert(0, _origin_middleware(policy))
    runner = web.AppRunner(app, shutdown_timeout=_LAST_ANSWERS_SECONDS)
    await runner.setup()
    await _LimitedSite(runner, listener, limits, tls).start()
    return runner


def refuse_request(status: int, slug: str, title: str, detail: str) -> ProblemError:
    """Return the exception for a request with this answer."""
    return ProblemError(Problem(status, slug, title, detail))


def problem_app(server: str, max_body: int) -> web.Application:
    """Return an application without routes; its errors are problem documents.

    `server` is the name in its answers, which hides the software from clients.
    """

    async def name_server(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = server

    app = web.Application(middlewares=[_answer_problems], client_max_size=max_body)
    app.on_response_prepare.append(name_server)
    return app


def health_app(
    server: str, metrics: Callable[[], bytes], why_not_ready: Callable[[], str]
) -> web.Application:
    """Return the application for probes and Prometheus.

    The service is ready if `why_not_ready` returns an empty text.
    """

    async def show_alive(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def show_ready(_: web.Request) -> web.Response:
        if reason := why_not_ready():
            raise refuse_request(503, "not-ready", "Not ready", reason)
        return web.json_response({"status": "ready"})

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = problem_app(server, _NO_BODY)
    app.router.add_get("/healthz", show_alive)
    app.router.add_get("/readyz", show_ready)
    app.router.add_get("/metrics", show_metrics)
    return app


@web.middleware
async def _answer_problems(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer every error as a problem document, never with a traceback."""
    headers: dict[str, str] = {}
    try:
        return await handler(request)
    except ProblemError as refused:
        problem = refused.problem
    except web.HTTPException as error:
        problem = Problem(error.status, "http", error.reason, _error_detail(error, request))
        headers = {name: value for name, value in error.headers.items() if name == "Allow"}
    except Exception:
        failure = secrets.token_hex(4)
        logger.exception("a request failed: %s", failure)
        detail = f"the service failed; {point_to_log('operator', failure)}"
        problem = Problem(500, "internal", "Internal error", detail)
    response = _to_response(problem)
    response.headers.update(headers)
    return response


def _error_detail(error: web.HTTPException, request: web.Request) -> str:
    match error:
        case web.HTTPRequestEntityTooLarge():
            return f"the body is larger than {request.client_max_size} bytes"
        case web.HTTPMethodNotAllowed():
            return f"use {' or '.join(sorted(error.allowed_methods))}"
        case _:
            return f"this port has no {request.path}"


class _LimitedSite(web.SockSite):
    """A listening socket with limits on its connections."""

    def __init__(
        self,
        runner: web.AppRunner,
        listener: socket.socket,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(runner, listener, ssl_context=tls, backlog=_BACKLOG)
        self._connections = Connections(limits)

    async def stop(self) -> None:
        """Close the socket, once no connection is between its acceptance and its handler."""
        await stop_accepting([self._sock.fileno()])
        await super().stop()

    async def start(self) -> None:
        """Listen like `SockSite`, with handlers counted in `Connections`."""
        await web.BaseSite.start(self)
        server = cast("web.Server", self._runner.server)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _LimitedHandler(server, self._connections, loop),
            sock=self._sock,
            ssl=self._ssl_context,
            backlog=self._backlog,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._ssl_context else None,
        )


class _LimitedHandler(web.RequestHandler):
    """aiohttp's handler of one connection, counted in `Connections`."""

    __slots__ = ("_connections", "_waits")

    def __init__(self, server: web.Server, connections: Connections, loop: asyncio.AbstractEventLoop) -> None:
        idle = connections.limits.idle_seconds
        kwargs: dict[str, Any] = {"access_log": None, "auto_decompress": False, "keepalive_timeout": idle}
        super().__init__(server, loop=loop, **kwargs)
        self._connections = connections
        self._waits = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or answer 503 if there is no room."""
        super().connection_made(transport)
        address = transport.get_extra_info("peername")
        if not self._connections.add(self, str(address[0]) if address else ""):
            cast("asyncio.Transport", transport).write(_FULL)
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the place of the connection."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the clock of a request at its first byte."""
        if self._waits and data:
            self._waits = False
            self._connections.receiving(self)
        super().data_received(data)

    def pause_writing(self) -> None:
        """Record the client as not reading."""
        super().pause_writing()
        self._connections.stuck(self)

    def resume_writing(self) -> None:
        """Record the client as reading again."""
        super().resume_writing()
        self._connections.flowing(self)

    def begin(self) -> None:
        """Stop the clock at the end of a request's head. The application limits the time of a body."""
        self._connections.serving(self)

    def end(self) -> None:
        """Mark the connection as idle until the next request."""
        self._waits = True
        self._connections.idle(self)

    # What `Connections` calls.

    def close_idle(self) -> None:
        """Close without an answer: none is expected."""
        self.force_close()

    def close_slow(self) -> None:
        """Close without an answer: the request never came whole."""
        self.force_close()

    def abort(self) -> None:
        """Close without sending the rest."""
        if self.transport is not None:
            self.transport.abort()


def _origin_middleware(policy: OriginPolicy) -> Any:
    """Return the middleware for the checks of Host and Origin.

    It also reports the begin and end of a request to its connection.
    """

    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = cast("_LimitedHandler", request.protocol)
        connection.begin()
        try:
            problem = policy.refuse((name.lower(), value) for name, value in request.raw_headers)
            return await handler(request) if problem is None else _to_response(problem)
        finally:
            connection.end()

    return check


def _to_response(problem: Problem) -> web.Response:
    return web.Response(status=problem.status, body=problem.body(), content_type=MEDIA_TYPE)
