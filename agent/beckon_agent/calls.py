"""From what a model asked for to calls that may be made: known tool, valid arguments, allowed."""

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from beckon_agent.dispatch import Call, Dispatcher, Outcome
from beckon_agent.model.identifiers import call_id
from beckon_agent.model.types import Message, ToolCall
from beckon_agent.runs import CallFinished
from beckon_contract.arguments import InvalidArguments, Validator, read_arguments, split_arguments
from beckon_contract.failures import Reason, failure
from beckon_contract.tools import Tool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call of the model after inspection: ready to be made, or refused with an outcome."""

    asked: ToolCall
    arguments: Mapping[str, object]
    tool: Tool | None = None
    refusal: Outcome | None = None

    def as_message_part(self) -> Message:
        """Return the call as it stands in an assistant message: its arguments always an object."""
        function = {"name": self.asked.name, "arguments": orjson.dumps(self.arguments).decode()}
        return {**self.asked.extra, "id": self.asked.id, "type": "function", "function": function}


class Caller:
    """Inspects and makes the calls of a run."""

    def __init__(self, dispatcher: Dispatcher, call_timeout: float) -> None:
        self._dispatcher = dispatcher
        self._call_timeout = call_timeout

    async def make(self, call: Prepared, *, event_id: str, source: str, remaining: float) -> CallFinished:
        """Make a call, or answer it with its refusal; never raises for what a tool does."""
        begun = time.monotonic()
        outcome = call.refusal
        if outcome is None and call.tool is not None:
            wait = min(call.tool.timeout or self._call_timeout, remaining)
            outcome = await self._dispatcher.send(Call(event_id, call.tool, call.arguments, source, wait))
        if outcome is None:
            raise AssertionError("unreachable: a call without a tool is refused")
        seconds = time.monotonic() - begun
        return CallFinished(call.asked.id, call.asked.name, outcome.result, outcome.failed, seconds)


def prepare(asked: Sequence[ToolCall], tools: Mapping[str, Tool], *, cut_off: bool = False) -> list[Prepared]:
    """Inspect the calls of one turn; a call whose arguments hold several objects becomes several calls.

    Where the answer was `cut_off` at its token limit, the last call may be half a call: then only
    whole JSON counts, because a repair would make up what is missing.
    """
    whole = list(asked)
    halved = whole.pop() if cut_off and whole and not _is_json(whole[-1].arguments) else None
    prepared = [_inspect(call, tools) for one in whole for call in _split(one, tools)]
    return prepared if halved is None else [*prepared, _cut_off(halved)]


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return False
    return True


def _cut_off(call: ToolCall) -> Prepared:
    message = f"the arguments of {call.name} end in the middle: the answer was cut off at its token limit"
    return Prepared(call, {}, refusal=Outcome(failure(Reason.INVALID_ARGUMENTS, message), failed=True))


def _split(call: ToolCall, tools: Mapping[str, Tool]) -> Sequence[ToolCall]:
    """Open `{"path":"a"}{"path":"b"}`, which proxies make of parallel calls (litellm#33678)."""
    tool = tools.get(call.name)
    parts = split_arguments(call.arguments, Validator(tool.parameters)) if tool else None
    if not parts:
        return [call]
    texts = [orjson.dumps(part).decode() for part in parts]
    return [
        replace(call, arguments=texts[0]),
        *(replace(call, id=call_id(), arguments=text) for text in texts[1:]),
    ]


def _inspect(call: ToolCall, tools: Mapping[str, Tool]) -> Prepared:
    tool = tools.get(call.name)
    if tool is None:
        return Prepared(call, {}, refusal=_unknown(call.name, tools))
    try:
        arguments = read_arguments(call.arguments, Validator(tool.parameters)).value
    except InvalidArguments as error:
        message = f"the arguments of {call.name} do not fit its parameters"
        refused = failure(Reason.INVALID_ARGUMENTS, message, problems=list(error.problems))
        return Prepared(call, {}, refusal=Outcome(refused, failed=True))
    if tool.requires_approval:
        message = (
            f"{call.name} needs a person's approval, and there is no way to ask for one in this conversation"
        )
        return Prepared(call, arguments, refusal=Outcome(failure(Reason.DENIED, message), failed=True))
    return Prepared(call, arguments, tool)


def _unknown(name: str, tools: Mapping[str, Tool]) -> Outcome:
    """Suggest a near name, never take it: a guess may run the wrong tool (openai-agents#2232)."""
    near = difflib.get_close_matches(name, tools, n=1)
    hint = f"; did you mean {near[0]}?" if near else "; use one of the tools you were given"
    return Outcome(failure(Reason.UNKNOWN_TOOL, f"there is no tool {name[:80]!r}{hint}"), failed=True)
