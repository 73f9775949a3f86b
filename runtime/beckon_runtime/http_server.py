"""The HTTP/1.1 server of shim and broker, through which every call passes, without a task per request.

It reads whole requests and sends whole answers. httptools parses, as in uvicorn. The additions of ASGI (a
task per request, another to notice that the caller hung up, two writes per answer) took a sixth more CPU per
call and 10 KB more per waiting call, measured with `bench/shim`; and uvicorn bounds neither the size of
headers nor the time that a request takes to arrive.
"""

import asyncio
import contextlib
import http
import socket
from collections import deque
from typing import cast

import httptools

from beckon_runtime.connections import ConnectionLimits, Connections
from beckon_runtime.http_messages import (
    CLOSE,
    Answer,
    Handler,
    HangUp,
    Piece,
    Request,
    Stream,
    date_line,
    of_problem,
    report_defect,
)
from beckon_runtime.posts import RawHeader
from beckon_runtime.problem import Problem
from beckon_runtime.process import copies_of, stop_accepting

_BACKLOG = 4096
_HEAD_BYTES = 65_536
# What belongs to an offer of another protocol, and what was answered when it came.
_OF_THE_OFFER = (b"upgrade", b"connection", b"http2-settings", b"expect")
_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus
}


class Server:
    """Serves one handler of a `service` on one socket. `body_bytes` is the largest body of a request."""

    def __init__(
        self, service: str, handler: Handler, body_bytes: int, limits: ConnectionLimits | None = None
    ) -> None:
        self.service = service
        self.handler = handler
        self.body_bytes = body_bytes
        self.connections: set[ServerConnection] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self.closing = False
        self.limited = Connections(limits or ConnectionLimits())
        self._loop = asyncio.get_running_loop()
        self._listeners: list[asyncio.Server] = []

    async def start(self, bound: socket.socket) -> None:
        """Take connections on a bound socket."""
        for listener in (bound, *copies_of(bound)):
            self._listeners.append(
                await self._loop.create_server(
                    lambda: ServerConnection(self), sock=listener, backlog=_BACKLOG
                )
            )

    def opened(self, connection: "ServerConnection") -> None:
        """Register a new connection."""
        self.connections.add(connection)
        self._empty.clear()

    def closed(self, connection: "ServerConnection") -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    def leave(self) -> None:
        """Close each connection after its next answer; new ones are still taken."""
        self.closing = True

    async def stop(self, seconds: float) -> None:
        """Take no more connections; wait at most `seconds` for current answers."""
        self.closing = True
        await stop_accepting(shared.fileno() for listener in self._listeners for shared in listener.sockets)
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.close_when_idle()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), seconds)
        for connection in list(self.connections):
            connection.abort()


