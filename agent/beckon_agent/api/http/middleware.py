"""Middleware of every request: its body's limits and encoding, its id, allowed methods."""

import asyncio
import contextlib
import logging
import re
import secrets
import zlib
from collections.abc import Collection, Iterable

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.api.http.errors import refuse_request
from beckon_agent.core.context import set_request_id

_DISCARDED_BYTES = 16 * 1024 * 1024
_DISCARDING_SECONDS = 5.0
_SHOWN = 40


_ENCODINGS = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
"""The encodings of a body that are read, with zlib's number for each."""


class _TooLarge(Exception):
    """The body exceeds the limit. With `is_whole` nothing more of it will come."""

    def __init__(self, *, is_whole: bool) -> None:
        super().__init__()
        self.is_whole = is_whole


class _WrongEncoding(Exception):
    """The body has an encoding that is not read, or not the one that it names."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BodyLimit:
    """Limits the size and the time of request bodies, and decodes them.

    Answers 413 to a body of more than `limit` bytes, decoded or not, 408 to one that takes longer than
    `seconds`, and 415 to one in an encoding that is not read. A body is read whole before it is passed on:
    FastAPI takes any error while reading for bad JSON.
    """

    def __init__(self, app: ASGIApp, limit: int, seconds: float = 30.0) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_size(_declared_length(scope["headers"]), is_whole=False)
            async with asyncio.timeout(self._seconds):
                first = await self._read_body(receive)
            if first["type"] == "http.request":
                first["body"] = self._decode_body(scope, first["body"])
        except _TooLarge as error:
            message = (
                f"the body is larger than {self._limit} bytes; send less, or raise BECKON_MAX_REQUEST_BYTES"
            )
            if not error.is_whole:
                await _discard_body(receive)
            await _refuse_body(scope, receive, send, 413, message)
            return
        except _WrongEncoding as error:
            await _refuse_body(scope, receive, send, error.status, str(error))
            return
        except TimeoutError:
            await _refuse_body(
                scope, receive, send, 408, f"the body did not come within {self._seconds:g} seconds"
            )
            return
        await self._app(scope, _begin_with(first, receive), send)

    async def _read_body(self, receive: Receive) -> Message:
        """Return the whole body as one message, or the client's disconnect."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
            self._check_size(len(body), is_whole=is_whole)
            if is_whole:
                return {"type": "http.request", "body": bytes(body), "more_body": False}

    def _decode_body(self, scope: Scope, body: bytes) -> bytes:
        """Return the body without its encoding, and drop the headers about it."""
        codings = [value for name, value in scope["headers"] if name == b"content-encoding"]
        encoding = b",".join(codings).strip().lower()
        if encoding in (b"", b"identity"):
            return body
        if encoding not in _ENCODINGS:
            message = f"content-encoding {encoding.decode('latin-1')[:_SHOWN]!r} is not read"
            raise _WrongEncoding(415, f"{message}; send the body in gzip, deflate, or without an encoding")
        decoder = zlib.decompressobj(_ENCODINGS[encoding])
        try:
            decoded = decoder.decompress(body, self._limit + 1)
        except zlib.error:
            decoded = b""
        self._check_size(len(decoded), is_whole=True)
        if not decoder.eof or decoder.unused_data:
            raise _WrongEncoding(400, f"the body is not one whole {encoding.decode()}; encode it again")
        dropped = (b"content-encoding", b"content-length")
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in dropped]
        return decoded

    def _check_size(self, size: int, *, is_whole: bool) -> None:
        if size > self._limit:
            raise _TooLarge(is_whole=is_whole)


def _declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the length announced by the client, 0 for none."""
    text = next((value for name, value in headers if name == b"content-length"), b"")
    return int(text) if text.isdigit() else 0


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with a body that was read already."""
    return _begin_with({"type": "http.request", "body": body, "more_body": False}, receive)


def _begin_with(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def receive_again() -> Message:
        return pending.pop() if pending else await receive()

    return receive_again


async def _discard_body(receive: Receive) -> None:
    """Read on for a while, so the client sees the answer.

    A client that is cut off while it sends never sees it.
    """
    read = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARDING_SECONDS):
            while read <= _DISCARDED_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


async def _refuse_body(scope: Scope, receive: Receive, send: Send, status: int, message: str) -> None:
    answer = refuse_request(scope["path"], status, message)
    answer.headers["connection"] = "close"  # the rest of the body is not worth reading
    if status == 415:
        answer.headers["accept-encoding"] = "gzip, deflate"
    await answer(scope, receive, send)


logger = logging.getLogger(__name__)

_HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")  # what is safe in a header, a log line and a URL


class RequestIds:
    """Sets the id of each request: the caller's, or a new one.

    The caller's id is used if it is safe in a header, a log line and a URL.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        chosen = _choose_id(scope["headers"])
        set_request_id(chosen)
        is_complete = False

        async def send_stamped(message: Message) -> None:
            nonlocal is_complete
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (_HEADER, chosen.encode())]
            else:
                is_complete = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, send_stamped)
        except Exception:
            logger.exception("request %s: %s %r failed", chosen, scope["method"], scope["path"])
            if not is_complete:
                raise  # the server breaks the connection: no client takes half an answer for a whole one


def _choose_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == _HEADER and _SANE.fullmatch(value):
            return value.decode()
    return secrets.token_hex(16)


_EXPOSED = ("retry-after", "x-request-id")


def answer_pages(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Let web pages of these origins read the answers (CORS). MCP has rules of its own.

    `OriginPolicy`, which has the same origins, decides whether their requests are served.
    """
    if not origins:
        return app
    answering = CORSMiddleware(
        app,
        allow_origins=sorted(origins),
        allow_methods=["DELETE", "GET", "POST"],
        allow_headers=["*"],
        expose_headers=_EXPOSED,
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_mcp = scope.get("path", "").split("/")[1:2] == ["mcp"]
        await (app if is_mcp else answering)(scope, receive, send)

    return serve


class HeadRequests:
    """Serves HEAD wherever GET is served. The server leaves the body out, and a stream ends at once."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        inner = {**scope, "method": "GET"}
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        if not is_head or _is_served(self._routes, scope) or not _is_served(self._routes, inner):
            await self._app(scope, receive, send)
            return
        ended = False

        async def send_head(message: Message) -> None:
            nonlocal ended
            if ended:
                return
            await send(message)
            if message["type"] == "http.response.start" and not _has_length(message["headers"]):
                ended = True
                await send({"type": "http.response.body", "body": b""})

        await self._app(inner, receive, send_head)
        scope.update(inner, method="HEAD")


def _has_length(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-length" for name, _ in headers)


_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """Return the methods of a request's path, over all its routes. Each route knows its own methods only."""
    known = list(routes)
    served = {method for method in _METHODS if _is_served(known, {**scope, "method": method})}
    if "GET" in served:
        served.add("HEAD")  # see `HeadRequests`
    return ", ".join(method for method in _METHODS if method in served)


def _is_served(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)
