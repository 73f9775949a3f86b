"""Dead letters without a reason, and the wait for a reply (decision 0025).

The default Broker writes such a letter after the last retry if a tool's answers were no events. It also
writes one for a Trigger that was just deleted and goes on for a moment: then another Trigger's tool may be at
work on the same call. A reply that comes in time must not be lost because of a letter about another tool.
"""

import asyncio

from beckon_shim.messages import Answer
from beckon_shim.waiters import Waiter, Waiters

_REMEMBERED = 1024


class AmbiguousDeadLetters:
    """Decides how long a doubted call waits.

    It waits `grace` seconds, or to its deadline if something answers such calls: its type has been answered
    here before, or its tool shows that it is at work, by a report or by accepting the call for a later
    answer.
    """

    def __init__(self, waiters: Waiters, grace: float) -> None:
        self._waiters = waiters
        self._grace = grace
        self._answered: dict[bytes, None] = {}

    def note_answered(self, waiter: Waiter) -> None:
        """Remember a call type with an answering tool; the latest 1,024 count."""
        self._answered.pop(waiter.call_type, None)
        self._answered[waiter.call_type] = None
        if len(self._answered) > _REMEMBERED:
            del self._answered[next(iter(self._answered))]

    def note_alive(self, waiter: Waiter) -> None:
        """Take a report or an acceptance as a sign of a working tool."""
        waiter.alive = True
        if waiter.doubted is not None:
            waiter.doubted.cancel()

    def doubt(self, waiter: Waiter, answer: Answer) -> None:
        """Take a dead letter without a reason.

        The caller gets `answer` if no reply comes.
        """
        waiter.doubt = answer
        if waiter.doubted is not None:  # one more deleted Trigger: the first letter's time counts
            return
        if not waiter.alive and waiter.call_type not in self._answered:
            loop = asyncio.get_running_loop()
            waiter.doubted = loop.call_later(self._grace, self._waiters.fail, waiter, answer)
