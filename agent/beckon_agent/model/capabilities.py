"""The capabilities of a model server, from a table and its refusals.

The table is by host and model. The default suits unknown servers: it sends only what all of them take. A
gateway or a local server may hide any provider, so a refusal in known words changes the profile, and the
request is sent once more.
"""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from beckon_agent.core import json_values
from beckon_agent.core.run_types import Options
from beckon_agent.model.errors import ModelRefused, ToolsNotSupported

Lowering = Literal["openai", "openai_strict", "gemini", "llama_cpp"]


@dataclass(frozen=True, slots=True)
class Profile:
    """The capabilities and needs of one model behind one server."""

    name: str = "generic"
    """Whose habits these are; for messages and logs."""

    max_tools: int = 128
    """Declarations in one request: OpenAI's cap, which others copied."""

    tool_budget: int | None = None
    """Above so many tools a small model stops calling them; `None` for large ones."""

    lowering: Lowering = "openai"
    """The JSON Schema dialect that declarations must be written in."""

    strict: bool = False
    """Whether a declaration may say `strict`; Ollama, Moonshot and others refuse it."""

    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of the limit on generated tokens."""

    forced_choice: bool = True
    """Whether `tool_choice` may be other than `auto`; else an instruction says it."""

    format_with_tools: bool = True
    """Whether a request may have both `response_format` and tools; llama.cpp refuses that."""

    constrains_output: bool | None = None
    """Whether answers keep to `response_format`; `None` until the first one shows it."""

    refuses: frozenset[str] = frozenset()
    """Names of request fields that are never sent."""

    system_role: Literal["system", "user"] = "system"
    """Who speaks the instructions where a model takes no system message (o1-mini)."""

    single_system: bool = True
    """Whether there may be but one system message, at the beginning (many chat templates)."""

    string_content: bool = False
    """Whether content must always be a string (GLM behind some gateways)."""

    assistant_after_tool: bool = False
    """Whether a user message may not follow a tool's (Mistral, code 3230)."""

    nine_char_ids: bool = False
    """Whether a call's id must be nine letters and digits without exception (Mistral, code 3280)."""

    replay_extra: bool = True
    """Whether unknown fields of a call go back with it, as Gemini's thought signatures must."""

    reasoning_replay: Literal["reasoning_content", "reasoning"] | None = None
    """The field in which the reasoning behind a tool call goes back."""

    reasoning_required: bool = False
    """Whether that field must be there, empty for want of reasoning (DeepSeek)."""

    answer_schema: bool | None = None
    """Whether a JSON Schema in `response_format` constrains answers; `None` until the first one shows it."""

    template_tools: bool = True
    """Whether the model's chat template has a place for tools; without one, llama.cpp drops them silently."""

    unstreamed: Mapping[str, object] = field(default_factory=dict)
    """Fields that a request without streaming needs (DashScope)."""

    def sends_format(self, *, with_tools: bool) -> bool:
        """True if `response_format` is sent; else an instruction says it."""
        return "response_format" not in self.refuses and (self.format_with_tools or not with_tools)

    @property
    def tool_limit(self) -> int:
        """The limit of declarations in one request."""
        return self.max_tools if self.tool_budget is None else min(self.max_tools, self.tool_budget)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Changes to the profile if both patterns match. An absent pattern always matches."""

    changes: Mapping[str, object]
    host: str = ""
    model: str = ""

    def applies(self, host: str, model: str) -> bool:
        """True if the rule is meant for this model on this host."""
        on_host = re.search(self.host, host, re.IGNORECASE) is not None
        return on_host and re.search(self.model, model, re.IGNORECASE) is not None


_OPENAI = r"(^|\.)openai\.(com|azure\.com)(:|$)|\.services\.ai\.azure\.com(:|$)"
_REASONING_MODEL = r"(^|/)(o\d|gpt-5(?!.*chat))"

# Sources: the providers' API references; pydantic-ai's profiles; gptel#1203 and litellm#6323
# (Mistral), hermes-agent#15228 (DeepSeek), hindsight#4246 (Z.AI), anything-llm#3933 (DashScope).
_RULES = (
    _Rule(
        {
            "name": "openai",
            "strict": True,
            "constrains_output": True,
            "single_system": False,
            "replay_extra": False,
        },
        host=_OPENAI,
    ),
    _Rule({"limit_field": "max_completion_tokens"}, host=r"(^|\.)openai\.com(:|$)"),
    _Rule(
        {
            "limit_field": "max_completion_tokens",
            "refuses": frozenset({"temperature", "top_p", "stop", "presence_penalty", "frequency_penalty"}),
        },
        host=_OPENAI,
        model=_REASONING_MODEL,
    ),
    _Rule({"system_role": "user", "single_system": True}, host=_OPENAI, model=r"(^|/)o1-(mini|preview)"),
    _Rule(
        {"name": "gemini", "lowering": "gemini"},
        host=r"(generativelanguage|aiplatform)\.googleapis\.com",
    ),
    _Rule({"lowering": "gemini"}, model=r"(^|/)gemini-"),
    _Rule(
        {
            "name": "mistral",
            "assistant_after_tool": True,
            "nine_char_ids": True,
            "replay_extra": False,
            "refuses": frozenset({"stream_options"}),
        },
        host=r"(^|\.)mistral\.ai(:|$)",
    ),
    _Rule(
        {"name": "deepseek", "reasoning_replay": "reasoning_content", "reasoning_required": True},
        host=r"(^|\.)deepseek\.com(:|$)",
    ),
    _Rule(
        {"name": "moonshot", "reasoning_replay": "reasoning_content"}, host=r"(^|\.)moonshot\.(cn|ai)(:|$)"
    ),
    _Rule({"name": "zhipu", "string_content": True}, host=r"(^|\.)(bigmodel\.cn|z\.ai)(:|$)"),
    _Rule(
        {"name": "dashscope", "unstreamed": {"enable_thinking": False}},
        host=r"^dashscope(-\w+)?\.aliyuncs\.com",
    ),
    _Rule({"name": "openrouter", "reasoning_replay": "reasoning"}, host=r"(^|\.)openrouter\.ai(:|$)"),
    _Rule({"name": "groq", "replay_extra": False}, host=r"(^|\.)groq\.com(:|$)"),
    _Rule({"name": "ollama"}, host=r"(^|\.)ollama\.com(:|$)|:11434$"),
)

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z])", re.IGNORECASE)
_BUDGETS = ((4.0, 8), (10.0, 16))
"""Billions of parameters up to which a model has a tool budget, and that budget (open-webui#14035)."""


def profile_for(base_url: str, model: str) -> Profile:
    """Return the profile of a model behind a base URL."""
    host = urlsplit(base_url).netloc.rpartition("@")[2]
    changes: dict[str, object] = {"tool_budget": _default_token_budget(model)}
    for rule in _RULES:
        if rule.applies(host, model):
            changes |= rule.changes
    return _with_changes(Profile(), changes)


def _with_changes(profile: Profile, changes: Mapping[str, object]) -> Profile:
    return replace(profile, **changes)  # type: ignore[arg-type]  # the rules of this module name its fields


def _default_token_budget(model: str) -> int | None:
    size = _SIZE.search(model)
    if size is None:
        return None
    billions = float(size[1]) / (1000 if size[2].lower() == "m" else 1)
    return next((budget for limit, budget in _BUDGETS if billions <= limit), None)


def learn_from_properties(profile: Profile, properties: Mapping[str, object]) -> Profile:
    """Return the profile of llama.cpp's server, by the properties that it shows.

    Older builds do not say whether the chat template has tools.
    """
    template = json_values.as_mapping(properties.get("chat_template_caps"))
    has_tools = template.get("supports_tools") is not False
    return replace(profile, template_tools=has_tools)


_DISPENSABLE = (
    "stream_options",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "stop",
    "max_completion_tokens",
    "max_tokens",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "user",
)
_REFUSAL = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|not (supported|permitted|allowed)|no longer supported"
    r"|does not support|extra (inputs|fields)|must be auto",
    re.IGNORECASE,
)

