"""The messages of the shim: requests, answers, and the callbacks for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from beckon_runtime.problem import MEDIA_TYPE, Problem

RawHeader = tuple[bytes, bytes]


@dataclass(slots=True)
class Request:
    """One complete HTTP request.

    The names of headers are lower case, and the path is without its query.
    """

    method: str
    path: str
    headers: list[RawHeader]
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer, and its outcome label for the metrics."""

    status: int
    headers: list[RawHeader]
    body: bytes
    outcome: str


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


def of_problem(problem: Problem, outcome: str, *extra: RawHeader) -> Answer:
    """Return the answer with a problem document (RFC 9457)."""
    return Answer(problem.status, [(b"content-type", MEDIA_TYPE.encode()), *extra], problem.body(), outcome)
