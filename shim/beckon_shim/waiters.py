"""The waiting calls; the first answer to each counts.

The caller of `open` limits their number.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from beckon_shim.messages import Ack, Answer, Finish, RawHeader, WireEvent

_REMEMBERED = 8192
_NOT_POSTED = Ack(0, "no connection to it could be opened in time", sent=False)


class Fate(Enum):
    """The state of a call, as far as it is remembered."""

    WAITING = auto()
    ANSWERED = auto()
    ABANDONED = auto()
    UNKNOWN = auto()


@dataclass(slots=True, eq=False)
class Waiter:
    """One call, with the callback for its answer and its state.

    With `takes_later` its caller accepts the tool's acceptance as an answer; `hear` is set if it wants
    reports of progress. `doubt` is the answer if no reply comes in time after a dead letter without a reason.
    `refusal` says why the Broker does not have the event, `None` once it may have it; `uncertain` is the
    acknowledgement after which it may have it. `again` is the timer of the next post. `receipt` is the header
    that goes with the reply to a caller that confirms it.
    """

    nonce: str
    call_id: bytes
    call_type: bytes
    broker_url: str
    respond: Finish
    takes_later: bool = False
    hear: Callable[[WireEvent], None] | None = None
    timer: asyncio.TimerHandle | None = None
    alive: bool = False
    doubt: Answer | None = None
    doubted: asyncio.TimerHandle | None = None
    refusal: Ack | None = _NOT_POSTED
    uncertain: Ack | None = None
    again: asyncio.TimerHandle | None = None
    receipt: RawHeader | None = None


class Waiters:
    """The table of waiting calls by the nonce of their token.

    An ended call is remembered for a while (8,192 to 16,384 calls), to distinguish a second reply from a late
    one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Waiter] = {}
        self._ended: dict[str, bytes | None] = {}
        self._ended_before: dict[str, bytes | None] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, waiter: Waiter) -> None:
        """Put a new call into the table."""
        self._waiting[waiter.nonce] = waiter
        self._idle.clear()

    def get(self, nonce: str) -> Waiter | None:
        """Return the waiting call of this nonce, if any."""
        return self._waiting.get(nonce)

    def reply(self, nonce: str, answer: Answer) -> Fate:
        """Answer a call with its tool's reply; return its previous state.

        A reply that comes again before the caller has confirmed it counts as late.
        """
        waiter = self._waiting.pop(nonce, None)
        if waiter is None:
            return self.fate(nonce)
        self._end(waiter, answer)
        self._remember(nonce, None if waiter.receipt is None else waiter.call_id)
        return Fate.WAITING

    def accept(self, nonce: str, answer: Answer) -> Fate:
        """Answer a call with the tool's acceptance; return its previous state.

        A caller without `takes_later` goes on waiting.
        """
        waiter = self._waiting.get(nonce)
        if waiter is None:
            return self.fate(nonce)
        if waiter.takes_later:
            self.fail(waiter, answer)  # nobody waits for the answer any more, which is yet to come
        return Fate.WAITING

    def settle(self, nonce: str) -> None:
        """Remember a call as answered; further replies are duplicates."""
        self._remember(nonce, None)

    def fail(self, waiter: Waiter, answer: Answer) -> bool:
        """Answer a call without its reply; return True if it was waiting."""
        if self._waiting.pop(waiter.nonce, None) is None:
            return False
        self._end(waiter, answer)
        self._remember(waiter.nonce, waiter.call_id)
        return True

    def fail_all(self, answer: Callable[[Waiter], Answer]) -> int:
        """Answer every waiting call with a failure; return their number."""
        return sum(self.fail(waiter, answer(waiter)) for waiter in list(self._waiting.values()))

    def abandoned_call(self, nonce: str) -> bytes | None:
        """Return the id of a remembered call ended without a reply."""
        return self._ended.get(nonce) or self._ended_before.get(nonce)

    async def idle(self) -> None:
        """Wait until no call waits."""
        await self._idle.wait()

    def fate(self, nonce: str) -> Fate:
        """Return the outcome of a call no longer waiting."""
        for ended in (self._ended, self._ended_before):
            if nonce in ended:
                return Fate.ANSWERED if ended[nonce] is None else Fate.ABANDONED
        return Fate.UNKNOWN

    def _end(self, waiter: Waiter, answer: Answer) -> None:
        for timer in (waiter.timer, waiter.doubted, waiter.again):
            if timer is not None:
                timer.cancel()
        if not self._waiting:
            self._idle.set()
        waiter.respond(answer)

    def _remember(self, nonce: str, call_id: bytes | None) -> None:
        self._ended[nonce] = call_id
        if len(self._ended) >= _REMEMBERED:
            self._ended_before, self._ended = self._ended, {}
