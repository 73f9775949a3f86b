"""Servers that take tools themselves; calls that leak into their text are recovered by strict rules.

A call is recovered only where the whole rest of the answer, from the start of a line, is markup of the
model's own family. Which family that is the model's name says; where it says nothing, all are read, and
for the models of providers that do not leak, none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from beckon_agent.dialects import deepseek, kimi, llama3, pythonic
from beckon_agent.dialects.bare_json import KNOWN
from beckon_agent.dialects.base import Allows, NewId, Reader, Rendered, everything
from beckon_agent.dialects.calls import RawCall
from beckon_agent.dialects.elements import function_element
from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.hermes import TAGS, TOOL_CALL
from beckon_agent.dialects.mistral import tool_calls
from beckon_agent.dialects.reader import Form, Grammar, MarkupReader
from beckon_agent.dialects.source import Source, Steps
from beckon_agent.dialects.typed import Toolbox
from beckon_agent.model.identifiers import call_id
from beckon_agent.model.types import Declaration, Message, TextCalls

_pythonic = pythonic.call_list(known=True)


def _bracket(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    if (yield from source.beyond_space()) == "{":
        return (yield from KNOWN.several(source, tools))
    return (yield from _pythonic(source, tools))


# Role and section tokens of ChatGLM3, MiniMax-M2 and Cohere: they say nothing to a user.
_GLM_TOKENS: Final = frozenset({"<|assistant|>"})
_MINIMAX_TOKENS: Final = frozenset({"<minimax:tool_call>", "</minimax:tool_call>"})
_COHERE_TOKENS: Final = frozenset(
    f"<|{side}_{part}|>" for side in ("START", "END") for part in ("RESPONSE", "TEXT")
)
_STEP_TOKENS: Final = frozenset({"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_end｜>"})

# Many tags are special tokens that a server strips, and then the JSON between them is all that is left.
_BARE: Final[Mapping[str, Form]] = {"{": KNOWN.one, "[": _bracket}
_TAGGED: Final[Mapping[str, Form]] = {"<tool_call>": TOOL_CALL, "<function=": function_element}
_MISTRAL: Final[Mapping[str, Form]] = {"[TOOL_CALLS]": tool_calls}
_MINIMAX: Final[Mapping[str, Form]] = {'<invoke name="': deepseek.invoke_element()}  # MiniMax-M2
_step_element = deepseek.invoke_element("steptml:")


def _step_call(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read what follows Step 3's `<｜tool_call_begin｜>`."""
    yield from source.after_space("function<｜tool_sep｜>")
    if not (yield from source.after_space('<steptml:invoke name="')):
        return None
    return (yield from _step_element(source, tools))


def _tool_calls(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read what follows `<tool_calls>`: JSON, or `<tool_call>` elements up to the end tag."""
    if (yield from source.beyond_space()) != "<":
        return (yield from TAGS["<tool_calls>"](source, tools))
    calls: list[RawCall] = []
    while (yield from source.after_space("<tool_call>")):
        found = yield from TOOL_CALL(source, tools)
        if not found:
            return None
        calls += found
    yield from source.after_space("</tool_calls>")
    return calls


_SECTION: Final[Mapping[str, Form]] = {"<tool_calls>": _tool_calls}
_STEP: Final[Mapping[str, Form]] = {
    '<steptml:invoke name="': _step_element,
    "<｜tool_call_begin｜>": _step_call,
}


def _tags(*openers: str) -> Mapping[str, Form]:
    return {opener: TAGS[opener] for opener in openers}


_ANY: Final = Grammar(
    {**_BARE, **TAGS, **deepseek.FORMS, **kimi.FORMS, **_MISTRAL, **_TAGGED, **_SECTION, **_MINIMAX, **_STEP},
    line=named_line,
    silent=llama3.SILENT | pythonic.SILENT | deepseek.SILENT | kimi.SILENT
    | _GLM_TOKENS | _MINIMAX_TOKENS | _COHERE_TOKENS | _STEP_TOKENS,
    whole=True,
)  # fmt: skip
_NONE: Final = Grammar({}, whole=True)

_FAMILIES: Final[tuple[tuple[str, Grammar], ...]] = (
    (r"glm", Grammar({**_TAGGED, **_SECTION}, line=named_line, silent=_GLM_TOKENS, whole=True)),
    (r"deepseek", Grammar({**deepseek.FORMS, **_TAGGED}, silent=deepseek.SILENT, whole=True)),
    (r"qwen|qwq|hermes", Grammar({**_TAGGED, **_BARE}, whole=True)),
    (
        r"llama",
        Grammar(
            {**_BARE, "<function=": function_element}, silent=llama3.SILENT | pythonic.SILENT, whole=True
        ),
    ),
    (r"(mis|mix|minis|codes|devs|magis|pix)tral", Grammar({**_MISTRAL, **_BARE}, whole=True)),
    (r"kimi|moonshot", Grammar(kimi.FORMS, silent=kimi.SILENT, whole=True)),
    (
        r"minimax",
        Grammar({**_MINIMAX, **_SECTION}, silent=_MINIMAX_TOKENS, whole=True),
    ),
    (r"command|cohere|c4ai", Grammar(_tags("<|START_ACTION|>"), silent=_COHERE_TOKENS, whole=True)),
    (r"jamba|hunyuan", Grammar(_SECTION, whole=True)),
    (r"granite", Grammar(_tags("<|tool_call|>", "<function_call>", "<tool_call>"), whole=True)),
    (r"(^|[/:])step-?\d", Grammar({**_STEP, **_TAGGED}, silent=_STEP_TOKENS, whole=True)),
    (r"longcat", Grammar(_tags("<longcat_tool_call>"), whole=True)),
    (r"internlm", Grammar(_tags("<|action_start|><|plugin|>"), whole=True)),
    (r"olmo|lfm", Grammar({"[": _bracket}, silent=pythonic.SILENT, whole=True)),
)  # fmt: skip

_NO_LEAKS = re.compile(r"(^|[/:])(gpt-?[345]|chatgpt|o[1345](-|$)|claude|gemini)", re.IGNORECASE)
_HOSTS_WITHOUT_LEAKS: Final = (
    "api.openai.com", "openai.azure.com", "api.anthropic.com", "generativelanguage.googleapis.com",
)  # fmt: skip


@dataclass(frozen=True)
class Native:
    """The dialect of servers with tools of their own: nothing to render, markup only by accident."""

    grammar: Grammar = field(repr=False)
    name: str = "native"
    native: bool = True

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> Rendered:
        """Return everything as it is."""
        return Rendered(tuple(messages), tuple(tools))

    def reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = everything
    ) -> Reader:
        """Return a reader that passes text and recovers calls that leaked into it."""
        return MarkupReader(self.grammar, tools, new_id, allows, "recovered")


NATIVE: Final = Native(_ANY)


def native(model: str, base_url: str, text_calls: TextCalls) -> Native:
    """Return the native dialect for a model of this name at this server."""
    if text_calls == "any":
        return NATIVE
    if text_calls == "never" or _never_leaks(model, base_url):
        return Native(_NONE)
    for pattern, grammar in _FAMILIES:
        if re.search(pattern, model, re.IGNORECASE):
            return Native(grammar)
    return NATIVE


def _never_leaks(model: str, base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    if any(host == known or host.endswith(f".{known}") for known in _HOSTS_WITHOUT_LEAKS):
        return True
    return bool(_NO_LEAKS.search(model))
