"""The agent loop of one run.

The model gets a request, its tool calls are made, and their results go back to it, until it answers.
"""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from beckon_agent.core.model_types import Message, ToolCall, Turn, sum_usages
from beckon_agent.core.run_events import (
    AnnotationAdded,
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    Ending,
    InputRequested,
    ReasoningDelta,
    RunEvent,
    RunFinished,
    RunSuspended,
    TextDelta,
)
from beckon_agent.core.run_types import (
    REQUESTED_CALL_SECONDS,
    Agent,
    Model,
    Options,
    propagate_attributes,
)
from beckon_agent.run.tool_offer import SelectableTools, ToolOffers
from beckon_agent.run.turn import (
    approval_event,
    assistant_message,
    count_results,
    ending_of,
    first_event,
    input_event,
    is_theirs,
    limit_calls,
    make_calls,
    may_cost,
    options_of_step,
    refuse_disallowed,
    result_message,
    system_message,
    timeout_of,
    with_output_format,
)
from beckon_agent.tool_calls.caller import (
    AnswersLater,
    InputNeeded,
    ReplyLost,
    ToolCaller,
    refuse_input,
)
from beckon_agent.tool_calls.checkpoint import NoCheckpoints, RunContext, RunProgress, ToolCallState
from beckon_agent.tool_calls.outcome import unknown_outcome
from beckon_agent.tool_calls.recorded_events import recording_events
from beckon_agent.tool_calls.validation import NeedsApproval, prepare_calls
from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.failures import Reason, failure
from beckon_contract.inputs import InputRequest
from beckon_contract.resources.tools import Tool

Item = TypeVar("Item")

_TOO_SHORT = 0.05  # seconds; a tool's time-out comes a moment before the run's, and nothing answers in that
_NOTES: dict[Ending, str] = {
    "step_limit": "the run has reached its limit of requests to the model",
    "time_limit": "the run took as long as it may take",
    "token_limit": "the run used as many tokens as it may use",
}


class OutOfTime(Exception):
    """The run has used up its seconds."""


