"""Tool calls made, traced and timed, over the Broker or directly."""

import logging
import time
from typing import Protocol, runtime_checkable

import aiohttp

from beckon_agent.core.context import request_id
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.core.run_types import Agent
from beckon_agent.telemetry import tool_spans
from beckon_agent.telemetry.tool_spans import trace_event, trace_tool_call
from beckon_agent.tool_calls.broker import BrokerRoute, ReplyKeys
from beckon_agent.tool_calls.direct import DirectRoute
from beckon_agent.tool_calls.outcome import MAX_REPLY_BYTES, CallOutcome, OutgoingCall, failed_outcome
from beckon_agent.tool_calls.validation import SHOWN_NAME, HandedBack, NeedsApproval, PreparedCall
from beckon_contract.failures import Reason
from beckon_contract.inputs import FORM, InputRequest
from beckon_contract.resources.tools import Tool
from beckon_runtime.logs import log_context, point_to_log


class Dispatcher:
    """Sends calls through the shim or directly to their tools.

    Never raises for a failure of a tool, a Broker or the shim at `url`.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        keys: ReplyKeys | None = None,
    ) -> None:
        """Prepare both routes; `keys` sign the calls to the shim."""
        self._through_shim = BrokerRoute(session, url, max_reply_bytes, keys)
        self._direct = DirectRoute(session, max_reply_bytes)

    async def send(self, call: OutgoingCall) -> CallOutcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        route = self._direct if call.tool.dispatch == "direct" else self._through_shim
        with trace_event(call.id, call.tool.source or call.source, call.tool):
            return await route.send(call)


logger = logging.getLogger(__name__)


class AnswersLater(Exception):
    """The tool has taken the call, and answers by a later event. No connection waits for that event."""


class InputNeeded(Exception):
    """The tool puts a form to a person, and goes on with the answer."""

    def __init__(self, request: InputRequest) -> None:
        super().__init__(request.message)
        self.request = request


@runtime_checkable
class CallObserver(Protocol):
    """An observer of the outcomes of each tool's calls."""

    def call_ended(self, tool: Tool, outcome: str) -> None:
        """Take `answered` or the reason of the failure; must not raise or block."""
        ...


class ReplyLost(Exception):
    """The call was posted, and its reply can come by an event only.

    `finished` is the answer without that reply.
    """

    def __init__(self, finished: CallFinished) -> None:
        super().__init__(finished.name)
        self.finished = finished


class ToolCaller:
    """Makes the calls of runs."""

    def __init__(self, dispatcher: Dispatcher, observer: CallObserver | None = None) -> None:
        self._dispatcher = dispatcher
        self._observer = observer

    async def make_call(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call of an agent, or answer it with its refusal.

        Never raises for a failure of the tool, but `InputNeeded` if it puts a form to a person. `remaining`
        are the seconds left to the run. With `may_be_late` it raises `AnswersLater` if the tool has taken the
        call and answers by a later event, and `ReplyLost` if it is unknown whether the tool has it.
        """
        known = (
            not isinstance(call.action, CallOutcome)
            or tool_spans.failure_reason(call.action.result) != Reason.UNKNOWN_TOOL
        )
        name = call.tool_call.name[:SHOWN_NAME]
        with (
            log_context(agent=agent.name, tool=name, event_id=event_id),
            trace_tool_call(call.tool_call, call.arguments, agent.name, known=known) as span,
        ):
            finished, outcome = await self._make_call(call, event_id, agent, remaining, may_be_late)
            if outcome.input is not None:
                logger.info("%s requests input of a person for call %s", name, event_id)
            elif outcome.later:
                logger.info("%s answers call %s later", name, event_id)
            elif outcome.lost and may_be_late:
                logger.warning("the reply to call %s of %s is lost; it may come as an event", event_id, name)
            else:
                span.record_outcome(finished)
                logger.info("%s: %s, in %.3f s", name, tool_spans.outcome_label(finished), finished.seconds)
        if outcome.input is not None:
            raise InputNeeded(outcome.input)
        if outcome.later:
            raise AnswersLater  # out here, for it is no failure of the span
        if outcome.lost and may_be_late:
            raise ReplyLost(finished)
        return finished

    async def _make_call(
        self, call: PreparedCall, event_id: str, agent: Agent, remaining: float, may_be_late: bool
    ) -> tuple[CallFinished, CallOutcome]:
        started = time.monotonic()
        match call.action:
            case Tool() as tool:
                wait = min(tool.timeout or agent.limits.call_timeout, remaining)
                origin = call.tool_call.origin
                event = OutgoingCall(
                    event_id, tool, call.arguments, agent.source, wait, may_be_late, origin, call.answer
                )
                outcome = await self._send_call(event)
            case NeedsApproval() | HandedBack():
                outcome = _without_approval(call.tool_call)
            case CallOutcome() as outcome:
                pass
        seconds = time.monotonic() - started
        tool_call, result, tokens = call.tool_call, outcome.result, outcome.tokens
        finished = CallFinished(tool_call.id, tool_call.name, result, outcome.failed, seconds, tokens)
        if self._observer is not None and isinstance(call.action, Tool) and not _is_pending(outcome):
            self._observer.call_ended(call.action, tool_spans.outcome_label(finished))
        return finished, outcome

    async def _send_call(self, call: OutgoingCall) -> CallOutcome:
        try:
            return await self._dispatcher.send(call)
        except Exception:  # a mistake of ours in one call must not take the others' results with it
            logger.exception("request %s: the call %s of %s failed", request_id(), call.id, call.tool.name)
            message = f"the call failed unexpectedly; {point_to_log('agent', call.id)}"
            return failed_outcome(Reason.TOOL_FAILED, message)


def refuse_input(call: ToolCall, request: InputRequest) -> CallFinished:
    """Return the end of a call that needs input where no one can give it."""
    return CallFinished(call.id, call.name, refused_input(call.name, request).result, True, 0.0)


def refused_input(name: str, request: InputRequest) -> CallOutcome:
    """Return the outcome of a call of a tool that requests input which no one can give."""
    if request.limit_to([FORM]) is None:
        methods = ", ".join(dict.fromkeys(one.method for one in request.waiting.values()))
        message = f"{name} needs {methods} of its client, which only a client at /mcp can answer"
    else:
        message = (
            f"{name} needs input of a person, and there is no person to request it of in this conversation; "
            "make the call in a stored run, such as a response"
        )
    return failed_outcome(Reason.DENIED, message)


def _is_pending(outcome: CallOutcome) -> bool:
    return outcome.later or outcome.input is not None


def _without_approval(call: ToolCall) -> CallOutcome:
    message = f"{call.name} needs a person's approval, and this conversation cannot request one"
    return failed_outcome(Reason.DENIED, message)
