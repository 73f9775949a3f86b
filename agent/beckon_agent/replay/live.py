"""Real tool calls beside a replay, compared with the recorded results."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core import json_values
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.records import StoredCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.core.run_types import Agent
from beckon_agent.replay.compare import same_json, unified_diff
from beckon_agent.replay.model import RecordedCaller
from beckon_agent.replay.recording import Recording
from beckon_agent.service import Service
from beckon_agent.tool_calls.caller import ToolCaller
from beckon_agent.tool_calls.validation import NeedsApproval, PreparedCall, prepare_calls
from beckon_contract.failures import Reason
from beckon_contract.resources.tools import Tool


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A call of the run, with its recorded and its current result.

    `called` is true if a tool was called now. A call refused before that has the refusal as its result.
    """

    id: str
    name: str
    arguments: Mapping[str, object]
    recorded: object
    now: object
    called: bool

    @property
    def same(self) -> bool:
        """True if the results are the same byte for byte."""
        return same_json(self.recorded, self.now)

    @property
    def diff(self) -> str:
        """The results as a unified diff, empty if they are the same."""
        return "" if self.same else unified_diff(self.recorded, self.now)


class LiveTools:
    """Makes real calls, like those of any run of the agent.

    Tools with possible effects are called only with `effects`.
    """

    def __init__(
        self, service: Service, hosted: AgentHandle, report: Callable[[LiveCall], None], *, effects: bool
    ) -> None:
        self.report = report
        self._service = service
        self._hosted = hosted
        self._effects = effects
        self._gate = asyncio.Semaphore(hosted.agent.limits.parallel_calls)

    async def make_call(self, call: PreparedCall) -> CallFinished:
        """Make a call, checked against today's tools, with a new event id.

        No tool has seen this id before.
        """
        if isinstance(call.action, Tool) and not (call.action.read_only or self._effects):
            call = call.refused(Reason.DENIED, f"not called: {call.action.name} may have effects")
        agent = self._hosted.agent
        async with self._gate:
            finished = await self._service.caller.make_call(
                call,
                event_id=f"replay.{secrets.token_hex(8)}",
                agent=agent,
                remaining=agent.limits.seconds,
            )
        if isinstance(call.action, Tool):
            self._service.metrics.count_call(finished, self._hosted.name)
        return finished


class LiveCaller(ToolCaller):
    """Makes every answered call for real as well, and reports its result.

    The run continues with the recorded answers.
    """

    def __init__(self, recorded: RecordedCaller, live: LiveTools) -> None:
        self._recorded = recorded
        self._live = live

    async def make_call(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call, report it, and return its recorded answer."""
        then = self._recorded.calls.get(event_id)
        if then is not None and then.state == "done":
            now = await self._live.make_call(call)
            called = isinstance(call.action, Tool)
            self._live.report(LiveCall(then.id, then.name, call.arguments, then.result, now.result, called))
        return await self._recorded.make_call(
            call, event_id=event_id, agent=agent, remaining=remaining, may_be_late=may_be_late
        )


def with_effects(recording: Recording, tools: Mapping[str, Tool]) -> list[str]:
    """Return the names of the tools with possible effects in a replay.

    These are today's tools for the recorded calls, without the read-only ones.
    """
    found = {tool.name for call in recording.past.calls if (tool := _tool_of_today(call, tools)) is not None}
    return sorted(name for name in found if not tools[name].read_only)


def _tool_of_today(call: StoredCall, tools: Mapping[str, Tool]) -> Tool | None:
    """Return the tool to call today for a recorded call, or `None`.

    `None` is for a call never made, and for a call refused today.
    """
    if call.state != "done" or call.decision == "denied":
        return None
    tool_call = ToolCall(call.id, call.name, json_values.to_json(call.arguments))
    action = prepare_calls([tool_call], tools)[0].action
    return action.tool if isinstance(action, NeedsApproval) else action if isinstance(action, Tool) else None
