"""Makes the calls of a model, and says how each ended."""

import logging
import time
from typing import Protocol, runtime_checkable

from beckon_agent.calling.dispatch import Dispatcher
from beckon_agent.calling.exchange import Call, Outcome, failed
from beckon_agent.calling.prepared import SHOWN_NAME, HandedBack, NeedsApproval, Prepared
from beckon_agent.model.types import ToolCall
from beckon_agent.request_id import request_id
from beckon_agent.runs import Agent, CallFinished
from beckon_agent.telemetry import outcomes
from beckon_agent.telemetry.calls import execute_tool
from beckon_contract.failures import Reason
from beckon_contract.logs import about
from beckon_contract.tools import Tool

logger = logging.getLogger(__name__)


class AnswersLater(Exception):
    """The tool has taken the call; its answer comes by an event that no connection waits for."""


@runtime_checkable
class CallObserver(Protocol):
    """Something that learns how the calls of each tool end."""

    def call_ended(self, tool: Tool, outcome: str) -> None:
        """Take `answered` or the reason of the failure; must not raise or block."""
        ...


class ReplyLost(Exception):
    """The call was posted, and its reply can come by an event only.

    `finished` is what is known without it.
    """

    def __init__(self, finished: CallFinished) -> None:
        super().__init__(finished.name)
        self.finished = finished


class Caller:
    """Makes the calls of runs."""

    def __init__(self, dispatcher: Dispatcher, observer: CallObserver | None = None) -> None:
        self._dispatcher = dispatcher
        self._observer = observer

    async def make(
        self, call: Prepared, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call of an agent, or answer it with its refusal; never raises for what a tool does.

        `remaining` are the seconds that the run has left. With `may_be_late` it raises `AnswersLater`
        where the tool has taken the call, and answers by an event that comes later, and `ReplyLost`
        where it is unknown whether the tool has it.
        """
        known = (
            not isinstance(call.way, Outcome) or outcomes.reason_in(call.way.result) != Reason.UNKNOWN_TOOL
        )
        name = call.asked.name[:SHOWN_NAME]
        with (
            about(agent=agent.name, tool=name, event_id=event_id),
            execute_tool(call.asked, call.arguments, agent.name, known=known) as span,
        ):
            finished, outcome = await self._make(call, event_id, agent, remaining, may_be_late)
            if outcome.later:
                logger.info("%s answers call %s later", name, event_id)
            elif outcome.lost and may_be_late:
                logger.warning("the reply to call %s of %s is lost; it may come as an event", event_id, name)
            else:
                span.finished(finished)
                logger.info("%s: %s, in %.3f s", name, outcomes.outcome(finished), finished.seconds)
        if outcome.later:
            raise AnswersLater  # out here, for it is no failure of the span
        if outcome.lost and may_be_late:
            raise ReplyLost(finished)
        return finished

    async def _make(
        self, call: Prepared, event_id: str, agent: Agent, remaining: float, may_be_late: bool
    ) -> tuple[CallFinished, Outcome]:
        begun = time.monotonic()
        match call.way:
            case Tool() as tool:
                wait = min(tool.timeout or agent.limits.call_timeout, remaining)
                origin = call.asked.origin
                event = Call(event_id, tool, call.arguments, agent.source, wait, may_be_late, origin)
                outcome = await self._send(event)
            case NeedsApproval() | HandedBack():
                outcome = _nobody_to_ask(call.asked)
            case Outcome() as outcome:
                pass
        seconds = time.monotonic() - begun
        asked, result, tokens = call.asked, outcome.result, outcome.tokens
        finished = CallFinished(asked.id, asked.name, result, outcome.failed, seconds, tokens)
        if self._observer is not None and isinstance(call.way, Tool) and not outcome.later:
            self._observer.call_ended(call.way, outcomes.outcome(finished))
        return finished, outcome

    async def _send(self, call: Call) -> Outcome:
        try:
            return await self._dispatcher.send(call)
        except Exception:  # a mistake of ours in one call must not take the others' results with it
            logger.exception("request %s: the call %s of %s failed", request_id(), call.id, call.tool.name)
            return failed(Reason.TOOL_FAILED, "the call failed unexpectedly; the agent's log says why")


def _nobody_to_ask(call: ToolCall) -> Outcome:
    message = (
        f"{call.name} needs a person's approval, and there is no way to ask for one in this conversation"
    )
    return failed(Reason.DENIED, message)
