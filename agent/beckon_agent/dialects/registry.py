"""All dialects by name, and the native one with its recovery of leaked calls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from beckon_agent.core.model_types import Declaration, Message, call_id
from beckon_agent.dialects import bare_json, deepseek, pythonic
from beckon_agent.dialects.bare_json import KNOWN, LLAMA3, PROMPTED
from beckon_agent.dialects.base import (
    Allows,
    Dialect,
    NewId,
    RawCall,
    Reader,
    RenderedConversation,
    ToolSchemas,
    allow_everything,
    function_element,
)
from beckon_agent.dialects.chatglm import CHATGLM3, CHATGLM3_OBSERVATION, GLM4
from beckon_agent.dialects.deepseek import DEEPSEEK
from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.hermes import HERMES, QWEN3_CODER, TAGS, TOOL_CALL
from beckon_agent.dialects.json_text import any_json
from beckon_agent.dialects.mistral import MISTRAL, tool_calls
from beckon_agent.dialects.pythonic import PYTHONIC
from beckon_agent.dialects.reader import Form, Grammar, MarkupReader, until_closer
from beckon_agent.dialects.text_parser import Steps, TextSource
from beckon_contract.resources.agent_resource import TextCalls

_CALL_END: Final = "<|tool_call_end|>"
_ID: Final = re.compile(r"\s*(?:functions\.)?(?P<name>[\w.\-]+):\d+\s*")
_CLOSED: Final = "<|close|>call<|sep|>"
_SEP: Final = "<|sep|>"

_KIMI_SILENT: Final = frozenset({
    "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>",
})  # fmt: skip
_KIMI_FRAMING: Final = frozenset({
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
    "<|open|>tools<|sep|>", "<|close|>tools<|sep|>",
})  # fmt: skip


def numbered_call(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read K2's `functions.NAME:0<|tool_call_argument_begin|>{…}`."""
    head, begin = yield from source.take_until("<|tool_call_argument_begin|>", _CALL_END)
    match = _ID.fullmatch(head)
    yield from source.skip_blanks()
    if match is None or begin == _CALL_END or (yield from source.peek()) != "{":
        yield from source.take_until(_CALL_END)
        return ()
    arguments = yield from any_json(source, _CALL_END)
    yield from source.after_space(_CALL_END)
    return [RawCall(match["name"], arguments)]


