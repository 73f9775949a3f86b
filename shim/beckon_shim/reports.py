"""Reports of progress: from the Broker to callers interested in them.

They are optional: the Broker always gets an acknowledgement, so no report is delivered again.
"""

from collections.abc import Coroutine

from beckon_contract.cloudevents.extensions import PROGRESS_MARK
from beckon_contract.correlation import Claim
from beckon_shim.deadletters import AmbiguousDeadLetters
from beckon_shim.exchange import Exchange
from beckon_shim.late import LateReplies
from beckon_shim.messages import Answer, Request, WireEvent
from beckon_shim.peers import Peers, has_hopped
from beckon_shim.waiters import Fate

PROGRESS = "/progress"
_TOKEN = b"ce-" + PROGRESS_MARK.encode()
_LONGEST = 4096  # bytes of data: numbers and a sentence
_TAKEN = Answer(202, [], b"", "taken")


class Reports:
    """Takes reports of progress."""

    def __init__(
        self, exchange: Exchange, peers: Peers, late: LateReplies, ambiguous: AmbiguousDeadLetters
    ) -> None:
        self._waiters = exchange.waiters
        self._tokens = exchange.tokens
        self._metrics = exchange.metrics
        self._peers = peers
        self._late = late
        self._ambiguous = ambiguous

    def take(self, event: WireEvent, request: Request) -> Answer | Coroutine[None, None, Answer]:
        """Pass a report to the caller of its call.

        A call of another replica is reached through that replica.
        """
        claim = self._tokens.verify(event.attributes.get(_TOKEN))
        if claim is None:
            return self._taken("foreign")
        if len(event.body) > _LONGEST:
            return self._taken("too_large")
        if claim.replica != self._tokens.replica and not has_hopped(request):
            return self._forward(claim, event)
        waiter = self._waiters.get(claim.nonce)
        if waiter is None:
            return self._hand_over(claim, event)
        self._ambiguous.note_alive(waiter)
        if waiter.hear is None:
            return self._taken("unheard")
        del event.attributes[_TOKEN]  # who has it could answer the call
        waiter.hear(event)
        return self._taken("told")

    def too_large(self) -> None:
        """Count a report with a body over the limit."""
        self._metrics.report("too_large")

    async def _forward(self, claim: Claim, event: WireEvent) -> Answer:
        if await self._peers.forward(claim.replica, PROGRESS, event):
            return self._taken("forwarded")
        return await self._hand_over(claim, event)

    async def _hand_over(self, claim: Claim, event: WireEvent) -> Answer:
        """Pass the report of an unanswered call to the late sink."""
        if self._waiters.fate(claim.nonce) is Fate.ANSWERED:
            return self._taken("behind")
        handed = await self._late.report(event, self._waiters.abandoned_call(claim.nonce))
        return self._taken("late" if handed else "lost")

    def _taken(self, fate: str) -> Answer:
        self._metrics.report(fate)
        return _TAKEN
