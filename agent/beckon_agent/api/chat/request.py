"""Requests of chat completions, and the messages hidden from their clients.

The work of a run before it handed a call to its client is stored until the client comes back with the
result of the call.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.request_fields import (
    CHAT,
    Effort,
    NotOffered,
    OutputSchema,
    SharedFields,
    Verbosity,
    check_refused,
)
from beckon_agent.api.responses.content import check_chat_part, read_part, unsupported_error
from beckon_agent.api.responses.request import (
    AllowedTools,
    FunctionTool,
    NamedFunction,
    ToolChoiceOptions,
    read_choice,
)
from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, Message
from beckon_agent.core.records import Ended, NewRun
from beckon_agent.core.run_types import ClientTool, Options
from beckon_agent.model.messages import is_blank
from beckon_agent.store.base import Store

FACE = "chat"
"""What it is stored under."""

_HOLD_SECONDS = 10.0
_HANDED = re.compile(r"(chat_[0-9a-f]{32})\.(.+)", re.DOTALL)
_MAX_RUNS = 100  # of one request


@dataclass(frozen=True, slots=True)
class HandedCalls:
    """Stores the steps of an owner's runs before a client call.

    The id of a handed call contains the id of its run.
    """

    store: Store
    owner: str
    agent: str

    async def store_messages(self, run: str, added: Sequence[Message]) -> None:
        """Store the messages added by a run to its conversation.

        Nothing is stored if the client sees all of them.
        """
        if len(added) < 2:
            return
        new = NewRun(id=run, owner=self.owner, agent=self.agent, face=FACE, input=added)
        await self.store.runs.create(new, holder=run, seconds=_HOLD_SECONDS)
        await self.store.runs.end_run(run, run, Ended("completed", "client_call", added=()))

    async def restore_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return a conversation with the messages hidden from its client.

        The ids of calls are the model's own again.
        """
        restored: list[Message] = []
        known = 0
        for message in messages:
            run = _run_of(message) if message.get("role") == "assistant" else None
            known += run is not None
            stored = await self._stored_messages(run) if run is not None and known <= _MAX_RUNS else []
            restored += stored or [_with_own_ids(message)]
        return restored

    async def _stored_messages(self, run_id: str) -> list[Message]:
        run = await self.store.runs.get(run_id)
        if run is None or run.owner != self.owner or run.face != FACE:
            return []
        return await self.store.runs.load_messages(run_id)


def new_run_id() -> str:
    """Return a new run id."""
    return f"chat_{secrets.token_hex(16)}"


def handed_id(run: str, call_id: str) -> str:
    """Return the id of a call handed to a client."""
    return f"{run}.{call_id}"


def _run_of(message: Message) -> str | None:
    for call in json_values.as_sequence(message.get("tool_calls")):
        match = _HANDED.fullmatch(json_values.as_text(json_values.as_mapping(call).get("id")))
        if match:
            return match[1]
    return None


def _with_own_ids(message: Message) -> Message:
    match message.get("role"):
        case "assistant" if calls := json_values.as_sequence(message.get("tool_calls")):
            own = [
                {**json_values.as_mapping(call), "id": _own_id(json_values.as_mapping(call).get("id"))}
                for call in calls
            ]
            return {**message, "tool_calls": own, CLAIMED: _run_of(message) is None}
        case "tool":
            return {**message, "tool_call_id": _own_id(message.get("tool_call_id"))}
    return message


def _own_id(call_id: object) -> str:
    match = _HANDED.fullmatch(json_values.as_text(call_id))
    return match[2] if match else json_values.as_text(call_id)


def client_tools(tools: Sequence[object]) -> tuple[ClientTool, ...]:
    """Return the functions of a request; raises `ApiError` for tools of another kind."""
    return tuple(_client_tool(json_values.as_mapping(tool), f"tools.{at}") for at, tool in enumerate(tools))


class ChosenFunction(BaseModel):
    """The name of a function."""

    name: str = Field(min_length=1)


class NamedChatFunction(BaseModel):
    """One function, of the client or of the cluster."""

    type: Literal["function"]
    function: ChosenFunction


class AllowedChatTools(BaseModel):
    """The tools that the model may call, of all that it is shown."""

    mode: Literal["auto", "required"]
    tools: list[NamedChatFunction] = Field(max_length=1000)


def read_chat_choice(choice: object) -> ToolChoiceOptions:
    """Return the run options for a `tool_choice`. Raises `ApiError` for an invalid one."""
    fields = json_values.as_mapping(choice)
    match fields.get("type", choice):
        case None | "auto" | "none" | "required" as word if word == choice:
            return read_choice(word)
        case "function":
            function = read_part(NamedChatFunction, choice, "tool_choice")
            return read_choice(NamedFunction(type="function", name=function.function.name))
        case "allowed_tools":
            place = "tool_choice.allowed_tools"
            allowed = read_part(AllowedChatTools, fields.get("allowed_tools"), place)
            names = [{"name": tool.function.name} for tool in allowed.tools]
            return read_choice(AllowedTools(type="allowed_tools", mode=allowed.mode, tools=names))
    message = "must be 'auto', 'none', 'required', or an object that names a function or 'allowed_tools'"
    raise unsupported_error("tool_choice", message)


def _client_tool(tool: Mapping[str, object], place: str) -> ClientTool:
    if tool.get("type") != "function":
        message = (
            f"tools of the type {str(tool.get('type'))[:40]!r} are not offered: the agent brings the "
            "cluster's tools itself, and calls them; a request may bring tools of the type 'function'"
        )
        raise unsupported_error(f"{place}.type", message)
    function = tool.get("function")
    if not isinstance(function, Mapping):
        raise ApiError(400, f"{place}.function: must be an object", code="invalid_request", param=place)
    document = {**function, "type": "function"}
    return read_part(FunctionTool, document, f"{place}.function").to_client_tool()


