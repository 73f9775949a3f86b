"""The input of a request as chat messages.

It may contain items of an earlier response, sent back by the client.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.content import (
    Content,
    Part,
    SchemaOf,
    chat_content,
    non_text_parts,
    read_part,
    text_of,
    unsupported_error,
)
from beckon_agent.api.responses.output import Item
from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, Message
from beckon_agent.model.messages import is_blank

_SHOWN = 40


class InputMessage(BaseModel):
    """A message, whose type may be left out."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class FunctionCallInput(BaseModel):
    """A call of a client tool."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str


class FunctionOutputInput(BaseModel):
    """The client's answer to a call."""

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1)
    output: Content


class McpCallInput(BaseModel):
    """A call of a cluster tool, with its result."""

    type: Literal["mcp_call", "beckon:tool_call"]
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str
    output: str | None = None
    error: Any = None


class ReasoningInputText(BaseModel):
    """A piece of reasoning."""

    text: str


class ReasoningInput(BaseModel):
    """Reasoning of the model."""

    type: Literal["reasoning"]
    content: list[ReasoningInputText] | None = None
    summary: list[ReasoningInputText] | None = None

    def read_text(self) -> str:
        """Return the text of the reasoning, or else of its summary."""
        return "".join(part.text for part in self.content or self.summary or ())


class CompactionInput(BaseModel):
    """A conversation that was compacted by this API."""

    type: Literal["compaction"]
    encrypted_content: str = Field(max_length=10_485_760)


class ItemReference(BaseModel):
    """An item of an earlier response, by its id."""

    type: Literal["item_reference"]
    id: str = Field(min_length=1)


Ignored = Literal[
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "beckon:approval_request",
    "beckon:approval_response",
]
_IGNORED = get_args(Ignored)


class IgnoredItem(BaseModel):
    """An item of an earlier response without a part in the conversation.

    Approval responses at the end of an input are decisions, see `create.read_answers`.
    """

    type: Ignored


InputItem = Annotated[
    Item,
    SchemaOf(
        InputMessage
        | FunctionCallInput
        | FunctionOutputInput
        | McpCallInput
        | ReasoningInput
        | CompactionInput
        | ItemReference
        | IgnoredItem
    ),
]
"""One item of an input, as plain data; `to_messages` validates it."""


@dataclass(slots=True)
class _InputReader:
    """Builds the messages of an input.

    One turn of the model is one message, whatever the number of its items.
    """

    messages: list[Message] = field(default_factory=list)
    calls: list[dict[str, object]] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    shown: list[Part] = field(default_factory=list)

    def add_text(self, text: str) -> None:
        """Add text of the model. After a call it begins the next turn."""
        if self.calls:
            self.close_turn()
        self.texts.append(text)

    def add_reasoning(self, text: str) -> None:
        """Add reasoning of the model. After text or a call it begins the next turn."""
        if self.calls or self.texts:
            self.close_turn()
        self.thought.append(text)

    def add_call(self, call_id: str, name: str, arguments: str) -> None:
        """Add a tool call of the model."""
        if self.shown:
            self.close_turn()
        function = {"name": name, "arguments": arguments}
        self.calls.append({"id": call_id, "type": "function", "function": function})

    def add_result(self, message: Message) -> None:
        """Add the result of a tool call."""
        self.results.append(message)

    def add_message(self, message: Message) -> None:
        """Add a message of another role; it ends the model's turn."""
        self.close_turn()
        self.messages.append(message)

    def close_turn(self) -> None:
        """End the model's turn, with the results of its tools."""
        if self.texts or self.thought or self.calls:
            message: Message = {"role": "assistant", "content": "".join(self.texts) or None, CLAIMED: True}
            if self.thought:
                message["reasoning_content"] = "".join(self.thought)
            if self.calls:
                message["tool_calls"] = list(self.calls)
            self.messages.append(message)
        self.messages.extend(self.results)
        if self.shown:  # the answer of a tool is text for most servers: images follow as the user's
            self.messages.append({"role": "user", "content": list(self.shown)})
        for group in (self.texts, self.thought, self.calls, self.results, self.shown):
            group.clear()