_FORMAT = re.compile(
    r"response[_ ]format|json_schema|structured output|grammar constraints with tools", re.IGNORECASE
)
_INVALID_SCHEMA = re.compile(r"invalid[_ ](json[_ ])?schema", re.IGNORECASE)

_ADAPTATIONS: tuple[tuple[re.Pattern[str], Mapping[str, object]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), changes)
    for pattern, changes in (
        (r"max_tokens.*use.*max_completion_tokens", {"limit_field": "max_completion_tokens"}),
        (
            r"(unsupported|unknown|unrecogni[sz]ed|unexpected) [^.]*max_completion_tokens"
            r"|max_completion_tokens[^.]* not (supported|permitted|allowed)",
            {"limit_field": "max_tokens"},
        ),
        (r"unexpected role .user. after role .tool.", {"assistant_after_tool": True}),
        (r"tool call id.*length of 9", {"nine_char_ids": True}),
        (
            r"reasoning_content.*must be passed back|missing reasoning_content",
            {"reasoning_replay": "reasoning_content", "reasoning_required": True},
        ),
        (r"system message must be|only one system message|multiple system messages", {"single_system": True}),
        (r"system role.*not support|does not support .system.|role .system. is not", {"system_role": "user"}),
        (r"invalid field\(s\): text|content must be a string", {"string_content": True}),
        (r"extra_content|thought_signature.*(unknown|not permitted)", {"replay_extra": False}),
        (r"\bstrict\b", {"strict": False}),
    )
)


