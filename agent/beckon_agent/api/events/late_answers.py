"""Late answers of runs, sent to a Broker.

They are for runs that had to wait: the connection of the event is closed by then.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import stamina

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.events.messages import Replier, RunAnswer, RunAnswerReader, Unanswered
from beckon_agent.api.events.request import FACE, EventRules, replier_of
from beckon_agent.core.records import StoredRun
from beckon_agent.core.run_events import RunEvent
from beckon_contract.cloudevents.events import CloudEvent, to_binary
from beckon_contract.failures import Reason

logger = logging.getLogger(__name__)

_PATIENCE = aiohttp.ClientTimeout(total=10)
_TRIES = 5


class _NotTaken(Exception):
    """The Broker did not accept an answer this time."""


@dataclass(frozen=True, slots=True)
class LateAnswers:
    """Sends the answers of suspended event runs after their end."""

    session: aiohttp.ClientSession
    rules: EventRules

    async def send_answer(self, run: StoredRun, hosted: AgentHandle, events: Sequence[RunEvent]) -> None:
        """Send the awaited answer of a suspended run; never raises.

        It does nothing for runs of other protocols, or if no answer is awaited.
        """
        if run.face != FACE or not self.rules.sink:
            return
        replier = replier_of(run, hosted, self.rules)
        coming = RunAnswerReader()
        for event in events:
            coming.feed_event(event)
        if not replier.is_awaited or coming.found is None:
            return
        try:
            await self._send_reply(_to_reply(replier, coming.found))
        except (_NotTaken, aiohttp.ClientError, TimeoutError) as error:
            logger.error(  # noqa: TRY400  # a Broker that is away needs no traceback
                "the answer of run %s is lost: the Broker at %s has not taken it: %s",
                run.id,
                self.rules.sink,
                str(error) or type(error).__name__,
            )

    async def _send_reply(self, reply: CloudEvent) -> None:
        headers, body = to_binary(reply)
        async for attempt in stamina.retry_context(
            on=(_NotTaken, aiohttp.ClientError, TimeoutError), attempts=_TRIES, timeout=30.0
        ):
            with attempt:
                async with self.session.post(
                    self.rules.sink, data=body, headers=headers, timeout=_PATIENCE, allow_redirects=False
                ) as response:
                    if not response.ok:
                        raise _NotTaken(f"it answers {response.status}")


def _to_reply(replier: Replier, found: RunAnswer | Unanswered) -> CloudEvent:
    """Return the reply; its id is the same however often the run ends."""
    if isinstance(found, RunAnswer):
        return replier.write_answer(found)
    return replier.write_failure(Reason.TOOL_FAILED, f"the agent failed: {found.message}")