class ServerConnection(asyncio.Protocol):
    """One client: its requests are answered one after the other, in order."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._limited = server.limited
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[RawHeader] = []
        self._head = 0
        self._body: list[bytes] = []
        self._size = 0
        self._refused = self._ended = False
        self._refusal: Answer | None = None
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._hang_up: HangUp | None = None
        self._stream: Stream | None = None
        self._stuck = False
        self._paused = False
        self._in_head = self.reading = False

    # What the server calls.

    def close_when_idle(self) -> None:
        """Close now, or after the current answer."""
        if self._current is None and not self.reading:
            self._close()

    def abort(self) -> None:
        """Close without sending the rest."""
        if self._transport is not None:
            self._transport.abort()

    # What `Connections` calls.

    def close_idle(self) -> None:
        """Close without an answer: none is expected."""
        self._close()

    def close_slow(self) -> None:
        """Answer 408: the request did not arrive in time."""
        seconds = self._limited.limits.receive_seconds
        self._refuse(408, "too-slow", f"the request took longer than {seconds:g} s to arrive")

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; uvloop's is no subclass of asyncio's."""
        self._transport = cast(asyncio.Transport, transport)
        self._server.opened(self)
        peer = transport.get_extra_info("peername")
        if not self._limited.add(self, str(peer[0]) if peer else ""):
            self._refuse(503, "too-many-connections", "too many connections; try again")
            self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection, and report the hang-up to the handler."""
        self._server.closed(self)
        self._limited.remove(self)
        self._transport = None
        self._queue.clear()
        # The parser and this refer to each other, and the collector seldom runs.
        del self._parser
        hang_up, self._hang_up = self._hang_up, None
        if hang_up is not None:
            hang_up()

    def data_received(self, data: bytes) -> None:
        """Parse received data; anything but HTTP/1.1 ends the connection."""
        if self._refused:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
            return
        except httptools.HttpParserError as error:
            self._refuse(400, "bad-request", f"this is not HTTP/1.1: {error}")
        if self._in_head:
            self._head += len(data)
            if self._head > _HEAD_BYTES:
                self._refuse(431, "head-too-large", f"URL and headers are larger than {_HEAD_BYTES} bytes")
        if self._queue and self._transport is not None and not self._paused:
            # A client that sends requests ahead waits until those before are answered.
            self._paused = True
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Answer no further requests while the client does not read."""
        self._stuck = True
        self._limited.stuck(self)

    def resume_writing(self) -> None:
        """Send the held piece of an answer, then handle queued requests."""
        self._stuck = False
        self._limited.flowing(self)
        if self._stream is not None and self._stream.held is not None:
            piece, self._stream.held = self._stream.held, None
            self._send_piece(self._stream, piece)
        self._next()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Start a request."""
        self._url, self._headers, self._body = b"", [], []
        self._head = self._size = 0
        self._in_head = self.reading = True
        if self._current is None:
            self._limited.receiving(self)

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        name = name.lower()
        self._headers.append((name, value))
        if name == b"expect" and value.lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        """Stop counting the head: it is whole."""
        self._in_head = False

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, or refuse the request when it is over the limit."""
        self._size += len(body)
        if self._size <= self._server.body_bytes:
            self._body.append(body)
        elif not self._refused:
            self._refuse_with(self._server.handler.too_large(self._request(), self._server.body_bytes))

    def on_message_complete(self) -> None:
        """Answer the request, or queue it behind the current one."""
        if self._refused:
            return
        if self._parser.should_upgrade():
            return  # `_decline` reads it again
        self.reading = False
        self._limited.serving(self)
        self._queue.append(self._request())
        self._next()

    def _request(self) -> Request:
        target = self._url if self._url.startswith((b"/", b"*")) else _relative(self._url)
        path, _, query = target.decode("latin-1").partition("?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode("ascii")
        return Request(method, path, self._headers, body, self._parser.should_keep_alive(), query)

    def _decline(self, rest: bytes) -> None:
        """Read a request again without its offer of another protocol.

        Such an offer may be ignored (RFC 9110, 7.8). Java's client offers h2c with its first request, and the
        parser leaves the body to that protocol.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(400, "no-tunnel", "no other protocol is supported; use plain HTTP/1.1")
            return
        parts = [method, b" ", self._url, b" HTTP/1.1\r\n"]
        for name, value in self._headers:
            if name not in _OF_THE_OFFER:
                parts += (name, b": ", value, b"\r\n")
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(b"".join([*parts, b"\r\n", rest]))

    # Answering.

    def _next(self) -> None:
        """Pass the next request to the handler, if no other is current."""
        if self._current is not None or self._stuck or not self._queue:
            return
        request = self._current = self._queue.popleft()
        try:
            hang_up = self._server.handler.handle(request, lambda answer: self._respond(request, answer))
        except Exception as error:  # one request must not end the service
            self._respond(request, report_defect(self._server.service, request.path, error))
            return
        if self._current is request:
            self._hang_up = hang_up

    def _respond(self, request: Request, answer: Answer | Piece) -> None:
        """Send the answer to the current request, once, and go on with the next."""
        if self._current is not request:
            return
        close = not request.keep_alive or self._server.closing
        if isinstance(answer, Piece) and answer.whole is None:
            self._send_or_hold(answer, close=close)
            return
        self._current = self._hang_up = None
        self._wait()
        if self._transport is None:
            return
        if isinstance(answer, Piece):
            self._end(answer, close=close)
        else:
            self._send(answer, close=close, bodiless=request.method == "HEAD")
        if not self._transport.is_closing():
            self._continue_reading(self._transport)

    def _continue_reading(self, transport: asyncio.Transport) -> None:
        """Go on with the next request, with the refusal of what followed the last one, or with reading."""
        if self._queue:
            # Not at once: a long line of requests must not become a deep stack.
            self._loop.call_soon(self._next)
        elif self._refusal is not None:
            self._end_refused(self._refusal)
        elif self._paused:
            self._paused = False
            transport.resume_reading()

    def _wait(self) -> None:
        """Mark the connection as receiving or idle, without a current request."""
        if not self._queue:
            (self._limited.receiving if self.reading else self._limited.idle)(self)

    def _send_or_hold(self, piece: Piece, *, close: bool) -> None:
        """Send a piece of the current answer, or hold it.

        Nothing is queued for a client that does not read: a newer piece replaces the held one.
        """
        if self._stream is None:
            self._stream = Stream(self._parser.get_http_version(), close=close)
        if self._stuck:
            self._stream.held = piece
        else:
            self._send_piece(self._stream, piece)

    def _end(self, piece: Piece, *, close: bool) -> None:
        """Send the last piece of an answer."""
        stream = self._stream or Stream(self._parser.get_http_version(), close=close)
        self._stream = None
        self._send_piece(stream, piece)
        if close or stream.closes:
            self._close()

    def _send_piece(self, stream: Stream, piece: Piece) -> None:
        if self._transport is not None and not self._ended:
            self._transport.write(stream.frame(piece))

    def _send(self, answer: Answer, *, close: bool, bodiless: bool = False) -> None:
        """Write a whole answer at once. A second write would meet delayed acknowledgements."""
        if self._transport is None:
            return
        parts = [_STATUS.get(answer.status) or b"HTTP/1.1 %d -\r\n" % answer.status, date_line()]
        for name, value in answer.headers:
            parts += (name, b": ", value, b"\r\n")
        if close and CLOSE not in answer.headers:
            parts.append(b"connection: close\r\n")
        parts.append(b"content-length: %d\r\n\r\n" % len(answer.body))
        if not bodiless:
            parts.append(answer.body)
        self._transport.write(b"".join(parts))
        if self._ended:
            self._transport.write_eof()
        elif close or CLOSE in answer.headers:
            self._close()

    def _refuse(self, status: int, slug: str, detail: str) -> None:
        """Refuse a request with a problem document."""
        if not self._refused:
            title = http.HTTPStatus(status).phrase
            self._refuse_with(of_problem(Problem(status, slug, title, detail), "rejected"))

    def _refuse_with(self, answer: Answer) -> None:
        """Take nothing more, and answer, after the answers to the requests before."""
        self._refused = True
        if self._current is None and not self._queue:
            self._end_refused(answer)
        else:
            self._refusal = answer

    def _end_refused(self, answer: Answer) -> None:
        """Send the last answer.

        The connection stays half open until the client closes it or the next sweep: closed
        with bytes unread it would be reset, and the answer lost.
        """
        self._refusal = None
        self._ended = True
        self._limited.refused(self)
        self._send(answer, close=True)
        if self._paused and self._transport is not None:  # only reading shows that the client has closed it
            self._paused = False
            self._transport.resume_reading()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _relative(target: bytes) -> bytes:
    """Return path and query of an absolute target, as sent to proxies (RFC 9112, section 3.2.2)."""
    parts = httptools.parse_url(target)
    return (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
