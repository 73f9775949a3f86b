"""The request fields of OpenAI's two APIs, and the treatment of each.

A field is sent on to the model's server, done here, or refused; none is dropped. The page of the API shows
this table, and a test compares it with the types of the `openai` package.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from beckon_agent.api.http.errors import ApiError
from beckon_agent.core import json_values
from beckon_contract.schema.arguments import Validator

Api = Literal["chat completions", "Responses"]
Treatment = Literal["sent on", "done here", "refused"]

CHAT: Api = "chat completions"
RESPONSES: Api = "Responses"
_BOTH: tuple[Api, ...] = (CHAT, RESPONSES)
_CHAT: tuple[Api, ...] = (CHAT,)
_RESPONSES: tuple[Api, ...] = (RESPONSES,)


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field of a request. `harmless` are values that a refused field may have."""

    name: str
    apis: tuple[Api, ...]
    treatment: Treatment
    meaning: str
    harmless: tuple[object, ...] = ()


_OPTIONAL = "left out for a server that refuses it"
_NEEDED = "if the server refuses it, the request fails"

REQUEST_FIELDS = (
    RequestField("model", _BOTH, "done here", "the name of an agent; the agent has its own model"),
    RequestField("messages", _CHAT, "sent on", "the conversation, after the agent's prompt"),
    RequestField("input", _RESPONSES, "sent on", "a question, or the items of a conversation"),
    RequestField("instructions", _RESPONSES, "done here", "follow the agent's prompt in this run"),
    RequestField("previous_response_id", _RESPONSES, "done here", "continues a stored run"),
    RequestField("conversation", _RESPONSES, "done here", "continues a stored conversation"),
    RequestField("stream", _BOTH, "done here", "server-sent events"),
    RequestField(
        "stream_options",
        _BOTH,
        "done here",
        "`include_usage` in chat completions; `include_obfuscation: true` is refused, for nothing is padded",
    ),
    RequestField("background", _RESPONSES, "done here", "the run continues without its client"),
    RequestField("store", _BOTH, "done here", "whether the run is stored"),
    RequestField(
        "metadata", _BOTH, "done here", "stored with the run; in chat completions it needs a stored run"
    ),
    RequestField("tools", _BOTH, "done here", "functions of the client; tools of other types are refused"),
    RequestField(
        "tool_choice", _BOTH, "done here", "the first answer of the run is forced; the rest is the model's"
    ),
    RequestField(
        "parallel_tool_calls", _BOTH, "sent on", "`false` is done here as well: one call in each answer"
    ),
    RequestField("max_tool_calls", _RESPONSES, "done here", "calls beyond it are denied"),
    RequestField("response_format", _CHAT, "sent on", "text, `json_object` or `json_schema`"),
    RequestField("text", _RESPONSES, "sent on", "`format`, as `response_format`, and `verbosity`"),
    RequestField("verbosity", _CHAT, "sent on", _NEEDED),
    RequestField("reasoning_effort", _CHAT, "sent on", _NEEDED),
    RequestField(
        "reasoning", _RESPONSES, "sent on", "`effort`; the reasoning is shown whole, whatever `summary` is"
    ),
    RequestField(
        "temperature", _BOTH, "sent on", "left out for a model that takes one temperature only"
    ),
    RequestField("top_p", _BOTH, "sent on", "left out for a reasoning model that refuses it"),
    RequestField("presence_penalty", _CHAT, "sent on", _NEEDED),
    RequestField("frequency_penalty", _CHAT, "sent on", _NEEDED),
    RequestField("logit_bias", _CHAT, "sent on", _NEEDED),
    RequestField("seed", _CHAT, "sent on", _NEEDED),
    RequestField("stop", _CHAT, "sent on", _NEEDED),
    RequestField("logprobs", _CHAT, "sent on", _NEEDED),
    RequestField("top_logprobs", _BOTH, "sent on", _NEEDED),
    RequestField(
        "include",
        _RESPONSES,
        "done here",
        "`message.output_text.logprobs` is sent on as `logprobs`; `mcp_call` and `beckon:tool_call` choose "
        "[the items](clients.md#the-items-of-a-response); reasoning goes back as text, so "
        "`reasoning.encrypted_content` adds nothing; the others name no item of an agent",
    ),
    RequestField("max_tokens", _CHAT, "sent on", "under the name that the server knows"),
    RequestField("max_completion_tokens", _CHAT, "sent on", "under the name that the server knows"),
    RequestField("max_output_tokens", _RESPONSES, "sent on", "the limit of each answer of the model"),
    RequestField("user", _BOTH, "sent on", _OPTIONAL),
    RequestField("safety_identifier", _BOTH, "sent on", _OPTIONAL),
    RequestField("prompt_cache_key", _BOTH, "sent on", _OPTIONAL),
    RequestField("prompt_cache_options", _BOTH, "sent on", _OPTIONAL),
    RequestField("prompt_cache_retention", _BOTH, "sent on", _OPTIONAL),
    RequestField("service_tier", _BOTH, "sent on", _OPTIONAL),
    RequestField("n", _CHAT, "refused", "a run has one answer: leave 'n' out or send 1", (1,)),
    RequestField(
        "truncation", _RESPONSES, "refused", "nothing is left out of a conversation: leave it out, "
        "or send 'disabled'", ("disabled",),
    ),
    RequestField(
        "modalities", _CHAT, "refused", "answers are text: leave it out, or send ['text']", (["text"],)
    ),
    RequestField("audio", _CHAT, "refused", "answers are text: leave it out"),
    RequestField("image", _RESPONSES, "refused", "answers are text: leave it out"),
    RequestField("prediction", _CHAT, "refused", "an agent predicts no output: leave it out"),
    RequestField(
        "web_search_options", _CHAT, "refused", "an agent searches with its own tools: leave it out"
    ),
    RequestField("moderation", _BOTH, "refused", "an agent moderates nothing: leave it out"),
    RequestField("functions", _CHAT, "refused", "the older form of 'tools': send 'tools' instead"),
    RequestField(
        "function_call",
        _CHAT,
        "refused",
        "the older form of 'tool_choice': send 'tool_choice' instead",
        ("auto", "none"),
    ),
    RequestField(
        "prompt", _RESPONSES, "refused", "there are no stored prompts: send 'instructions' instead"
    ),
    RequestField(
        "context_management", _RESPONSES, "refused", "an agent sends the whole conversation: leave it out"
    ),
    RequestField("access_programs", _RESPONSES, "refused", "an agent has no access programs: leave it out"),
)  # fmt: skip


