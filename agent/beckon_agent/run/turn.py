"""One turn: the options of the request, the calls side by side, and the messages."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from beckon_agent.core import json_values
from beckon_agent.core.model_types import BROKE_OFF, Message, Turn
from beckon_agent.core.records import StoredTurn
from beckon_agent.core.run_events import (
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    Ending,
    InputRequested,
)
from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_agent.tool_calls.checkpoint import ToolCallState
from beckon_agent.tool_calls.outcome import CallOutcome, is_failure, result_for_model
from beckon_agent.tool_calls.progress import ProgressReport, listen_to_reports
from beckon_agent.tool_calls.validation import HandedBack, NeedsApproval, PreparedCall
from beckon_agent.tools.query import FIND_TOOLS
from beckon_contract.failures import Reason
from beckon_contract.inputs import InputRequest
from beckon_contract.jsontext import dumps
from beckon_contract.resources.tools import Tool


def system_message(agent: Agent, options: Options) -> Message:
    """Return the one system message of a run: many servers take no second one."""
    parts = [text for text in (agent.system_prompt, options.instructions) if text]
    return {"role": "system", "content": "\n\n".join(parts)}


def with_output_format(options: Options, agent: Agent) -> Options:
    """Return the options with the agent's output schema, if the request brings no format.

    Plain text needs no field.
    """
    extra = dict(options.extra)
    if agent.output_schema is not None:
        schema = {"name": "output", "schema": agent.output_schema}
        extra.setdefault("response_format", {"type": "json_schema", "json_schema": schema})
    if json_values.as_mapping(extra.get("response_format")).get("type") == "text":
        del extra["response_format"]
    return replace(options, extra=extra)


def options_of_step(options: Options, step: int) -> Options:
    """Return the options for the model's answer number `step`.

    Only the first answer may be forced to call a tool.
    """
    if step or options.first_choice is None or not options.use_tools:
        return options
    return replace(options, extra={**options.extra, "tool_choice": options.first_choice})


def refuse_disallowed(calls: Sequence[PreparedCall], options: Options, before: int) -> list[PreparedCall]:
    """Refuse the calls not allowed by the request.

    `before` is the number of earlier calls of the run. Calls handed back to the client are not counted: they
    are its own.
    """
    allowed = [_if_allowed(call, options) for call in calls]
    if options.extra.get("parallel_tool_calls") is False:
        message = "this request allows one call in each answer; make this call in the next answer"
        allowed = [*allowed[:1], *(call.refused(Reason.DENIED, message) for call in allowed[1:])]
    checked: list[PreparedCall] = []
    for call in allowed:
        before += not isinstance(call.action, CallOutcome | HandedBack)
        within = options.max_tool_calls is None or before <= options.max_tool_calls
        if within or isinstance(call.action, HandedBack):
            checked.append(call)
        else:
            message = f"this request allows {options.max_tool_calls} calls in all; answer without more"
            checked.append(call.refused(Reason.DENIED, message))
    return checked


def _if_allowed(call: PreparedCall, options: Options) -> PreparedCall:
    if (
        options.allowed_tools is None
        or call.tool_call.name in options.allowed_tools
        or call.action is FIND_TOOLS
    ):
        return call
    names = ", ".join(options.allowed_tools) or "none"
    return call.refused(Reason.DENIED, f"this request allows these tools only: {names}")


def count_results(added: Iterable[Message]) -> int:
    """Return the number of call results added by a run."""
    return sum(1 for message in added if message.get("role") == "tool")


# The first is ours; OpenRouter and Zhipu use the others where the answer broke off behind them.
_FAULTS = frozenset({BROKE_OFF, "error", "network_error"})


def assistant_message(turn: Turn | StoredTurn, calls: Sequence[PreparedCall]) -> Message:
    """Return the message of one answer of the model."""
    refusal = turn.details.refusal
    message: Message = {"role": "assistant", "content": turn.text or (None if calls or refusal else "")}
    if refusal:
        message["refusal"] = refusal
    if turn.details.annotations:
        message["annotations"] = list(turn.details.annotations)
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if calls:
        message["tool_calls"] = [call.as_message_part() for call in calls]
    return message


def result_message(finished: CallFinished, characters: int) -> Message:
    """Return the tool message with a call's result. The result is cut at so many `characters`."""
    content = result_for_model(finished.result, characters)
    return {"role": "tool", "tool_call_id": finished.id, "name": finished.name, "content": content}


def ending_of(finish_reason: str | None) -> Ending:
    """Return the ending of a run for a finish reason.

    An unknown finish reason means that the model stopped.
    """
    if finish_reason in _FAULTS:
        return "incomplete"
    if finish_reason == "length":
        return "length"
    if finish_reason == "content_filter":
        return "content_filter"
    return "stop"


_Call = tuple[str, str]


@dataclass(slots=True)
class _Repetition:
    """The repetitions of a call without a new result. `result` is its last one."""

    times: int = 0
    result: str | None = None


def limit_calls(
    calls: Sequence[PreparedCall], added: Sequence[Message], limits: Limits
) -> list[PreparedCall]:
    """Refuse the calls of a turn above the limits.

    `added` are the messages added by the run before these calls. Calls made by the client itself, or refused
    already, are not counted.
    """
    repeated = _count_repetitions(added)
    made = 0
    limited: list[PreparedCall] = []
    for call in calls:
        if not isinstance(call.action, Tool | NeedsApproval):
            limited.append(call)
            continue
        made += 1
        times = repeated.get(_call_identity(call.tool_call.name, call.arguments), 0)
        if made > limits.calls_per_turn:
            message = (
                f"not called: one turn makes at most {limits.calls_per_turn} calls; "
                "work with the results of these, or make fewer calls with more in each"
            )
            limited.append(call.refused(Reason.DENIED, message))
        elif times >= limits.repeated_calls:
            message = (
                f"not called: {call.tool_call.name} was called {times} times with these same arguments, and "
                "brought nothing new; use other arguments or another tool, or answer with what you have"
            )
            limited.append(call.refused(Reason.DENIED, message))
        else:
            limited.append(call)
    return limited