def to_messages(given: str | Sequence[Item], *, alone: bool) -> list[Message]:
    """Return the messages of an input.

    `alone` is true if nothing comes before the input: results of calls missing from it are refused then.
    Raises `ApiError` for items and content that cannot be sent to a model.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    conversation = _InputReader()
    known: set[str] = set()
    for index, item in enumerate(given):
        place = f"input.{index}"
        kind = str("message" if item.get("type") is None else item["type"])
        if kind in _IGNORED:
            continue
        called = str(item.get("call_id"))
        if kind == "function_call":
            known.add(called)
        if kind == "function_call_output" and alone and called not in known:
            message = f"there is no function_call with the call_id {called[:_SHOWN]!r} before it"
            raise ApiError(400, f"{place}: {message}", code="invalid_request", param=place)
        _find_reader(kind, place)(conversation, item, place)
    conversation.close_turn()
    return conversation.messages


def says_something(messages: Sequence[Message]) -> bool:
    """True if the messages contain anything to answer."""
    asking = [message for message in messages if message["role"] == "user"] or messages
    return any(message.get("tool_calls") or not is_blank(message.get("content")) for message in asking)


def _find_reader(kind: str, place: str) -> Callable[[_InputReader, Item, str], None]:
    reader = _READERS.get(kind)
    if reader is None:
        message = f"items of the type {kind[:_SHOWN]!r} are not taken; this agent takes {', '.join(_READERS)}"
        raise unsupported_error(place, message)
    return reader


def _read_message(conversation: _InputReader, item: Item, place: str) -> None:
    message = read_part(InputMessage, item, place)
    content = chat_content(message.content, f"{place}.content")
    if message.role == "assistant":
        conversation.add_text(text_of(content))
    elif message.role == "user":
        conversation.add_message({"role": "user", "content": content})
    else:
        if not isinstance(content, str):
            raise unsupported_error(f"{place}.content", f"a {message.role} message is text alone")
        conversation.add_message({"role": "system", "content": content})


def _read_function_call(conversation: _InputReader, item: Item, place: str) -> None:
    call = read_part(FunctionCallInput, item, place)
    if conversation.results:
        conversation.close_turn()
    conversation.add_call(call.call_id, call.name, call.arguments)


def _read_function_output(conversation: _InputReader, item: Item, place: str) -> None:
    answer = read_part(FunctionOutputInput, item, place)
    content = chat_content(answer.output, f"{place}.output")
    conversation.add_result({"role": "tool", "tool_call_id": answer.call_id, "content": text_of(content)})
    conversation.shown.extend(non_text_parts(content))


def _read_mcp_call(conversation: _InputReader, item: Item, place: str) -> None:
    call = read_part(McpCallInput, item, place)
    conversation.add_call(call.id, call.name, call.arguments)
    output = (
        call.output if call.error is None else json_values.to_json({"error": _failure_content(call.error)})
    )
    answer = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": output or ""}
    conversation.add_result(answer)


def _failure_content(error: object) -> object:
    content = json_values.as_mapping(error).get("content")
    return error if content is None else content


def _read_reasoning(conversation: _InputReader, item: Item, place: str) -> None:
    conversation.add_reasoning(read_part(ReasoningInput, item, place).read_text())


def _read_compaction(conversation: _InputReader, item: Item, place: str) -> None:
    encoded = read_part(CompactionInput, item, place).encrypted_content
    try:
        summary = base64.b64decode(encoded, validate=True).decode()
    except ValueError as error:
        message = f"{place}: the content is not of this API; send an item of POST /v1/responses/compact"
        raise ApiError(400, message, code="invalid_request", param=place) from error
    conversation.add_message({"role": "user", "content": f"A summary of our conversation so far:\n{summary}"})


_READERS: dict[str, Callable[[_InputReader, Item, str], None]] = {
    "message": _read_message,
    "function_call": _read_function_call,
    "function_call_output": _read_function_output,
    "mcp_call": _read_mcp_call,
    "beckon:tool_call": _read_mcp_call,
    "reasoning": _read_reasoning,
    "compaction": _read_compaction,
}
