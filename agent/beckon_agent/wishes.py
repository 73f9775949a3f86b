"""What one request may ask of a run beyond its agent: more of a prompt, a first choice, fewer calls."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from beckon_agent.calling.exchange import Outcome
from beckon_agent.calling.prepared import HandedBack, Prepared
from beckon_agent.model.types import Message
from beckon_agent.retrieval.finding import FIND_TOOLS
from beckon_agent.runs import Agent, Options
from beckon_contract.failures import Reason


def system_message(agent: Agent, options: Options) -> Message:
    """Return the one system message of a run: many servers take no second one."""
    said = [text for text in (agent.system_prompt, options.instructions) if text]
    return {"role": "system", "content": "\n\n".join(said)}


def options_of_step(options: Options, step: int) -> Options:
    """Return the options of the model's answer number `step`: only the first one may be forced to call."""
    if step or options.first_choice is None or not options.use_tools:
        return options
    return replace(options, extra={**options.extra, "tool_choice": options.first_choice})


def permitted(calls: Sequence[Prepared], options: Options, before: int) -> list[Prepared]:
    """Refuse the calls that the request does not allow; `before` is how many the run has had.

    Calls that are handed back to the client are not counted: they are its own.
    """
    found: list[Prepared] = []
    for call in (_if_allowed(call, options) for call in calls):
        before += not isinstance(call.way, Outcome | HandedBack)
        within = options.max_tool_calls is None or before <= options.max_tool_calls
        if within or isinstance(call.way, HandedBack):
            found.append(call)
        else:
            message = f"this request allows {options.max_tool_calls} calls in all; answer without more"
            found.append(call.refused(Reason.DENIED, message))
    return found


def _if_allowed(call: Prepared, options: Options) -> Prepared:
    if options.allowed_tools is None or call.asked.name in options.allowed_tools or call.way is FIND_TOOLS:
        return call
    names = ", ".join(options.allowed_tools) or "none"
    return call.refused(Reason.DENIED, f"this request allows these tools only: {names}")


def calls_made(added: Iterable[Message]) -> int:
    """Return how many results of calls a run has added to its conversation."""
    return sum(1 for message in added if message.get("role") == "tool")
