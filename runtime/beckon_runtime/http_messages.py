"""Requests and answers of `http_server`, and what lies between a server and its handler.

An answer is whole, or has pieces: the first ones are sent while the last is still being made.
"""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol

from beckon_runtime.logs import point_to_log
from beckon_runtime.origins import OriginPolicy
from beckon_runtime.posts import RawHeader
from beckon_runtime.problem import MEDIA_TYPE, Problem

CLOSE: RawHeader = (b"connection", b"close")
"""The header of an answer after which the connection ends."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """One complete HTTP request. The names of headers are lower case; path and query are as sent."""

    method: str
    path: str
    headers: list[RawHeader]
    body: bytes = b""
    keep_alive: bool = True
    query: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer, and its outcome label for the metrics of its service."""

    status: int
    headers: list[RawHeader]
    body: bytes = b""
    outcome: str = ""


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


def of_problem(problem: Problem, outcome: str = "", *extra: RawHeader) -> Answer:
    """Return the answer with a problem document (RFC 9457)."""
    return Answer(problem.status, [(b"content-type", MEDIA_TYPE.encode()), *extra], problem.body(), outcome)


def report_defect(service: str, path: str, error: Exception) -> Answer:
    """Log an unexpected error of a request; return the 500 that points to the log of the service."""
    failure = secrets.token_hex(4)
    logger.error("a request to %s failed: %s", path, failure, exc_info=error)
    detail = f"this is a defect of the {service}; {point_to_log(service, failure)}"
    return of_problem(Problem(500, "internal", "Internal error", detail), "internal", CLOSE)


def date_line() -> bytes:
    """Return the line of an answer with its date (RFC 9110, section 6.6.1), made once a second."""
    return _date_line_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_line_of(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()


class Stream:
    """Puts the pieces of one answer into frames: chunks of HTTP/1.1 (RFC 9112, section 7.1).

    HTTP/1.0 has none: there, the end of the connection ends the answer.
    """

    def __init__(self, version: str, *, close: bool) -> None:
        """Begin an answer to a request of this HTTP version.

        With `close` the connection ends after this answer.
        """
        self._chunked = version == "1.1"
        self._begun = False
        self.closes = close or not self._chunked
        self.held: Piece | None = None
        """What is sent as soon as the client reads on, unless something newer comes."""

    def frame(self, piece: Piece) -> bytes:
        """Return the bytes of a piece."""
        parts = [] if self._begun else self._head(piece)
        self._begun = True
        if not self._chunked:
            parts.append(piece.body)
            return b"".join(parts)
        parts += (b"%x\r\n" % len(piece.body), piece.body, b"\r\n")
        if piece.whole is not None:
            parts.append(b"0\r\n\r\n")
        return b"".join(parts)

    def _head(self, piece: Piece) -> list[bytes]:
        parts = [b"HTTP/1.1 200 OK\r\n", date_line()]
        for name, value in piece.headers:
            parts += (name, b": ", value, b"\r\n")
        if self._chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
        if self.closes:
            parts.append(b"connection: close\r\n")
        parts.append(b"\r\n")
        return parts


class CheckedOrigins:
    """A handler behind the check of Host and Origin.

    The inner handler never sees a request of a web page, nor one for another host.
    """

    def __init__(self, handler: Handler, policy: OriginPolicy) -> None:
        self._handler = handler
        self._policy = policy

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Refuse the request, or pass it on."""
        problem = self._policy.refuse(request.headers)
        if problem is None:
            return self._handler.handle(request, respond)
        respond(of_problem(problem, "rejected"))
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit. Nothing in it is secret."""
        return self._handler.too_large(request, limit)
