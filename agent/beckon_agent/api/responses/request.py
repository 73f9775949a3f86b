"""The fields of a response request, `tool_choice` among them, and this agent's rules for them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.request_fields import (
    RESPONSES,
    Effort,
    NotOffered,
    OutputSchema,
    SharedFields,
    Verbosity,
    check_refused,
)
from beckon_agent.api.responses.content import read_part, unsupported_error
from beckon_agent.api.responses.documents import RequestEcho, ResponseText
from beckon_agent.api.responses.items import InputItem
from beckon_agent.api.responses.output import SERVER_LABEL
from beckon_agent.core import json_values
from beckon_agent.core.run_types import ClientTool, Options
from beckon_contract.names import RESERVED


class NamedFunction(BaseModel):
    """One function that the model must call: the client's, or one of the cluster's tools."""

    type: Literal["function"]
    name: str


class NamedServer(BaseModel):
    """The cluster's tools, or one of them."""

    type: Literal["mcp"]
    server_label: str
    name: str | None = None


class AllowedTools(BaseModel):
    """The tools that the model may call, of all that it is shown."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, Any]] = Field(max_length=1000)


_SHOWN = 80

ToolChoice = Literal["none", "auto", "required"] | NamedFunction | NamedServer | AllowedTools


@dataclass(frozen=True, slots=True)
class ToolChoiceOptions:
    """The options of a run from its `tool_choice`.

    `first` applies to the first answer only, or the model would never end.
    """

    use_tools: bool = True
    first: object = None
    allowed: tuple[str, ...] | None = None


def read_choice(choice: ToolChoice | None) -> ToolChoiceOptions:
    """Return the run options for a `tool_choice`. Raises `ApiError` for tools that cannot be chosen."""
    match choice:
        case None | "auto":
            return ToolChoiceOptions()
        case "none":
            return ToolChoiceOptions(use_tools=False)
        case "required":
            return ToolChoiceOptions(first="required")
        case NamedFunction():
            return ToolChoiceOptions(first=_name_function(choice.name))
        case NamedServer():
            if choice.server_label != SERVER_LABEL or choice.name is None:
                message = f"name one tool of the server {SERVER_LABEL!r}, by 'name'"
                raise unsupported_error("tool_choice", message)
            return ToolChoiceOptions(first=_name_function(choice.name))
        case AllowedTools():
            first = "required" if choice.mode == "required" else None
            return ToolChoiceOptions(first=first, allowed=_read_names(choice))


def check_tools(options: Options, ours: Collection[str]) -> None:
    """Raise `ApiError` for a client's tool name that is taken, and for a choice of an unknown tool.

    `ours` are the names of the cluster's tools. A client's tool hides the one of its name.
    """
    theirs = _check_names(options.client_tools)
    if options.first_choice and (options.allowed_tools == () or not (theirs or len(ours))):
        message = "tool_choice: there is no tool to choose; bring one, or leave it out"
        raise ApiError(400, message, code="unknown_tool", param="tool_choice")
    chosen_one = json_values.as_text(
        json_values.as_mapping(json_values.as_mapping(options.first_choice).get("function")).get("name")
    )
    for name in filter(None, (chosen_one, *(options.allowed_tools or ()))):
        if name not in theirs and name not in ours:
            message = f"tool_choice: there is no tool {name[:_SHOWN]!r}; bring it, or see GET /tools"
            raise ApiError(400, message, code="unknown_tool", param="tool_choice")


def _check_names(tools: Sequence[ClientTool]) -> frozenset[str]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if tool.name in seen or tool.name in RESERVED:
            place = f"tools.{index}.name"
            owner = "this request" if tool.name in seen else "the agent"
            message = f"{place}: {owner} has a tool {tool.name!r} already; give the function another name"
            raise ApiError(400, message, code="tool_name_taken", param=place)
        seen.add(tool.name)
    return frozenset(seen)


def _name_function(name: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name}}


def _read_names(choice: AllowedTools) -> tuple[str, ...]:
    names = [tool.get("name") for tool in choice.tools]
    if not all(isinstance(name, str) for name in names):
        raise unsupported_error("tool_choice.tools", "every allowed tool must be given by its 'name'")
    return tuple(str(name) for name in names)


_MAX_ITEMS = 10_000
_MAX_TOOLS = 128
_NO_PARAMETERS: dict[str, object] = {"type": "object", "properties": {}}

Include = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "mcp_call",  # OpenAI's items and events, see `item_types`
    "beckon:tool_call",
    "beckon:mcp_call.progress",  # our own, see `item_types.PROGRESS`
]


class Cleaned(BaseModel):
    """A body whose strings can all be sent on: halves of surrogate pairs are replaced."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _clean_strings(cls, value: object) -> object:
        return json_values.clean_strings(value)


class FunctionTool(BaseModel):
    """A function that the client runs itself."""

    type: Literal["function"]
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    def to_client_tool(self) -> ClientTool:
        """Return the function for the loop."""
        return ClientTool(self.name, self.description or "", self.parameters or _NO_PARAMETERS)