def adapted_profile(
    profile: Profile, error: ModelRefused, sent: Mapping[str, object], needed: Container[str] = ()
) -> Profile | None:
    """Return the profile learnt from a refusal, `None` without a change.

    `sent` is the body that was refused. Its `needed` fields cannot be left out.
    """
    in_words = _fields_for_words(profile, error, sent)
    if in_words is not None:
        return _with_changes(profile, in_words)
    for pattern, changes in _ADAPTATIONS:
        if pattern.search(error.message):
            learnt = _with_changes(profile, changes)
            if learnt != profile:
                return learnt
    if _REFUSAL.search(error.message):
        for name in _DISPENSABLE:
            if name in sent and name not in needed and _names_field(error, name):
                return replace(profile, refuses=profile.refuses | {name})
    return None


def _fields_for_words(
    profile: Profile, error: ModelRefused, sent: Mapping[str, object]
) -> Mapping[str, object] | None:
    """Return the change after the refusal of a field that an instruction can replace."""
    native = not isinstance(error, ToolsNotSupported)
    if native and "tool_choice" in sent and _names_field(error, "tool_choice"):
        return {"forced_choice": False}
    if "response_format" not in sent or not _FORMAT.search(error.message):
        return None
    if _INVALID_SCHEMA.search(error.message):  # this schema, but not every one
        return None
    if "tools" in sent:
        return {"format_with_tools": False}
    return {"refuses": profile.refuses | {"response_format"}}


def needed_fields(options: Options) -> frozenset[str]:
    """Return the fields of a request that must not be left out."""
    limits = ("max_tokens", "max_completion_tokens") if options.max_tokens else ()
    stop = ("stop",) if options.stop else ()
    return frozenset(options.extra).difference(_DISPENSABLE, ("tool_choice",)) | {*limits, *stop}


def find_refused_field(error: ModelRefused, needed: Iterable[str]) -> str | None:
    """Return the needed field named by a refusal, if there is one."""
    return next((name for name in sorted(needed, key=len, reverse=True) if _names_field(error, name)), None)


def _names_field(error: ModelRefused, name: str) -> bool:
    """True if a refusal names a field. A word that sentences have, too, must be quoted or a path."""
    word = name.replace("_", "[_ ]")
    pattern = rf"['\"`.]{word}\b" if name in ("user", "stop", "seed") else rf"\b{word}\b"
    return re.search(pattern, error.message, re.IGNORECASE) is not None