# Of all its prompts that quote the conversation: the heading, and then the quotation.
_QUOTES = re.compile(r"\s*### Task:\s.*<chat_history>", re.DOTALL)


def is_side_request(messages: Sequence[Message]) -> bool:
    """True if this is a task about a conversation. Such a request is no conversation itself."""
    conversation = [message for message in messages if message.get("role") not in ("system", "developer")]
    if len(conversation) != 1 or conversation[0].get("role") != "user":
        return False
    content = conversation[0].get("content")
    return isinstance(content, str) and _QUOTES.match(content) is not None


_MAX_MESSAGES = 10_000
_MAX_TOOLS = 128


class ChatMessage(BaseModel):
    """One message of the conversation, in OpenAI's shape."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Any = Field(None, description="A string, a list of content parts, or null.")

    @field_validator("content")
    @classmethod
    def _is_content(cls, value: object) -> object:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(part, dict) for part in value):
            return value
        raise ValueError("must be a string, a list of content parts (objects), or null")

    def check_parts(self, place: str) -> None:
        """Raise `ApiError` for a content part that no model server takes."""
        if isinstance(self.content, list):
            for number, part in enumerate(self.content):
                check_chat_part(part, f"{place}.{number}")

    def says_something(self) -> bool:
        """True if the message contains anything to answer. A part other than text always counts."""
        if not isinstance(self.content, list):
            return not is_blank(self.content)
        return any(part.get("type") != "text" or not is_blank(part.get("text")) for part in self.content)


class AnswerSchema(BaseModel):
    """The JSON Schema of an answer, and its name."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    schema_: OutputSchema = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """The form of the answer's text."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: AnswerSchema | None = None

    @model_validator(mode="after")
    def _has_schema(self) -> "ResponseFormat":
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError(
                "a format of the type 'json_schema' needs 'json_schema', with 'name' and 'schema'"
            )
        return self

    def to_format(self) -> dict[str, object]:
        """Return the format for the model's server."""
        return self.model_dump(by_alias=True, exclude_none=True)


_PLAIN = ResponseFormat(type="text")


class Extension(BaseModel):
    """Beckon's own part of a request; other clients leave it out."""

    events: bool = Field(False, description="Describe tool calls in the answer, in its field `beckon`.")


class ChatRequest(SharedFields):
    """The body of `POST /v1/chat/completions`; fields that OpenAI does not have are ignored."""

    model: str = Field(description="The name of an agent, as in GET /v1/models.")
    messages: list[ChatMessage] = Field(min_length=1, max_length=_MAX_MESSAGES)
    stream: bool = False
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = Field(None, max_length=10_000)
    logprobs: bool | None = None
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None
    response_format: ResponseFormat | None = None
    n: int | None = None
    modalities: list[str] | None = None
    audio: NotOffered = None
    prediction: NotOffered = None
    web_search_options: NotOffered = None
    tools: list[Any] | None = Field(
        None,
        max_length=_MAX_TOOLS,
        description="Functions that the client runs itself, beside the cluster's.",
    )
    functions: list[Any] | None = None
    store: bool | None = Field(
        None,
        description="Whether the run is stored, to be looked at and replayed; unset: as the service has it.",
    )
    tool_choice: Any = None
    function_call: Any = None
    beckon: Extension = Extension()

    @property
    def wants_usage(self) -> bool:
        """True if a stream is to end with its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def to_messages(self) -> list[Message]:
        """Return the messages as plain data, without unset fields."""
        return [
            message.model_dump(exclude_unset=True) | ({CLAIMED: True} if message.role == "assistant" else {})
            for message in self.messages
        ]

    def to_options(self) -> Options:
        """Return the options of the request for its run."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        choice = read_chat_choice(self.tool_choice)
        unwanted = not choice.use_tools or self.function_call == "none"
        aside = is_side_request(self.to_messages())
        use_tools = not (unwanted or aside)
        form = self.response_format or (_PLAIN if aside else None)
        return Options(
            use_tools=use_tools,
            temperature=self.temperature,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            stop=tuple(stop),
            extra=self.to_extra(
                seed=self.seed,
                presence_penalty=self.presence_penalty,
                frequency_penalty=self.frequency_penalty,
                logit_bias=self.logit_bias or None,
                logprobs=self.logprobs,
                top_logprobs=self.top_logprobs if self.logprobs else None,
                reasoning_effort=self.reasoning_effort,
                verbosity=self.verbosity,
                response_format=form.to_format() if form else None,
            ),
            first_choice=choice.first if use_tools else None,
            allowed_tools=choice.allowed if use_tools else None,
            client_tools=client_tools(self.tools or ()) if use_tools else (),
        )

    def check_support(self, *, stored: bool = True) -> None:
        """Raise `ApiError` for an unsupported or blank request.

        `stored` is True if its run is stored. The message has the rule and the cure.
        """
        check_refused(self, CHAT)
        if self.top_logprobs and not self.logprobs:
            raise unsupported_error("top_logprobs", "needs 'logprobs': true")
        if self.metadata and not stored:
            raise unsupported_error(
                "metadata", "is stored with the run only: send 'store': true, or leave it out"
            )
        for number, each in enumerate(self.messages):
            each.check_parts(f"messages.{number}.content")
        asking = [message for message in self.messages if message.role == "user"] or self.messages
        if not any(message.says_something() for message in asking):
            message = "there is nothing to answer: every message is blank; write one with the role 'user'"
            raise ApiError(400, message, code="invalid_request", param="messages")