def opened_call(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read K3's call after `<|open|>call tool="`."""
    name, _ = yield from source.take_until('"')
    yield from source.take_until(_SEP)
    arguments: dict[str, object] = {}
    while (yield from source.after_space('<|open|>argument key="')):
        key, _ = yield from source.take_until('"')
        attributes, _ = yield from source.take_until(_SEP)
        text, _ = yield from source.take_until("<|close|>argument<|sep|>")
        arguments[key] = text if 'type="string"' in attributes else tools.to_typed_value(name, key, text)
    if not (yield from source.after_space(_CLOSED, "<|close|>toolscall<|sep|>")):
        raise source.error_here()
    return [RawCall.from_parsed(name, arguments)]


_KIMI_FORMS: Final = {
    "<|tool_call_begin|>": numbered_call,
    '<|open|>call tool="': until_closer(_CLOSED, opened_call),
    '<|open|>toolscall tool="': until_closer(_CLOSED, opened_call),
}


_pythonic = pythonic.call_list(known=True)


def _read_bracket(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    if (yield from source.beyond_space()) == "{":
        return (yield from KNOWN.read_list(source, tools))
    return (yield from _pythonic(source, tools))


# Tokens of turns of ChatGLM3 and Cohere, and tokens around calls of MiniMax-M2 and Step 3.
_GLM_TOKENS: Final = frozenset({"<|assistant|>"})
_MINIMAX_TOKENS: Final = frozenset({"<minimax:tool_call>", "</minimax:tool_call>"})
_COHERE_TOKENS: Final = frozenset(
    f"<|{side}_{part}|>" for side in ("START", "END") for part in ("RESPONSE", "TEXT")
)
_STEP_TOKENS: Final = frozenset({"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_end｜>"})

# Many tags are special tokens that a server strips, and then the JSON between them is all that is left.
_BARE: Final[Mapping[str, Form]] = {"{": KNOWN.read_object, "[": _read_bracket}
_TAGGED: Final[Mapping[str, Form]] = {"<tool_call>": TOOL_CALL, "<function=": function_element}
_MISTRAL: Final[Mapping[str, Form]] = {"[TOOL_CALLS]": tool_calls}
_MINIMAX: Final[Mapping[str, Form]] = {'<invoke name="': deepseek.invoke_element()}  # MiniMax-M2
_step_element = deepseek.invoke_element("steptml:")


def _step_call(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read Step 3's call after `<｜tool_call_begin｜>`."""
    yield from source.after_space("function<｜tool_sep｜>")
    if not (yield from source.after_space('<steptml:invoke name="')):
        return None
    return (yield from _step_element(source, tools))


def _tool_calls(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read calls after `<tool_calls>`. They are JSON, or `<tool_call>` elements up to the end tag."""
    if (yield from source.beyond_space()) != "<":
        return (yield from TAGS["<tool_calls>"](source, tools))
    calls: list[RawCall] = []
    while (yield from source.after_space("<tool_call>")):
        read = yield from TOOL_CALL(source, tools)
        if not read:
            return None
        calls += read
    yield from source.after_space("</tool_calls>")
    return calls


_SECTION: Final[Mapping[str, Form]] = {"<tool_calls>": _tool_calls}
_STEP: Final[Mapping[str, Form]] = {
    '<steptml:invoke name="': _step_element,
    "<｜tool_call_begin｜>": _step_call,
}


def _tag_forms(*openers: str) -> Mapping[str, Form]:
    return {opener: TAGS[opener] for opener in openers}


_ANY: Final = Grammar(
    {**_BARE, **TAGS, **deepseek.FORMS, **_KIMI_FORMS, **_MISTRAL, **_TAGGED,
     **_SECTION, **_MINIMAX, **_STEP},
    line=named_line,
    silent=bare_json.SILENT | pythonic.SILENT | deepseek.SILENT | _KIMI_SILENT
    | _GLM_TOKENS | _COHERE_TOKENS,
    framing=bare_json.FRAMING | pythonic.FRAMING | deepseek.FRAMING | _KIMI_FRAMING
    | _MINIMAX_TOKENS | _STEP_TOKENS,
    whole=True,
)  # fmt: skip
_NONE: Final = Grammar({}, whole=True)

_FAMILIES: Final[tuple[tuple[str, Grammar], ...]] = (
    (r"glm", Grammar({**_TAGGED, **_SECTION}, line=named_line, silent=_GLM_TOKENS, whole=True)),
    (r"deepseek", Grammar(
        {**deepseek.FORMS, **_TAGGED}, silent=deepseek.SILENT, framing=deepseek.FRAMING, whole=True
    )),
    (r"qwen|qwq|hermes", Grammar({**_TAGGED, **_BARE}, whole=True)),
    (
        r"llama",
        Grammar(
            {**_BARE, "<function=": function_element},
            silent=bare_json.SILENT | pythonic.SILENT,
            framing=bare_json.FRAMING | pythonic.FRAMING,
            whole=True,
        ),
    ),
    (r"(mis|mix|minis|codes|devs|magis|pix)tral", Grammar({**_MISTRAL, **_BARE}, whole=True)),
    (r"kimi|moonshot", Grammar(_KIMI_FORMS, silent=_KIMI_SILENT, framing=_KIMI_FRAMING, whole=True)),
    (
        r"minimax",
        Grammar({**_MINIMAX, **_SECTION}, framing=_MINIMAX_TOKENS, whole=True),
    ),
    (r"command|cohere|c4ai", Grammar(_tag_forms("<|START_ACTION|>"), silent=_COHERE_TOKENS, whole=True)),
    (r"jamba|hunyuan", Grammar(_SECTION, whole=True)),
    (r"granite", Grammar(_tag_forms("<|tool_call|>", "<function_call>", "<tool_call>"), whole=True)),
    (r"(^|[/:])step-?\d", Grammar({**_STEP, **_TAGGED}, framing=_STEP_TOKENS, whole=True)),
    (r"longcat", Grammar(_tag_forms("<longcat_tool_call>"), whole=True)),
    (r"internlm", Grammar(_tag_forms("<|action_start|><|plugin|>"), whole=True)),
    (r"olmo|lfm", Grammar(
        {"[": _read_bracket}, silent=pythonic.SILENT, framing=pythonic.FRAMING, whole=True
    )),
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

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> RenderedConversation:
        """Return everything as it is."""
        return RenderedConversation(tuple(messages), tuple(tools))

    def make_reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = allow_everything
    ) -> Reader:
        """Return a reader for text and for calls leaked into it."""
        return MarkupReader(self.grammar, tools, new_id, allows, "recovered")


NATIVE: Final = Native(_ANY)


@lru_cache(maxsize=64)
def native_dialect(model: str, base_url: str, text_calls: TextCalls) -> Native:
    """Return the native dialect for a model of this name at this server."""
    if text_calls == "any":
        return NATIVE
    if text_calls == "never" or _has_no_leaks(model, base_url):
        return Native(_NONE)
    for pattern, grammar in _FAMILIES:
        if re.search(pattern, model, re.IGNORECASE):
            return Native(grammar)
    return NATIVE


def _has_no_leaks(model: str, base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    if any(host == known or host.endswith(f".{known}") for known in _HOSTS_WITHOUT_LEAKS):
        return True
    return bool(_NO_LEAKS.search(model))


_ALL: Final[tuple[Dialect, ...]] = (
    NATIVE, PROMPTED, CHATGLM3, CHATGLM3_OBSERVATION,
    HERMES, LLAMA3, MISTRAL, PYTHONIC, DEEPSEEK, QWEN3_CODER, GLM4,
)  # fmt: skip

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({one.name: one for one in _ALL})

_GUESSES: Final = (
    (r"chatglm-?3", CHATGLM3),
    (r"glm-?[4-9]", GLM4),
    (r"deepseek", DEEPSEEK),
    (r"qwen-?3(\.\d+)?-?coder|qwen-?3\.5", QWEN3_CODER),
    (r"qwen|qwq|hermes", HERMES),
    (r"llama-?4", PYTHONIC),
    (r"llama-?3", LLAMA3),
    (r"(mis|mix|minis|codes|devs|magis|pix)tral", MISTRAL),
)


def dialect_named(name: str) -> Dialect:
    """Return the dialect of this name; raise ValueError with all names."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(f"there is no dialect {name!r}; choose one of: {', '.join(DIALECTS)}") from None


def guess_dialect(model_name: str) -> Dialect:
    """Return the text dialect of a model's training, by the model's name.

    For unknown names it is `prompted`.
    """
    for pattern, dialect in _GUESSES:
        if re.search(pattern, model_name, re.IGNORECASE):
            return dialect
    return PROMPTED
