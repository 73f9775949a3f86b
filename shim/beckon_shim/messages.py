"""What goes through the shim: requests, answers, and who waits for an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from beckon_contract.problem import MEDIA_TYPE, Problem

RawHeader = tuple[bytes, bytes]


@dataclass(slots=True)
class Request:
    """One whole HTTP request; names of headers are lower case, the path is without its query."""

    method: str
    path: str
    headers: list[RawHeader]
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer, ready to send, and the word that counts it in the metrics."""

    status: int
    headers: list[RawHeader]
    body: bytes
    outcome: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer whose end is not known yet; the headers count where it is the first.

    Where a client reads too slowly, a piece gives way to the next. The last one is always sent: `whole`
    is what the answer would have been without any piece before it.
    """

    headers: list[RawHeader]
    body: bytes
    whole: Answer | None = None


Finish = Callable[[Answer], None]
Respond = Callable[[Answer | Piece], None]
HangUp = Callable[[], None]


class Handler(Protocol):
    """What a server asks for each request."""

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Answer by one call of `respond`, now or later, or by several with the pieces of one answer.

        Returns what to call if the client hangs up before that.
        """

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request whose body, which is not there, is over the limit."""


def of_problem(problem: Problem, outcome: str, *extra: RawHeader) -> Answer:
    """Return the answer that tells a problem (RFC 9457)."""
    return Answer(problem.status, [(b"content-type", MEDIA_TYPE.encode()), *extra], problem.body(), outcome)