def fields_of(api: Api) -> Iterator[RequestField]:
    """Yield the fields of one API."""
    return (field for field in REQUEST_FIELDS if api in field.apis)


def check_refused(body: BaseModel, api: Api) -> None:
    """Raise `ApiError` for a refused field that has a value, and for a field of the other API."""
    extra = body.model_extra or {}
    for field in REQUEST_FIELDS:
        if api not in field.apis and extra.get(field.name) is not None:
            message = f"{field.name!r} is a field of {field.apis[0]}, not of {api}; leave it out"
            raise ApiError(400, message, code="unsupported_value", param=field.name)
    for field in fields_of(api):
        if field.treatment != "refused":
            continue
        value = getattr(body, field.name)
        if value is not None and value != [] and value not in field.harmless:
            message = f"{field.name!r} is not served: {field.meaning}"
            raise ApiError(400, message, code="unsupported_value", param=field.name)
    options = getattr(body, "stream_options", None)
    if options is not None and options.include_obfuscation:
        message = "'stream_options.include_obfuscation' is not served: no event is padded; leave it out"
        param = "stream_options.include_obfuscation"
        raise ApiError(400, message, code="unsupported_value", param=param)


NotOffered = Annotated[Any, WithJsonSchema({"type": "null"})]
"""A field of the API that this agent does nothing with: refused where it is not null."""

_MetadataKey = Annotated[str, StringConstraints(max_length=64)]
_MetadataValue = Annotated[str, StringConstraints(max_length=512)]
Metadata = Annotated[dict[_MetadataKey, _MetadataValue], Field(max_length=16)]
"""OpenAI's limits for what a client may attach to an object."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]


def check_schema(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema; raise `ValueError` for an invalid one."""
    try:
        Validator(value)
    except ValueError as error:
        raise ValueError(f"is no JSON Schema (2020-12): {error}"[:300]) from None
    return value


OutputSchema = Annotated[dict[str, Any], AfterValidator(check_schema)]
"""The JSON Schema of an answer."""


class StreamOptions(BaseModel):
    """OpenAI's `stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class PromptCacheOptions(BaseModel):
    """OpenAI's `prompt_cache_options`."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: str | None = Field(None, max_length=16)


class SharedFields(BaseModel):
    """The fields that mean the same in both APIs."""

    model_config = ConfigDict(extra="allow")

    metadata: Metadata | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    top_logprobs: int | None = Field(None, ge=0, le=20)
    parallel_tool_calls: bool | None = None
    service_tier: str | None = Field(None, max_length=64)
    user: str | None = Field(None, max_length=512)
    safety_identifier: str | None = Field(None, max_length=128)
    prompt_cache_key: str | None = Field(None, max_length=512)
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    moderation: NotOffered = None

    def to_extra(self, **more: object) -> dict[str, object]:
        """Return the set fields for the model's server, with the API's own."""
        options = self.prompt_cache_options
        fields = {
            "top_p": self.top_p,
            "parallel_tool_calls": self.parallel_tool_calls,
            "service_tier": self.service_tier,
            "user": self.user,
            "safety_identifier": self.safety_identifier,
            "prompt_cache_key": self.prompt_cache_key,
            "prompt_cache_retention": self.prompt_cache_retention,
            "prompt_cache_options": options.model_dump(exclude_none=True) if options else None,
            "top_logprobs": self.top_logprobs,
            **more,
        }
        return {name: json_values.clean_strings(value) for name, value in fields.items() if value is not None}