class TextFormat(BaseModel):
    """How the text of the answer is to be formed."""

    model_config = ConfigDict(populate_by_name=True)

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = Field(None, pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    schema_: OutputSchema | None = Field(None, alias="schema")
    strict: bool | None = None

    @model_validator(mode="after")
    def _check_complete(self) -> "TextFormat":
        if self.type == "json_schema" and (self.name is None or self.schema_ is None):
            raise ValueError("a format of the type 'json_schema' needs a 'name' and a 'schema'")
        return self

    def to_document(self) -> dict[str, Any]:
        """Return the format as a response repeats it."""
        if self.type != "json_schema":
            return {"type": self.type}
        return {
            "type": self.type,
            "name": self.name,
            "description": self.description,
            "schema": self.schema_,
            "strict": bool(self.strict),
        }

    def response_format(self) -> dict[str, object]:
        """Return the format for a chat completions request."""
        if self.type != "json_schema":
            return {"type": self.type}
        json_schema = {
            key: value for key, value in self.to_document().items() if key != "type" and value is not None
        }
        return {"type": "json_schema", "json_schema": json_schema}


class TextOptions(BaseModel):
    """Options for the text of the answer."""

    format: TextFormat | None = None
    verbosity: Verbosity | None = None


class ReasoningOptions(BaseModel):
    """Options for the reasoning of the model."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class ConversationReference(BaseModel):
    """A conversation, by its id."""

    id: str


class CreateRequest(Cleaned, SharedFields):
    """The body of `POST /v1/responses`; fields that OpenAI does not have are ignored."""

    model: str | None = Field(None, description="The name of an agent, as in GET /v1/models.")
    input: str | Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)] = Field(
        default_factory=list, description="A question, or the items of a conversation."
    )
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationReference | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=2**31)
    max_tool_calls: int | None = Field(None, ge=1, le=2**31)
    tool_choice: ToolChoice | None = None
    tools: list[dict[str, Any]] | None = Field(None, max_length=_MAX_TOOLS)
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include: list[Include] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    prompt: NotOffered = None
    context_management: NotOffered = None
    image: NotOffered = None
    access_programs: NotOffered = None

    @property
    def conversation_id(self) -> str | None:
        """The id of the run's conversation, or `None`."""
        conversation = self.conversation
        return conversation.id if isinstance(conversation, ConversationReference) else conversation

    @property
    def is_stored(self) -> bool:
        """True if the response can be retrieved later."""
        return self.store is not False

    def check_support(self) -> None:
        """Raise `ApiError` for fields and combinations this agent does not support.

        The message has the rule and the cure.
        """
        check_refused(self, RESPONSES)
        if self.previous_response_id and self.conversation_id:
            message = "send either 'previous_response_id' or 'conversation', not both"
            raise ApiError(400, message, code="mutually_exclusive", param="previous_response_id")
        if self.background and not self.is_stored:
            message = "a response in the background must be stored: leave 'store' out, or send true"
            raise ApiError(400, message, code="invalid_request", param="store")

    def read_functions(self) -> list[FunctionTool]:
        """Return the client's functions. Raises `ApiError` for tools of another type."""
        functions: list[FunctionTool] = []
        for index, tool in enumerate(self.tools or ()):
            kind = str(tool.get("type"))[:40]
            if kind != "function":
                message = (
                    f"tools of the type {kind!r} are not offered: the agent brings the cluster's tools "
                    "itself, and calls them; a request may bring tools of the type 'function'"
                )
                raise unsupported_error(f"tools.{index}.type", message)
            functions.append(read_part(FunctionTool, tool, f"tools.{index}"))
        return functions

    def client_tools(self) -> tuple[ClientTool, ...]:
        """Return the client's functions as `ClientTool` values for the loop."""
        return tuple(tool.to_client_tool() for tool in self.read_functions())

    def to_options(self) -> Options:
        """Return the options of the request for its run."""
        text, choice = self.text or TextOptions(), read_choice(self.tool_choice)
        wants_logprobs = self.top_logprobs or "message.output_text.logprobs" in (self.include or ())
        extra = self.to_extra(
            logprobs=True if wants_logprobs else None,
            top_logprobs=self.top_logprobs if wants_logprobs else None,
            reasoning_effort=self.reasoning.effort if self.reasoning else None,
            verbosity=text.verbosity,
            response_format=text.format.response_format() if text.format else None,
        )
        return Options(
            use_tools=choice.use_tools,
            temperature=self.temperature,
            max_tokens=self.max_output_tokens,
            extra=extra,
            instructions=self.instructions or "",
            first_choice=choice.first,
            allowed_tools=choice.allowed,
            max_tool_calls=self.max_tool_calls,
            client_tools=self.client_tools() if choice.use_tools else (),
        )

    def to_echo(self) -> RequestEcho:
        """Return the request fields repeated in its responses."""
        text, reasoning = self.text or TextOptions(), self.reasoning or ReasoningOptions()
        shown: ResponseText = {"format": (text.format or TextFormat()).to_document()}
        if text.verbosity:
            shown["verbosity"] = text.verbosity
        return {
            "instructions": self.instructions,
            "metadata": self.metadata or {},
            "previous_response_id": self.previous_response_id,
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "top_p": 1.0 if self.top_p is None else self.top_p,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "top_logprobs": self.top_logprobs or 0,
            "max_output_tokens": self.max_output_tokens,
            "max_tool_calls": self.max_tool_calls,
            "parallel_tool_calls": self.parallel_tool_calls is not False,
            "tool_choice": self.tool_choice
            if isinstance(self.tool_choice, str)
            else _dump_choice(self.tool_choice),
            "tools": [tool.model_dump() for tool in self.read_functions()],
            "text": shown,
            "reasoning": {"effort": reasoning.effort, "summary": reasoning.summary},
            "truncation": self.truncation or "disabled",
            "service_tier": "default",
            "user": self.user,
            "safety_identifier": self.safety_identifier,
            "prompt_cache_key": self.prompt_cache_key,
        }


def _dump_choice(choice: BaseModel | None) -> str | dict[str, Any]:
    return "auto" if choice is None else choice.model_dump(exclude_none=True)
