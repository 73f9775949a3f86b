"""The model and the tool callers of a replay: recorded answers, and real calls beside them."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message, ToolCall, Turn
from beckon_agent.core.records import StoredCall, StoredTurn
from beckon_agent.core.run_events import CallFinished, ReasoningDelta, RefusalDelta, StreamItem, TextDelta
from beckon_agent.core.run_types import Agent, Options
from beckon_agent.durable.prompts import tool_document
from beckon_agent.model.errors import ModelError
from beckon_agent.replay.compare import (
    Difference,
    End,
    RecordedOrder,
    first_difference,
    same_json,
    unified_diff,
)
from beckon_agent.replay.recording import Piece, Recording
from beckon_agent.run.loop import OutOfTime
from beckon_agent.service import Service
from beckon_agent.tool_calls.caller import AnswersLater, InputNeeded, ToolCaller, refuse_input
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.validation import NeedsApproval, PreparedCall, prepare_calls
from beckon_contract.failures import Reason
from beckon_contract.resources.tools import Tool

_NO_LIMIT = 1_000_000  # tools


class RecordedModel:
    """Answers as the recorded model did.

    A request unlike the recorded one ends the replay, unless `tolerant`.
    """

    def __init__(self, recording: Recording, end: End, *, tolerant: bool) -> None:
        self._recording = recording
        self._end = end
        self._tolerant = tolerant
        self._next = 0

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        known = [prompt.model for prompt in self._recording.prompts if prompt is not None]
        return known[0] if known else ""

    async def tool_limit(self) -> int:
        """Return the recorded tool limit of the model."""
        prompt = self._recording.prompts[self._next] if self._next < len(self._recording.prompts) else None
        return _NO_LIMIT if prompt is None or prompt.limit is None else prompt.limit

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the next answer in its recorded pieces.

        Raises the error of the recorded run, if it ended with this answer.
        """
        step, self._next = self._next, self._next + 1
        await self._compare_prompt(step, messages, tools)
        turn = self._recording.find_turn(step)
        if turn is None:
            for piece in self._unfinished_pieces(step):
                yield piece
            await self._end_as_recorded()
        else:
            for piece in _cut_text(turn, self._recording.pieces_of(step)):
                yield piece
            yield _to_turn(turn, self._recording.calls_of(step))

    async def _compare_prompt(self, step: int, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        difference = prompt_difference(self._recording, step, messages, tools)
        if difference is not None:
            self._end.other_prompt = self._end.other_prompt or difference
            if not self._tolerant:
                await self._end.wait_to_be_stopped()

    async def _end_as_recorded(self) -> None:
        """End like the recorded run: by time limit, error or cancellation."""
        run = self._recording.run
        if run.ending == "time_limit":
            raise OutOfTime
        if run.status == "failed" and run.error is not None:
            raise ModelError(run.error.get("message", ""), code=run.error.get("code", ""))
        await self._end.wait_to_be_stopped()

    def _unfinished_pieces(self, step: int) -> Iterator[Piece]:
        """Yield the pieces of an unfinished answer.

        The blank line before its first text is removed; the loop adds it again.
        """
        spoke = any(turn.text for turn in self._recording.past.turns)
        for piece in self._recording.pieces_of(step):
            if spoke and type(piece) is TextDelta:
                spoke = False
                yield replace(piece, text=piece.text.removeprefix("\n\n"))
            else:
                yield piece


def _cut_text(turn: StoredTurn, shapes: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the text of a turn in pieces of the recorded sizes.

    The first sizes may include the blank line that the loop adds after a call; it is subtracted.
    """
    rest: dict[type[Piece], str] = {TextDelta: turn.text, ReasoningDelta: turn.reasoning}
    rest[RefusalDelta] = turn.details.refusal
    shown = sum(len(shape.text) for shape in shapes if type(shape) is TextDelta)
    gap = max(0, shown - len(turn.text))
    for shape in shapes:
        length = len(shape.text)
        if type(shape) is TextDelta:
            length, gap = max(0, length - gap), max(0, gap - length)
        kind = type(shape)
        text, rest[kind] = rest[kind][:length], rest[kind][length:]
        yield replace(shape, text=text)
    for kind, text in rest.items():
        if text:  # a log that breaks off
            yield kind(text)


def _to_turn(turn: StoredTurn, calls: Sequence[StoredCall]) -> Turn:
    return Turn(
        turn.text,
        turn.reasoning,
        tuple(_written_calls(turn, calls)),
        turn.finish_reason,
        turn.usage,
        details=turn.details,
    )


def _written_calls(turn: StoredTurn, calls: Sequence[StoredCall]) -> Iterator[ToolCall]:
    """Yield the calls as the model wrote them.

    For a call split into several, yield the parts with their new ids.
    """
    raw: Mapping[object, Any] = {written["id"]: written for written in turn.written or ()}
    for position, call in enumerate(calls):
        followed_by_parts = position + 1 < len(calls) and calls[position + 1].id not in raw
        if call.id in raw and not followed_by_parts:
            yield ToolCall(**raw[call.id])
        else:
            yield ToolCall(call.id, call.name, json_values.to_json(call.arguments), call.extra, call.origin)


def prompt_difference(
    recording: Recording, step: int, messages: Sequence[Message], tools: Sequence[Tool]
) -> Difference | None:
    """Return the first difference between the recorded and the current prompt."""
    prompt = recording.prompts[step] if step < len(recording.prompts) else None
    system = messages[0] if prompt is None else prompt.system
    then = [system, *recording.conversation, *_added_before(recording, step, messages)]
    where = f"the model's request {step + 1}"
    difference = first_difference(f"{where}: messages", then, list(messages))
    if difference is None and prompt is not None:
        difference = first_difference(
            f"{where}: tools", _by_name(prompt.tools), _by_name([tool_document(tool) for tool in tools])
        )
    return difference


def _added_before(recording: Recording, step: int, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages added by a run before an answer.

    If the recording does not have them, return those added in the replay.
    """
    if recording.added is None:
        return messages[1 + len(recording.conversation) :]
    answers = [index for index, message in enumerate(recording.added) if message.get("role") == "assistant"]
    return recording.added[: answers[step]] if step < len(answers) else recording.added


def _by_name(tools: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    return {
        str(tool["name"]): {name: value for name, value in tool.items() if name != "name"} for tool in tools
    }


class RecordedCaller(ToolCaller):
    """Answers calls from the recording, in the recorded order; sends nothing."""

    def __init__(self, recording: Recording, order: RecordedOrder, end: End) -> None:
        self.calls = {call.event_id: call for call in recording.past.calls}
        self._seconds = {event.id: event.seconds for event in recording.finished_calls()}
        self._late = recording.late_calls()
        self._order = order
        self._end = end

    async def make_call(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Answer a call; a call refused today gets its refusal."""
        recorded = self.calls.get(event_id)
        if recorded is None:  # of a turn that is not played as it was
            await self._end.wait_to_be_stopped()
        if may_be_late and recorded.id in self._late and isinstance(call.action, Tool):
            raise AnswersLater  # as then; its answer is handed in once the run waits for it
        await self._order.turn_of(recorded)
        result, failed = recorded.result, recorded.failed
        if isinstance(call.action, CallOutcome):
            result, failed = call.action.result, call.action.failed
        elif recorded.state != "done":
            await self._end.wait_to_be_stopped()
        seconds = self._seconds.get(recorded.id, recorded.seconds or 0.0)
        requested = call.tool_call
        return CallFinished(requested.id, requested.name, result, failed, seconds, recorded.tokens)


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
            try:
                finished = await self._service.caller.make_call(
                    call,
                    event_id=f"replay.{secrets.token_hex(8)}",
                    agent=agent,
                    remaining=agent.limits.seconds,
                )
            except InputNeeded as needed:
                finished = refuse_input(call.tool_call, needed.request)
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
    names = {tool.name for call in recording.past.calls if (tool := _current_tool(call, tools)) is not None}
    return sorted(name for name in names if not tools[name].read_only)


def _current_tool(call: StoredCall, tools: Mapping[str, Tool]) -> Tool | None:
    """Return the tool to call today for a recorded call, or `None`.

    `None` is for a call never made, and for a call refused today.
    """
    if call.state != "done" or call.decision == "denied":
        return None
    tool_call = ToolCall(call.id, call.name, json_values.to_json(call.arguments))
    action = prepare_calls([tool_call], tools)[0].action
    return action.tool if isinstance(action, NeedsApproval) else action if isinstance(action, Tool) else None
