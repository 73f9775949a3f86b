"""Between what a run notes and what the store keeps: out, and back again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from beckon_agent.calling.exchange import Outcome, failed, is_repeatable, unknown
from beckon_agent.calling.prepared import HandedBack, NeedsApproval, Prepared
from beckon_agent.conversation import assistant_message, ending_of, result_message
from beckon_agent.journal import CallOfTurn, Progress
from beckon_agent.model.types import Message, ToolCall, Turn, Usage
from beckon_agent.runs import CallFinished
from beckon_agent.store.records import CallState, Past, StoredCall, StoredTurn
from beckon_contract.failures import Reason
from beckon_contract.jsontext import dumps
from beckon_contract.tools import Tool


def turn_to_store(step: int, turn: Turn, asked: Mapping[str, object] | None) -> StoredTurn:
    """Return an answer of the model as it is stored, with what it was asked."""
    return StoredTurn(
        step=step,
        text=turn.text,
        reasoning=turn.reasoning,
        finish_reason=turn.finish_reason,
        usage=turn.usage,
        sent=turn.sent,
        written=[asdict(call) for call in turn.calls],
        asked=asked,
    )


def call_to_store(step: int, number: int, call: CallOfTurn) -> StoredCall:
    """Return a call as it is stored before it is made; one that is not made has its result already."""
    prepared = call.prepared
    known = prepared.way if isinstance(prepared.way, Outcome) else None
    return StoredCall(
        event_id=call.event_id,
        step=step,
        number=number,
        id=prepared.asked.id,
        name=prepared.asked.name,
        arguments=prepared.arguments,
        extra=prepared.asked.extra,
        origin=prepared.asked.origin,
        state=_state(prepared),
        result=known.result if known else None,
        failed=known is not None and known.failed,
        seconds=0.0 if known else None,
    )


def _state(prepared: Prepared) -> CallState:
    if isinstance(prepared.way, Outcome):
        return "done"
    if isinstance(prepared.way, HandedBack):
        return "client"
    return "approval" if isinstance(prepared.way, NeedsApproval) else "open"


def progress_of(past: Past, tools: Mapping[str, Tool], characters: int) -> Progress:
    """Return how far a run has come; results are cut for the model at so many characters.

    Calls that are still to be made go to the tools as they are today.
    """
    if not past.turns:
        return Progress()
    by_step = {step: list(calls) for step, calls in groupby(past.calls, lambda call: call.step)}
    messages: list[Message] = []
    calls: list[CallOfTurn] = []
    for turn in past.turns:
        messages += _results(calls, characters)
        calls = [_recalled(call, tools) for call in by_step.get(turn.step, ())]
        messages.append(assistant_message(turn.text, turn.reasoning, [call.prepared for call in calls]))
    last = past.turns[-1]
    return Progress(
        step=last.step + 1,
        messages=messages,
        unfinished=calls,
        usage=_sum([turn.usage for turn in past.turns]),
        elsewhere=sum(call.tokens for call in past.calls),
        answered=None if calls else ending_of(last.finish_reason),
        sent=last.sent,
    )


def _results(calls: Sequence[CallOfTurn], characters: int) -> list[Message]:
    return [result_message(call.finished, characters) for call in calls if call.finished is not None]


def _recalled(stored: StoredCall, tools: Mapping[str, Tool]) -> CallOfTurn:
    arguments = dumps(stored.arguments).decode()
    asked = ToolCall(stored.id, stored.name, arguments, stored.extra, stored.origin)
    was_sent = stored.state == "sent"
    prepared = Prepared(asked, stored.arguments, _way(stored, tools), again=was_sent)
    posted = was_sent and _reply_may_come(tools.get(stored.name))
    finished = None
    if stored.state == "done":
        seconds, tokens = stored.seconds or 0.0, stored.tokens
        finished = CallFinished(stored.id, stored.name, stored.result, stored.failed, seconds, tokens)
    accepted = stored.state == "accepted"
    return CallOfTurn(stored.event_id, prepared, finished, accepted=accepted, posted=posted)


def _reply_may_come(tool: Tool | None) -> bool:
    """Whether a call that may have arrived has to wait for the reply to it, instead of being posted again."""
    return tool is None or not (is_repeatable(tool) or tool.dispatch == "direct")


def _way(stored: StoredCall, tools: Mapping[str, Tool]) -> Tool | Outcome | NeedsApproval | HandedBack:
    if stored.state == "done":
        return Outcome(stored.result, stored.failed)
    if stored.state == "client":
        return HandedBack()
    if stored.decision == "denied":
        because = f": {stored.decision_reason}" if stored.decision_reason else ""
        return failed(Reason.DENIED, f"a person did not allow this call{because}")
    tool = tools.get(stored.name)
    if stored.state == "sent" and (tool is None or _is_lost(tool)):
        return unknown("the agent was restarted during the call, and no reply came in time")
    if tool is None:
        return failed(Reason.UNKNOWN_TOOL, f"the tool {stored.name} is not offered any more")
    return NeedsApproval(tool) if stored.state == "approval" and stored.decision is None else tool


def _is_lost(tool: Tool) -> bool:
    """Whether the reply to a direct call had to come by the connection of a process that is dead."""
    return tool.dispatch == "direct" and not is_repeatable(tool)


def _sum(counted: Sequence[Usage | None]) -> Usage | None:
    known = [usage for usage in counted if usage is not None]
    if not known:
        return None
    prompt = sum(usage.prompt_tokens for usage in known)
    return Usage(prompt, sum(usage.completion_tokens for usage in known))
