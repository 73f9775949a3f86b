"""Dead letters that do not say why, and what they leave of the hope for a reply (decision 0025).

The default Broker writes such a one where a tool's answers were no events, after the last retry. It writes
one, too, for a Trigger that was just deleted and goes on for a moment: then another Trigger's tool may be at
work on the same call. An answer that comes in time must not be lost for a letter about somebody else.
"""

import asyncio

from beckon_shim.messages import Answer
from beckon_shim.waiters import Waiter, Waiters

_REMEMBERED = 1024


class Doubts:
    """Decides how long a doubted call waits.

    `grace` seconds, or to its deadline where something answers such calls: its type has been answered here
    before, or its tool says that it is at work, by a report or by taking the call to answer it later.
    """

    def __init__(self, waiters: Waiters, grace: float) -> None:
        self._waiters = waiters
        self._grace = grace
        self._answered: dict[bytes, None] = {}

    def note_answered(self, waiter: Waiter) -> None:
        """Remember that a type of call has a tool that answers; the latest 1,024 are."""
        self._answered.pop(waiter.call_type, None)
        self._answered[waiter.call_type] = None
        if len(self._answered) > _REMEMBERED:
            del self._answered[next(iter(self._answered))]

    def note_alive(self, waiter: Waiter) -> None:
        """Take a report or an acceptance as the sign that the call's tool is at work."""
        waiter.alive = True
        if waiter.doubted is not None:
            waiter.doubted.cancel()

    def doubt(self, waiter: Waiter, answer: Answer) -> None:
        """Take a dead letter that does not say why; `answer` is what its caller gets if no reply comes."""
        waiter.doubt = answer
        if waiter.doubted is not None:  # one more deleted Trigger: the first letter's time counts
            return
        if not waiter.alive and waiter.call_type not in self._answered:
            loop = asyncio.get_running_loop()
            waiter.doubted = loop.call_later(self._grace, self._waiters.fail, waiter, answer)
