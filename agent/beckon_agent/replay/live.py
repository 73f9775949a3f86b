"""Calls made for real beside a replay: what the tools of today answer to what was asked then."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core import json_values
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.records import StoredCall
from beckon_agent.core.run_types import Agent, CallFinished
from beckon_agent.replay.compare import same, unified
from beckon_agent.replay.model import RecordedCaller
from beckon_agent.replay.recording import Recording
from beckon_agent.service import Service
from beckon_agent.tool_calls.caller import ToolCaller
from beckon_agent.tool_calls.validation import NeedsApproval, PreparedCall, prepare_calls
from beckon_contract.failures import Reason
from beckon_contract.tools import Tool


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A call of the run, what came of it then, and what comes of it now.

    `called` is whether a tool was called now: what is refused before that has its refusal as its result.
    """

    id: str
    name: str
    arguments: Mapping[str, object]
    recorded: object
    now: object
    called: bool

    @property
    def same(self) -> bool:
        """Whether the results are the same byte for byte."""
        return same(self.recorded, self.now)

    @property
    def diff(self) -> str:
        """The results as a unified diff, empty where they are the same."""
        return "" if self.same else unified(self.recorded, self.now)


class LiveTools:
    """Makes calls for real, as those of any run of an agent; what may have effects, only with `effects`."""

    def __init__(
        self, service: Service, hosted: AgentHandle, report: Callable[[LiveCall], None], *, effects: bool
    ) -> None:
        self.report = report
        self._service = service
        self._hosted = hosted
        self._effects = effects
        self._gate = asyncio.Semaphore(hosted.agent.limits.parallel_calls)

    async def make(self, call: PreparedCall) -> CallFinished:
        """Make a call that passed the inspection of today, under an id that no tool has seen."""
        if isinstance(call.action, Tool) and not (call.action.read_only or self._effects):
            call = call.refused(Reason.DENIED, f"not called: {call.action.name} may have effects")
        agent = self._hosted.agent
        async with self._gate:
            finished = await self._service.caller.make(
                call,
                event_id=f"replay.{secrets.token_hex(8)}",
                agent=agent,
                remaining=agent.limits.seconds,
            )
        if isinstance(call.action, Tool):
            self._service.metrics.call(finished, self._hosted.name)
        return finished


class LiveCaller(ToolCaller):
    """Makes every call for real as well, and tells what came of it; the run goes on as recorded."""

    def __init__(self, recorded: RecordedCaller, live: LiveTools) -> None:
        self._recorded = recorded
        self._live = live

    async def make(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call, tell, and return its recorded answer."""
        then = self._recorded.calls.get(event_id)
        if then is not None and then.state == "done":
            now = await self._live.make(call)
            called = isinstance(call.action, Tool)
            self._live.report(LiveCall(then.id, then.name, call.arguments, then.result, now.result, called))
        return await self._recorded.make(
            call, event_id=event_id, agent=agent, remaining=remaining, may_be_late=may_be_late
        )


def with_effects(recording: Recording, tools: Mapping[str, Tool]) -> list[str]:
    """Return the tools of today that a replay would call, and that may do more than read."""
    found = {tool.name for call in recording.past.calls if (tool := _callable(call, tools)) is not None}
    return sorted(name for name in found if not tools[name].read_only)


def _callable(call: StoredCall, tools: Mapping[str, Tool]) -> Tool | None:
    """Return the tool that would be called, `None` for a call that was never made, or would not be today."""
    if call.state != "done" or call.decision == "denied":
        return None
    tool_call = ToolCall(call.id, call.name, json_values.dumps(call.arguments))
    action = prepare_calls([tool_call], tools)[0].action
    return action.tool if isinstance(action, NeedsApproval) else action if isinstance(action, Tool) else None
