"""Servers that take tools themselves; raw markup that slips into their text is read all the same."""

from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects import deepseek, kimi, llama3, pythonic
from beckon_agent.dialects.bare_json import KNOWN
from beckon_agent.dialects.base import NewId, Reader, Rendered
from beckon_agent.dialects.calls import RawCall
from beckon_agent.dialects.elements import function_element
from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.hermes import TAGS
from beckon_agent.dialects.mistral import tool_calls
from beckon_agent.dialects.reader import Grammar, MarkupReader
from beckon_agent.dialects.source import Source, Steps
from beckon_agent.dialects.typed import Toolbox
from beckon_agent.model.identifiers import call_id
from beckon_agent.model.types import Declaration, Message

_pythonic = pythonic.call_list(known=True)


def _bracket(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    if (yield from source.beyond_space()) == "{":
        return (yield from KNOWN.several(source, tools))
    return (yield from _pythonic(source, tools))


# Role and section tokens of ChatGLM3, MiniMax-M2 and Cohere: they say nothing to a user.
_TOKENS: Final = frozenset({
    "<|assistant|>", "<minimax:tool_call>", "</minimax:tool_call>",
    *(f"<|{side}_{part}|>" for side in ("START", "END") for part in ("RESPONSE", "TEXT")),
})  # fmt: skip

_GRAMMAR: Final = Grammar(
    {
        **KNOWN.forms,
        **TAGS,
        **deepseek.FORMS,
        **kimi.FORMS,
        "[": _bracket,
        "[TOOL_CALLS]": tool_calls,
        "<function=": function_element,
        '<invoke name="': deepseek.invoke_element(),  # MiniMax-M2
        '<steptml:invoke name="': deepseek.invoke_element("steptml:"),  # Step 3
    },
    line=named_line,
    silent=llama3.SILENT | pythonic.SILENT | deepseek.SILENT | kimi.SILENT | _TOKENS,
)


class _Native:
    """The dialect of servers with tools of their own: nothing to render, markup only by accident."""

    name = "native"
    native = True

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> Rendered:
        """Return everything as it is."""
        return Rendered(tuple(messages), tuple(tools))

    def reader(self, tools: Sequence[Declaration], new_id: NewId = call_id) -> Reader:
        """Return a reader that passes text and catches what such servers let through."""
        return MarkupReader(_GRAMMAR, tools, new_id)


NATIVE: Final = _Native()