def _count_repetitions(added: Sequence[Message]) -> dict[_Call, int]:
    """Return how often in a row each call failed or repeated its result.

    The count goes up to the last message.
    """
    repetitions: dict[_Call, _Repetition] = {}
    by_id: dict[str, _Call] = {}
    for message in added:
        if message.get("role") == "assistant":  # the ids are those of one turn: models use them again
            by_id = {call["id"]: _identity_of(call) for call in message.get("tool_calls") or ()}
        elif message.get("role") == "tool" and (call := by_id.get(message["tool_call_id"])) is not None:
            _count_result(repetitions.setdefault(call, _Repetition()), message["content"])
    return {call: repetition.times for call, repetition in repetitions.items()}


def _count_result(repetition: _Repetition, result: str) -> None:
    if _is_failure(result) or result == repetition.result:
        repetition.times += 1
    else:
        repetition.times, repetition.result = 1, result


def _is_failure(result: str) -> bool:
    """True if a result, as sent to the model, is a failure.

    A result that was cut is long, and so no failure.
    """
    if not result.startswith('{"error"'):
        return False
    try:
        return is_failure(json.loads(result))
    except ValueError:
        return False


def _identity_of(call: Mapping[str, Any]) -> _Call:
    function = call["function"]
    return _call_identity(function["name"], json_values.as_mapping(json.loads(function["arguments"])))


def _call_identity(name: str, arguments: Mapping[str, object]) -> _Call:
    """Return a call's name and its arguments as sorted JSON.

    Two equal calls have the same identity, whatever the order of their arguments.
    """
    return name, json.dumps(arguments, sort_keys=True)


News = CallFinished | InputRequested
Make = Callable[[ToolCallState], Awaitable[News | None]]


async def make_calls(calls: Sequence[ToolCallState], make: Make) -> AsyncGenerator[News | CallProgressed]:
    """Make calls; yield their reports, answers and requests for input in order of arrival.

    A call without an answer yet yields none. Raises the errors of making a call. Calls still in progress
    when the generator is closed are cancelled.
    """
    happened = _CallEvents()
    tasks = [happened.start_call(call, make) for call in calls]
    running = len(tasks)
    try:
        while running:
            news = await happened.wait_for_next()
            if isinstance(news, CallProgressed):
                yield news
                continue
            running -= 1
            finished = news.result()
            if finished is not None:
                yield finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _CallEvents:
    """The unread events of calls. They are the ends of calls, and the newest report of each."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | asyncio.Task[News | None]] = asyncio.Queue()
        self._reports: dict[str, CallProgressed] = {}

    def start_call(self, call: ToolCallState, make: Make) -> asyncio.Task[News | None]:
        """Make a call in a task of its own."""
        with listen_to_reports(partial(self._queue_report, call)):
            task = asyncio.create_task(_wait_for(call, make))
        task.add_done_callback(self._queue.put_nowait)
        return task

    async def wait_for_next(self) -> CallProgressed | asyncio.Task[News | None]:
        """Wait for a report or the end of a call."""
        news = await self._queue.get()
        return self._reports.pop(news) if isinstance(news, str) else news

    def _queue_report(self, call: ToolCallState, report: ProgressReport) -> None:
        if call.event_id not in self._reports:
            self._queue.put_nowait(call.event_id)
        tool_call = call.prepared.tool_call
        self._reports[call.event_id] = CallProgressed(
            tool_call.id, tool_call.name, report.done, report.total, report.message
        )


async def _wait_for(call: ToolCallState, make: Make) -> News | None:
    return await make(call)


def first_event(call: ToolCallState) -> CallStarted | ClientCallRequested:
    """Return the first event about a call."""
    tool_call = call.prepared.tool_call
    if is_theirs(call):
        return ClientCallRequested(tool_call.id, tool_call.name, dumps(call.prepared.arguments).decode())
    return CallStarted(tool_call.id, tool_call.name, call.prepared.arguments, tool_call.origin)


def is_theirs(call: ToolCallState) -> bool:
    """True if the client makes a call itself."""
    return isinstance(call.prepared.action, HandedBack)


def may_cost(call: ToolCallState) -> bool:
    """True if a call may still use tokens not counted yet. Its tool may be an agent."""
    return call.finished is None and isinstance(call.prepared.action, Tool | NeedsApproval)


def approval_event(call: ToolCallState) -> ApprovalRequested:
    """Return the event of a call that waits for an approval."""
    tool_call = call.prepared.tool_call
    return ApprovalRequested(
        call.event_id, tool_call.id, tool_call.name, call.prepared.arguments, tool_call.origin
    )


def input_event(call: ToolCallState, request: InputRequest) -> InputRequested:
    """Return the event of a call that waits for input."""
    tool_call = call.prepared.tool_call
    schema = {} if request.form is None else request.form.schema
    return InputRequested(call.event_id, tool_call.id, tool_call.name, request.message, schema)


def timeout_of(call: ToolCallState) -> float | None:
    """Return the time limit of a call's tool in seconds, `None` without one."""
    tool = call.prepared.action
    return tool.timeout if isinstance(tool, Tool) else None
