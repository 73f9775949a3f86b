"""The options of one request, and the messages and ending of a turn."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from beckon_agent.core.model_types import BROKE_OFF, Message
from beckon_agent.core.run_events import CallFinished, Ending
from beckon_agent.core.run_types import Agent, Options
from beckon_agent.tool_calls.outcome import CallOutcome, result_for_model
from beckon_agent.tool_calls.validation import HandedBack, PreparedCall
from beckon_agent.tools.query import FIND_TOOLS
from beckon_contract.failures import Reason


def system_message(agent: Agent, options: Options) -> Message:
    """Return the one system message of a run: many servers take no second one."""
    said = [text for text in (agent.system_prompt, options.instructions) if text]
    return {"role": "system", "content": "\n\n".join(said)}


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
    found: list[PreparedCall] = []
    for call in (_if_allowed(call, options) for call in calls):
        before += not isinstance(call.action, CallOutcome | HandedBack)
        within = options.max_tool_calls is None or before <= options.max_tool_calls
        if within or isinstance(call.action, HandedBack):
            found.append(call)
        else:
            message = f"this request allows {options.max_tool_calls} calls in all; answer without more"
            found.append(call.refused(Reason.DENIED, message))
    return found


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


def assistant_message(text: str, reasoning: str, calls: Sequence[PreparedCall]) -> Message:
    """Return the message of one answer of the model."""
    message: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [call.as_message_part() for call in calls]
    return message


def result_message(finished: CallFinished, characters: int) -> Message:
    """Return the tool message with a call's result.

    The result is cut at so many `characters`.
    """
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
