"""The agents of this process and their runs, for every API."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field

from beckon_agent.agents.registry import AgentHandle, AgentRegistry
from beckon_agent.auth.quotas import Quotas, meter_model
from beckon_agent.core.context import current_principal
from beckon_agent.core.model_types import Message, ToolCall
from beckon_agent.core.run_events import CallFinished, RunEvent
from beckon_agent.core.run_types import REQUESTED_CALL_SECONDS, Model, Options
from beckon_agent.run.loop import Run
from beckon_agent.run.tool_offer import SelectableTools
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.telemetry.run_spans import RunObserver
from beckon_agent.tool_calls.caller import ToolCaller
from beckon_agent.tool_calls.checkpoint import RunContext
from beckon_agent.tool_calls.validation import prepare_calls
from beckon_runtime.logs import extend_log_context


class NoRoom(Exception):
    """Nothing can begin now; a later try may succeed. The message says why."""


@dataclass(slots=True)
class Service:
    """The agents of this process, and their runs and calls.

    `running` counts the runs and calls in progress. With `limits`, the usage of each principal is counted,
    and everything here is done for the current one.
    """

    registry: AgentRegistry
    caller: ToolCaller
    metrics: Metrics
    max_runs: int
    limits: Quotas | None = None
    running: int = field(default=0, init=False)
    draining: bool = field(default=False, init=False)
    _idle: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def admit_request(self, hosted: AgentHandle, run_id: str = "") -> None:
        """Count a request to an agent; raises `NoRoom`, `LimitReached` and `StoreUnavailable`.

        With the id of the run that begins with it, the tokens of its first answer are reserved.
        """
        self._look_for_room()
        if self.limits is not None and run_id:
            await self.limits.admit_run(hosted.agent, current_principal().id, run_id)
        elif self.limits is not None:
            await self.limits.admit_call(hosted.agent, current_principal().id)

    async def dismiss_run(self, hosted: AgentHandle, run_id: str) -> None:
        """Release the reservation of `admit_request` for a run not begun."""
        if self.limits is not None:
            await self.limits.settle_tokens(hosted.agent, current_principal().id, run_id, 0)

    async def run_agent(
        self,
        hosted: AgentHandle,
        messages: Sequence[Message],
        options: Options,
        *,
        context: RunContext | None = None,
        admitted: str = "",
    ) -> AsyncGenerator[RunEvent]:
        """Run an agent over a conversation, admitted before by `admit_request`.

        `admitted` is the id used for that; a stored run was admitted under its own id. Raises `NoRoom` before
        anything has happened, and `LimitReached` when its tokens are used up.
        """
        run_id, conversation = (context.run_id, context.conversation) if context else ("", "")
        async with self._meter_model(hosted, run_id or admitted) as counted:
            with self.count_run(), hosted.held():
                extend_log_context(agent=hosted.name, **({"run_id": run_id} if run_id else {}))
                watch = RunObserver(hosted.name, self.metrics, run_id=run_id, conversation=conversation)
                model = watch.watch_model(counted)
                tools = SelectableTools(hosted.catalogue, hosted.chooser)
                run = Run(hosted.agent, model, tools, self.caller, options, context=context)
                async with aclosing(watch.watch_events(run.stream_events(messages))) as events:
                    async for event in events:
                        yield event

    async def call_tool(
        self, hosted: AgentHandle, name: str, arguments: str, *, approved: bool = False
    ) -> CallFinished:
        """Make one call without a model, as an agent would. Raises what `admit_request` raises.

        `approved` is True if a person has allowed this call.
        """
        await self.admit_request(hosted)
        tool_call = ToolCall(id="by-hand", name=name, arguments=arguments)
        prepared = prepare_calls([tool_call], hosted.catalogue.current.tools)[0]
        with self.count_run():
            finished = await self.caller.make_call(
                prepared.approved() if approved else prepared,
                event_id=f"by-hand.{secrets.token_hex(8)}",
                agent=hosted.agent,
                remaining=REQUESTED_CALL_SECONDS,
            )
            self.metrics.count_call(finished, hosted.name)
            return finished

    async def drain_runs(self) -> None:
        """Let nothing more begin; return when nothing is in progress."""
        self.draining = True
        if self.running:
            await self._idle.wait()

    def _meter_model(self, hosted: AgentHandle, run: str) -> AbstractAsyncContextManager[Model]:
        """Return the model of an agent, limited by its token quotas.

        Without quotas of tokens it is the plain model.
        """
        if self.limits is None:
            return nullcontext(hosted.model)
        run = run or secrets.token_hex(8)
        return meter_model(hosted.model, self.limits, hosted.agent, current_principal().id, run)

    def _look_for_room(self) -> None:
        if self.draining:
            raise NoRoom("the agent is shutting down; retry shortly")
        if self.running >= self.max_runs:
            raise NoRoom(f"the limit of runs in progress is reached ({self.max_runs}); try again")

    @contextmanager
    def count_run(self) -> Iterator[None]:
        """Count the block as a run in progress; raise `NoRoom`."""
        self._look_for_room()
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()
