"""Conversations as text, for models on servers without tools.

The outcome uses only roles that every chat server knows, one system message at most and in
front, and no two messages of one role in a row: some chat templates refuse anything else.

Texts of users, tools and descriptions go in with a blank in all markup, so that no template and
no model takes it for a turn of another role: `< |assistant|>`, `< tool_call>`, `[ TOOL_CALLS]`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beckon_agent.core.model_types import Declaration, Message, call_id
from beckon_agent.dialects.base import Allows, NewId, Reader, RenderedConversation, allow_everything
from beckon_agent.dialects.json_text import parse_json
from beckon_agent.dialects.reader import Grammar, MarkupReader

_MARKUP = re.compile(
    r"<(?=\|[^\s|<>]{1,40}\|>)"
    r"|<(?=/?｜[^\s<>]{1,40}[>\s])"
    r"|<(?=/?(?:tool_calls?|tool_response|tool_sep|tools|function_calls?|function_results|arg_key|arg_value"
    r"|longcat_tool_call|minimax:tool_call)>)"
    r"|<(?=/function>|/?steptml:|function=|parameter=|invoke name=)"
    r"|\[(?=/?(?:TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|ARGS|CALL_ID|INST|SYSTEM_PROMPT)\])"
    r"|\"(?=function(?:Call|Response)\"\s*:)"
)


def escape_markup(text: str) -> str:
    """Return text with a blank in all possible markup of dialects. The rest is as it was."""
    return _MARKUP.sub(lambda match: f"{match[0]} ", text)


@dataclass(frozen=True, slots=True)
class WriteCall:
    """A call of the history. `arguments` is empty if they were no object."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class TextDialect:
    """A dialect with tools in the prompt, and calls and results in the text.

    `instructions` describes the tools in the system message, `call` writes one call and
    `result` one result (name of the tool, content); `result_role` is the role of results.
    `opening` and `closing` stand around all calls of a turn, `joiner` between them, and
    `divider` between the text of the turn and its calls.
    """

    name: str
    grammar: Grammar = field(repr=False)
    instructions: Callable[[Sequence[Declaration]], str]
    call: Callable[[WriteCall], str]
    result: Callable[[str, str], str]
    result_role: str = "user"
    opening: str = ""
    closing: str = ""
    joiner: str = "\n"
    divider: str = "\n"
    stop: tuple[str, ...] = ()
    native: bool = False

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> RenderedConversation:
        """Return the conversation as text; the tools stand in the system message."""
        system = [
            escape_markup(text_of(message.get("content"))) for message in messages if _is_system(message)
        ]
        if tools:
            system.append(self.instructions(tools))
        texts: list[Message] = (
            [{"role": "system", "content": "\n\n".join(filter(None, system))}] if system else []
        )
        for message in self._turns(messages):
            _append_message(texts, message)
        return RenderedConversation(tuple(texts), (), self.stop if tools else ())

    def make_reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = allow_everything
    ) -> Reader:
        """Return a reader for one answer of the model. Calls refused by `allows` stay text."""
        return MarkupReader(self.grammar, tools, new_id, allows)

    def _turns(self, messages: Sequence[Message]) -> Iterator[Message]:
        names: dict[str, str] = {}
        for message in messages:
            role = message.get("role")
            if role == "assistant":
                calls = message.get("tool_calls") or []
                names |= {str(call.get("id")): _to_written_call(call).name for call in calls}
                yield {
                    "role": "assistant",
                    "content": self._write_answer(escape_markup(text_of(message.get("content"))), calls),
                }
            elif role == "tool":
                name = names.get(str(message.get("tool_call_id")), str(message.get("name") or "tool"))
                yield {
                    "role": self.result_role,
                    "content": self.result(name, escape_markup(text_of(message.get("content")))),
                }
            elif not _is_system(message):
                yield {"role": role, "content": _escaped_parts(message.get("content") or "")}

    def _write_answer(self, text: str, calls: Sequence[Mapping[str, Any]]) -> str:
        if not calls:
            return text
        written = self.joiner.join(self.call(_to_written_call(call)) for call in calls)
        return (text and text + self.divider) + self.opening + written + self.closing


def describe_tool(tool: Declaration) -> dict[str, object]:
    """Return name, description and parameters of a declaration, as they go into a prompt."""
    function = tool.get("function", tool)
    return {
        "name": function.get("name"),
        "description": escape_markup(str(function.get("description", ""))),
        "parameters": _escape_descriptions(
            function.get("parameters") or {"type": "object", "properties": {}}
        ),
    }


def _escape_descriptions(schema: object) -> object:
    """Return a schema with its descriptions escaped; names and values stay as they are."""
    if isinstance(schema, list):
        return [_escape_descriptions(member) for member in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: escape_markup(member)
        if key in ("description", "title") and isinstance(member, str)
        else _escape_descriptions(member)
        for key, member in schema.items()
    }


def _escaped_parts(content: object) -> object:
    """Return the content of a message with its text escaped.

    It is a string, or parts with text in some of them.
    """
    if isinstance(content, str):
        return escape_markup(content)
    if not isinstance(content, list):
        return content
    return [
        {**part, "text": escape_markup(str(part["text"]))}
        if isinstance(part, Mapping) and "text" in part
        else part
        for part in content
    ]


def join_lines(*parts: str) -> str:
    """Join the parts of a prompt, one a line."""
    return "\n".join(parts)


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, a list of parts, or nothing."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")


def _to_written_call(call: Mapping[str, Any]) -> WriteCall:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except ValueError:
            arguments = {}
    return WriteCall(str(function.get("name")), arguments if isinstance(arguments, Mapping) else {})


def _append_message(messages: list[Message], message: Message) -> None:
    last = messages[-1] if messages else {}
    if last.get("role") != message["role"]:
        messages.append(message)
    elif isinstance(last["content"], str) and isinstance(message["content"], str):
        last["content"] = "\n\n".join(filter(None, [last["content"], message["content"]]))
    else:
        last["content"] = [*_content_parts(last["content"]), *_content_parts(message["content"])]


def _content_parts(content: object) -> list[object]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
