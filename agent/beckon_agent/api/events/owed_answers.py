"""Answers after a suspension: sent to the Broker once the run has ended, until it accepts them.

The caller of such a run got `beckonstate: accepted` as its first reply. The store holds the owed answers, so
any replica sends them, after a restart, too. An answer may be sent more than once, always with the same id.
"""

import logging
import random
import time
from contextlib import aclosing
from dataclasses import dataclass, field

import aiohttp

from beckon_agent.agents.registry import AgentHandle, AgentRegistry
from beckon_agent.api.events.messages import RunAnswer, RunAnswerReader, Unanswered, outcome_of
from beckon_agent.api.events.request import FACE, EventRules, replier_of
from beckon_agent.core.records import StoredRun
from beckon_agent.core.run_events import RunSuspended
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.durable.due_work import CLAIM_SECONDS, CLAIMED, REQUEST_SECONDS, handle_due
from beckon_agent.durable.event_log import read_log
from beckon_agent.store.base import Store
from beckon_agent.store.outgoing import OwedAnswer
from beckon_agent.telemetry.spans import resume_trace
from beckon_contract.cloudevents.events import CloudEvent, EventError, to_binary
from beckon_contract.failures import Reason
from beckon_contract.knative.delivery import NEVER_ACCEPTED

logger = logging.getLogger(__name__)

_SEND_SECONDS = 86_400.0  # the longest time for which a caller waits
_TIMEOUT = aiohttp.ClientTimeout(total=REQUEST_SECONDS)


@dataclass(frozen=True, slots=True)
class SendingPace:
    """The intervals of sending, in seconds.

    `look` is the pause between two looks into the store. An answer that the Broker does not accept is sent
    again after `first_pause`, then after twice as long each time, up to `longest_pause`.
    """

    look: float = 0.3
    first_pause: float = 1.0
    longest_pause: float = 300.0

    def pause_after(self, failures: int) -> float:
        """Return the pause after one more failed attempt than `failures`, with a jitter of a fifth."""
        pause = min(self.first_pause * 2.0 ** min(failures, 32), self.longest_pause)
        return pause * random.uniform(0.8, 1.2)  # noqa: S311  # jitter is no secret


@dataclass(frozen=True, slots=True)
class AnswerSender:
    """Sends the owed answers of all runs to the Broker at `rules.sink`.

    `namespace` is that of agents without one in their name.
    """

    store: Store
    session: aiohttp.ClientSession
    registry: AgentRegistry
    rules: EventRules
    namespace: str
    pace: SendingPace = field(default_factory=SendingPace)

    def owes_answer(self, run: StoredRun) -> bool:
        """Return True for the runs of events; `durable.base.OwesAnswer`."""
        return run.face == FACE and bool(self.rules.sink)

    async def send_until_cancelled(self) -> None:
        """Send answers until cancelled."""

        async def claim() -> list[OwedAnswer]:
            if not self.registry.complete:
                return []
            return [*await self.store.owed_answers.claim_due(most=CLAIMED, seconds=CLAIM_SECONDS)]

        await handle_due(claim, self._send, look_seconds=self.pace.look, what="the owed answer")

    async def _send(self, owed: OwedAnswer) -> None:
        """Send an answer once; it stays owed if the Broker may accept it later."""
        run = await self.store.runs.get(owed.run_id)
        if run is None:
            return
        try:
            with resume_trace(run.request):
                reply = await self._write_reply(run)
        except (EventError, LookupError, ValueError):  # of a version that this one does not know
            logger.exception("the answer of run %s is given up: what is stored of it cannot be read", run.id)
            reply = None
        if reply is not None:
            status, problem = await self._post(reply)
            pause = self.pace.pause_after(owed.failures)
            if problem and status not in NEVER_ACCEPTED and _age(run) + pause < _SEND_SECONDS:
                logger.warning("the answer of run %s is sent again in %.0f s: %s", run.id, pause, problem)
                await self.store.owed_answers.postpone(run.id, seconds=pause)
                return
            if problem:
                logger.error("the answer of run %s is given up: %s", run.id, problem)
        await self.store.owed_answers.settle(run.id)

    async def _write_reply(self, run: StoredRun) -> CloudEvent | None:
        """Return the reply, `None` if no caller waits for one."""
        replier = replier_of(run, self._find_agent(run.agent), self.rules)
        reader, suspended = RunAnswerReader(), False
        async with aclosing(read_log(self.store.events, run.id)) as events:
            async for _, event in events:
                reader.feed_event(event)
                suspended = suspended or isinstance(event, RunSuspended)
        if not (suspended and replier.is_awaited):
            return None
        match reader.result:
            case RunAnswer() as answer:
                return replier.write_answer(answer)
            case Unanswered("failed", message):
                pass
            case _:  # ended from outside while it was suspended
                message = outcome_of(run).message
        return replier.write_failure(Reason.TOOL_FAILED, f"the agent failed: {message}")

    def _find_agent(self, name: str) -> Agent:
        """Return an agent; one that is gone is still the source of its answers."""
        hosted = self.registry.find(name)
        if isinstance(hosted, AgentHandle):
            return hosted.agent
        namespace, _, bare = name.rpartition("/")
        return Agent(bare, namespace or self.namespace, "", Limits())

    async def _post(self, reply: CloudEvent) -> tuple[int | None, str]:
        """Post a reply; return the status, `None` without one, and the problem, empty for none."""
        headers, body = to_binary(reply)
        sink = self.rules.sink
        try:
            async with self.session.post(
                sink, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                accepted = 200 <= response.status < 300
                return response.status, "" if accepted else f"the Broker at {sink} answers {response.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            return None, f"the Broker at {sink} cannot be reached: {reason}"


def _age(run: StoredRun) -> float:
    """Return the seconds since the end of a run."""
    return time.time() - (run.ended_at or run.created_at)
