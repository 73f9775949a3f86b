"""Validation of a model's calls: known tool, valid arguments, allowed."""

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beckon_agent.core import json_values
from beckon_agent.core.context import request_id
from beckon_agent.core.model_types import Message, ToolCall, call_id
from beckon_agent.core.run_types import Agent, Options
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_contract import jsontext
from beckon_contract.failures import Reason
from beckon_contract.inputs import InputAnswer
from beckon_contract.resources.tools import Tool
from beckon_contract.schema.arguments import InvalidArguments, Validator, read_arguments, split_arguments

logger = logging.getLogger(__name__)

SHOWN_NAME = 80  # characters of a name that the model made up


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A call in need of a person's approval. Once the person allows it, the call is made with `tool`."""

    tool: Tool


@dataclass(frozen=True, slots=True)
class HandedBack:
    """A call of a client's tool, made by the client itself."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call of the model after inspection.

    It is to be made with a tool, refused, to wait for a person, or to be made by the client. The arguments
    of a refused call are those written by the model, if they are an object at all.
    """

    tool_call: ToolCall
    arguments: Mapping[str, object]
    action: Tool | CallOutcome | NeedsApproval | HandedBack
    again: bool = False
    """Whether an earlier process may have sent it already."""

    answer: InputAnswer | None = None
    """The answer of a person to the form that the tool replied with before."""

    def refused(self, reason: Reason, message: str) -> "PreparedCall":
        """Return the call as refused; an earlier refusal stays."""
        return (
            self
            if isinstance(self.action, CallOutcome)
            else replace(self, action=failed_outcome(reason, message))
        )

    def approved(self) -> "PreparedCall":
        """Return the call as a person has allowed it; a call without need of an approval stays."""
        return replace(self, action=self.action.tool) if isinstance(self.action, NeedsApproval) else self

    def handed_back(self) -> "PreparedCall":
        """Return the call for the client to make; an earlier refusal stays."""
        return self if isinstance(self.action, CallOutcome) else replace(self, action=HandedBack())

    def checked_by_origin(self, *, may_wait: bool) -> "PreparedCall":
        """Apply the rules for calls read from text.

        The call is refused, left to a person, or as before. A recovered call of a tool that writes is left
        to a person if one can decide (`may_wait`): its markup was never meant to be text, so nothing but the
        reader's rules says that it is a call.
        """
        tool, origin = self.action, self.tool_call.origin
        if origin == "api" or not isinstance(tool, Tool):
            return self
        if tool.text_calls == "Refuse":
            message = f"calls of {tool.name} are not read from text; use the tool calls of the API"
            return self.refused(Reason.DENIED, message)
        recovered_write = origin == "recovered" and not tool.read_only and may_wait
        needs_approval = tool.text_calls == "Approve" or recovered_write
        return replace(self, action=NeedsApproval(tool)) if needs_approval else self

    def as_message_part(self) -> Message:
        """Return the call for an assistant message. Its arguments are always an object."""
        function = {"name": self.tool_call.name, "arguments": jsontext.dumps(self.arguments).decode()}
        return {**self.tool_call.extra, "id": self.tool_call.id, "type": "function", "function": function}


def client_tools(options: Options, agent: Agent) -> dict[str, Tool]:
    """Return the client's tools as declared to the model, by their names."""
    return {
        theirs.name: Tool(
            name=theirs.name,
            namespace=agent.namespace,
            event_type="",
            type="",
            source=None,
            description=theirs.description,
            parameters=theirs.parameters,
            parameters_from="the request",
        )
        for theirs in options.client_tools
    }


def prepare_calls(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], *, cut_off: bool = False
) -> list[PreparedCall]:
    """Inspect the calls of one turn.

    A call with several objects as its arguments becomes several calls. If the answer was `cut_off`, at its
    token limit or because its stream ended, the last call may be half a call: then only whole JSON counts,
    because a repair would make up what is missing.
    """
    whole = list(calls)
    half = whole.pop() if cut_off and whole and not json_values.is_object(whole[-1].arguments) else None
    prepared = [_inspect_call(call, tools) for one in whole for call in _split_arguments(one, tools)]
    if half is None:
        return prepared
    return [*prepared, _cut_off(half) if half.name in tools else _inspect_call(half, tools)]


def _cut_off(call: ToolCall) -> PreparedCall:
    message = f"the arguments of {_call_text(call)} end in the middle: the answer was cut off"
    return PreparedCall(call, {}, failed_outcome(Reason.INVALID_ARGUMENTS, message))


def _split_arguments(call: ToolCall, tools: Mapping[str, Tool]) -> Sequence[ToolCall]:
    """Split arguments like `{"path":"a"}{"path":"b"}` into several calls.

    Proxies make them of parallel calls (litellm#33678).
    """
    tool = tools.get(call.name)
    if tool is None or json_values.is_object(call.arguments):
        return [call]
    parts = split_arguments(call.arguments, Validator(tool.parameters))
    if not parts:
        return [call]
    texts = [jsontext.dumps(part).decode() for part in parts]
    return [
        replace(call, arguments=texts[0]),
        *(replace(call, id=call_id(), arguments=text) for text in texts[1:]),
    ]


def _inspect_call(call: ToolCall, tools: Mapping[str, Tool]) -> PreparedCall:
    tool = tools.get(call.name)
    if tool is None:
        return PreparedCall(call, _as_written(call), _unknown_tool(call, tools))
    try:
        read = read_arguments(call.arguments, Validator(tool.parameters))
    except InvalidArguments as error:
        message = f"the arguments of {call.name} do not fit its parameters"
        refusal = failed_outcome(Reason.INVALID_ARGUMENTS, message, problems=list(error.problems))
        return PreparedCall(call, _as_written(call), refusal)
    if read.repaired:
        logger.info(
            "request %s: arguments of %s repaired: %s", request_id(), tool.name, ", ".join(read.repaired)
        )
    return PreparedCall(call, read.value, NeedsApproval(tool) if tool.requires_approval else tool)


def _as_written(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a refused call as the model wrote them.

    The conversation needs an object, so anything else becomes an empty one.
    """
    try:
        written = json_values.clean_strings(jsontext.loads(call.arguments))
    except jsontext.NotJsonError:
        return {}
    return json_values.as_mapping(written)


def _unknown_tool(call: ToolCall, tools: Mapping[str, Tool]) -> CallOutcome:
    """Suggest a near name, never take it: a guess may run the wrong tool (openai-agents#2232)."""
    near = difflib.get_close_matches(call.name[:SHOWN_NAME], tools, n=1)
    hint = f"; did you mean {near[0]}?" if near else "; use one of the tools you were given"
    return failed_outcome(Reason.UNKNOWN_TOOL, f"there is no tool {_call_text(call)!r}{hint}")


def _call_text(call: ToolCall) -> str:
    return call.name[:SHOWN_NAME]