class Run:
    """One run of an agent over a conversation: `stream_events` is iterated once."""

    def __init__(
        self,
        agent: Agent,
        model: Model,
        tools: SelectableTools,
        caller: ToolCaller,
        options: Options,
        *,
        context: RunContext | None = None,
    ) -> None:
        self._context = context or RunContext(secrets.token_hex(8), NoCheckpoints())
        progress = self._context.progress
        self._agent = agent
        self._model = model
        self._caller = caller
        self._options = options = with_output_format(options, agent)
        self._tools = tools
        self._offers = ToolOffers(tools, agent, options, progress.sent)
        seconds = REQUESTED_CALL_SECONDS if options.requested_call else agent.limits.seconds
        self._deadline = time.monotonic() + seconds - progress.seconds
        self._messages: list[Message] = []
        self._added = list(progress.messages)
        self._usage = progress.usage
        self._elsewhere = progress.elsewhere
        self._fingerprint = progress.fingerprint
        self._ending: Ending = "stop"
        self._spoke = any(
            message.get("role") == "assistant" and message["content"] for message in self._added
        )
        self._called = count_results(self._added) + len(progress.unfinished)
        self._suspended = self._over = False

    async def stream_events(self, messages: Sequence[Message]) -> AsyncGenerator[RunEvent]:
        """Yield the events of the run, `RunFinished` or `RunSuspended` last.

        Raises `ModelError` if the model fails, and the errors of the journal.
        """
        self._messages = [system_message(self._agent, self._options), *messages, *self._added]
        try:
            async with aclosing(self._run_steps()) as events:
                async for event in events:
                    yield event
        except OutOfTime:
            self._ending = "time_limit"
        if self._suspended:
            yield RunSuspended()
            return
        if note := _NOTES.get(self._ending):
            yield TextDelta(f"{self._text_gap()}[stopped: {note}]")
        yield RunFinished(self._ending, self._usage, tuple(self._added), self._elsewhere, self._fingerprint)

    async def _run_steps(self) -> AsyncGenerator[RunEvent]:
        progress = self._context.progress
        async with aclosing(self._call_all(progress.unfinished)) as finished:
            async for event in finished:
                yield event
        self._end_with(progress)
        for step in itertools.count(progress.step):
            if self._over or self._suspended:
                return
            requested = self._options.requested_call
            events = self._run_step(step) if requested is None else self._run_requested_call(requested)
            async with aclosing(events) as happened:
                async for news in happened:
                    yield news

    async def _run_requested_call(self, requested: ToolCall) -> AsyncGenerator[RunEvent]:
        """Make the one call of a run without a model; it is stored as the call of a first turn."""
        prepared = prepare_calls([requested], self._tools.catalogue.current.tools)[0]
        call = ToolCallState(f"{self._context.run_id}.0.0", prepared)
        await self._context.journal.record_turn(0, Turn(calls=(requested,)), [call])
        self._add_message(assistant_message(Turn(), [prepared]))
        self._over = True
        async with aclosing(self._call_all([call])) as finished:
            async for event in finished:
                yield event

    def _end_with(self, progress: RunProgress) -> None:
        """End the run if its recorded progress is already complete.

        In that case an earlier process stopped before it recorded the end.
        """
        limit = self._limit_at(progress.step - 1) if progress.step else None
        if self._options.requested_call is not None and progress.step:
            self._over = True
        elif not self._over and (progress.answered or limit):
            self._over, self._ending = True, progress.answered or limit or "stop"

    async def _run_step(self, step: int) -> AsyncGenerator[RunEvent]:
        """Ask the model once, and make the requested calls."""
        offer = await self._in_time(self._offers.make_offer(self._messages, self._model))
        turn = Turn()
        async with aclosing(self._ask_model(offer.declared, step)) as items:
            async for item in items:
                if isinstance(item, Turn):
                    turn = replace(item, sent=self._offers.sent)
                    for annotation in turn.details.annotations:
                        yield AnnotationAdded(annotation, len(turn.text))
                else:
                    yield item
        self._usage = sum_usages((self._usage, turn.usage))
        self._fingerprint = turn.details.fingerprint or self._fingerprint
        calls = [call.checked_by_origin(may_wait=self._context.may_wait) for call in offer.read_calls(turn)]
        calls = limit_calls(calls, self._added, self._agent.limits)
        calls = refuse_disallowed(calls, self._options, self._called)
        self._called += sum(isinstance(call.action, Tool | NeedsApproval) for call in calls)
        limit = self._limit_at(step)
        if limit:  # the model would never see what comes of these calls, and they may have effects
            calls = [call.refused(Reason.DENIED, f"not called: {_NOTES[limit]}") for call in calls]
        calls = offer.answer_searches(calls)
        states = [ToolCallState(f"{self._context.run_id}.{step}.{n}", call) for n, call in enumerate(calls)]
        await self._context.journal.record_turn(step, turn, states)
        self._add_message(assistant_message(turn, calls))
        async with aclosing(self._call_all(states)) as finished:
            async for event in finished:
                yield event
        if limit or not calls:
            self._over = True
            self._ending = limit if limit and calls else ending_of(turn.finish_reason)
        elif not (self._over or self._suspended) and (spent := self._limit_at(step)):  # by agents it called
            self._over, self._ending = True, spent

    async def _ask_model(
        self, tools: Sequence[Tool], step: int
    ) -> AsyncGenerator[TextDelta | ReasoningDelta | Turn]:
        """Yield one answer of the model. An empty line separates its text from the text before it."""
        if self._seconds_left < _TOO_SHORT:
            raise OutOfTime
        gap = self._text_gap()
        options = options_of_step(self._options, step)
        async with aclosing(self._model.stream(self._messages, tools, options)) as items:
            while (item := await self._in_time(anext(items, None))) is not None:
                if type(item) is TextDelta:  # a refusal is no text of the answer
                    yield replace(item, text=gap + item.text) if gap else item
                    gap, self._spoke = "", True
                elif not isinstance(item, ToolCall):
                    yield item

    async def _in_time(self, coming: Awaitable[Item]) -> Item:
        """Await `coming`; raise `OutOfTime` at the run's time limit."""
        try:
            async with asyncio.timeout(self._seconds_left) as limit:
                return await coming
        except TimeoutError:
            if limit.expired():
                raise OutOfTime from None
            raise

    @property
    def _seconds_left(self) -> float:
        """The remaining seconds of this run."""
        return self._deadline - time.monotonic()

    def _text_gap(self) -> str:
        return "\n\n" if self._spoke else ""

    async def _call_all(
        self, calls: Sequence[ToolCallState]
    ) -> AsyncGenerator[
        CallStarted | ClientCallRequested | ApprovalRequested | InputRequested | CallProgressed | CallFinished
    ]:
        """Make the calls of one turn concurrently.

        Their results are added in the order of the calls. If calls still wait for a person, or for a tool
        that answers later, nothing is added, and the run is suspended. If some calls are the client's, the
        run ends after all others.
        """
        for call in calls:
            if self._needs_approval(call):  # it has not started, and may never
                yield approval_event(call)
            else:
                yield first_event(call)
            if call.input_request is not None:
                yield input_event(call, call.input_request)
        gate = asyncio.Semaphore(self._agent.limits.parallel_calls)
        ours = [call for call in calls if not (self._must_wait(call) or is_theirs(call))]
        async with aclosing(make_calls(ours, lambda call: self._finish_call(call, calls, gate))) as happened:
            async for event in happened:
                yield event
        self._conclude_step(calls)

    def _conclude_step(self, calls: Sequence[ToolCallState]) -> None:
        """Add the results to the conversation, or suspend the run.

        The run is suspended while a call waits for a person, or for a later answer of its tool. It ends if
        the client has to make a call.
        """
        self._suspended = any(map(self._must_wait, calls))
        if self._suspended:
            return
        for call in calls:
            if call.finished is not None:
                self._add_message(result_message(call.finished, self._agent.limits.result_chars))
        if any(map(is_theirs, calls)):
            self._over, self._ending = True, "client_call"

    def _must_wait(self, call: ToolCallState) -> bool:
        """True if a call waits for approval, for input, or for a later answer."""
        waits = call.accepted or call.input_request is not None or self._needs_approval(call)
        return call.finished is None and waits

    def _needs_approval(self, call: ToolCallState) -> bool:
        """True if a call waits for a person's approval."""
        needs = isinstance(call.prepared.action, NeedsApproval) and not call.accepted
        return needs and self._context.may_wait and call.finished is None

    async def _finish_call(
        self, call: ToolCallState, calls: Sequence[ToolCallState], gate: asyncio.Semaphore
    ) -> CallFinished | InputRequested | None:
        """Return the answer of a call, or its request for input; `None` if the answer comes later.

        An earlier process may have received the answer already.
        """
        if call.finished is None:
            try:
                call.finished = await self._make_call(call, calls, gate)
            except AnswersLater:
                await self._context.journal.record_acceptance(call, seconds=self._late_seconds(call))
                call.accepted = True
                return None
            except InputNeeded as needed:
                return await self._request_input(call, needed.request)
            self._elsewhere += call.finished.tokens  # at once: the next call shares what is left now
            await self._context.journal.record_result(call)
        return call.finished

    async def _request_input(
        self, call: ToolCallState, request: InputRequest
    ) -> CallFinished | InputRequested:
        """Put the form of a call to a person, or refuse the call if no one can answer."""
        answerable = request.limit_to(self._context.input_methods)
        if not self._context.may_wait or answerable is None:
            call.finished = refuse_input(call.prepared.tool_call, request)
            await self._context.journal.record_result(call)
            return call.finished
        seconds = self._agent.limits.late_seconds
        await self._context.journal.record_input_request(call, answerable, seconds=seconds)
        call.input_request = answerable
        return input_event(call, answerable)

    def _late_seconds(self, call: ToolCallState) -> float:
        """Return the seconds to wait for a later answer of a call."""
        return timeout_of(call) or self._agent.limits.late_seconds

    async def _make_call(
        self, call: ToolCallState, calls: Sequence[ToolCallState], gate: asyncio.Semaphore
    ) -> CallFinished:
        """Make one of these calls once there is room.

        At the time limit of the run the call ends, even if its tool still works on it.
        """
        started, tool_call = time.monotonic(), call.prepared.tool_call
        try:
            async with asyncio.timeout(self._seconds_left), gate:
                if call.posted:
                    return await self._reply_to(call)
                await self._context.journal.record_sending(call, seconds=self._wait_for(call))
                try:
                    with (
                        propagate_attributes(self._budget_attributes(calls)),
                        recording_events() as call.noted,
                    ):
                        return await self._caller.make_call(
                            call.prepared,
                            event_id=call.event_id,
                            agent=self._agent,
                            remaining=self._seconds_left,
                            may_be_late=self._context.may_wait,
                        )
                except ReplyLost as lost:
                    call.posted = True
                    return await self._context.journal.wait_for_reply(call) or lost.finished
        except TimeoutError:
            reason = Reason.OUTCOME_UNKNOWN if call.posted else Reason.TIMEOUT
            late = failure(reason, f"no answer in time: {_NOTES['time_limit']}")
            return CallFinished(tool_call.id, tool_call.name, late, True, time.monotonic() - started)

    def _wait_for(self, call: ToolCallState) -> float:
        """Return the time limit for the reply to a call, in seconds."""
        return min(timeout_of(call) or self._agent.limits.call_timeout, self._seconds_left)

    async def _reply_to(self, call: ToolCallState) -> CallFinished:
        """Wait for the reply to a call posted by an earlier process."""
        started, tool_call = time.monotonic(), call.prepared.tool_call
        finished = await self._context.journal.wait_for_reply(call)
        if finished is not None:
            return finished
        outcome = unknown_outcome("the agent was restarted during the call, and no reply came in time")
        return CallFinished(tool_call.id, tool_call.name, outcome.result, True, time.monotonic() - started)

    def _budget_attributes(self, calls: Sequence[ToolCallState]) -> Mapping[str, AttributeValue]:
        """Return the budget attributes for the events of a turn's calls.

        Each call gets its share of the budget, if there is one.
        """
        shares = max(1, sum(map(may_cost, calls)))  # none where the call is refused, and not sent
        limit = self._agent.limits.tokens
        return self._options.chain.to_attributes(limit, self._usage, self._elsewhere, shares=shares)

    def _add_message(self, message: Message) -> None:
        self._messages.append(message)
        self._added.append(message)

    def _limit_at(self, step: int) -> Ending | None:
        """Return the limit reached after a step, if any. The model gets no request after that step."""
        tokens = self._options.chain.token_limit(self._agent.limits.tokens)
        own = self._usage.total_tokens if self._usage is not None else 0
        if tokens is not None and own + self._elsewhere >= tokens:
            return "token_limit"
        return "step_limit" if step + 1 >= self._agent.limits.steps else None
