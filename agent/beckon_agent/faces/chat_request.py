"""What a chat completions request may say, and the rules of this agent for it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from beckon_agent.core.model_types import Message
from beckon_agent.core.run_types import Options
from beckon_agent.faces.chat_tools import client_tools, first_choice
from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.faces.side_requests import is_side_request
from beckon_agent.model.messages import is_blank

_FORWARDED = ("top_p", "seed", "presence_penalty", "frequency_penalty", "response_format", "reasoning_effort")
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

    def says_something(self) -> bool:
        """Whether there is anything to answer in it; a part that is no text always is."""
        if not isinstance(self.content, list):
            return not is_blank(self.content)
        return any(part.get("type") != "text" or not is_blank(part.get("text")) for part in self.content)


class StreamOptions(BaseModel):
    """OpenAI's `stream_options`."""

    include_usage: bool = False


class Extension(BaseModel):
    """Beckon's own part of a request; other clients leave it out."""

    events: bool = Field(False, description="Tell of tool calls in the answer, in its field `beckon`.")


class ChatRequest(BaseModel):
    """The body of `POST /v1/chat/completions`; fields that are not listed are ignored, as OpenAI does."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="The name of an agent, as in GET /v1/models.")
    messages: list[ChatMessage] = Field(min_length=1, max_length=_MAX_MESSAGES)
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] | None = None
    n: int | None = None
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
        """Whether a stream is to end with its usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    def conversation(self) -> list[Message]:
        """Return the messages as plain data, with only the fields that were sent."""
        return [message.model_dump(exclude_unset=True) for message in self.messages]

    def options(self) -> Options:
        """Return what the request asks of the model."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        sent = self.model_extra or {}
        unwanted = "none" in (self.tool_choice, self.function_call)
        use_tools = not (unwanted or is_side_request(self.conversation()))
        return Options(
            use_tools=use_tools,
            temperature=self.temperature,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            stop=tuple(stop),
            extra={name: sent[name] for name in _FORWARDED if sent.get(name) is not None},
            first_choice=first_choice(self.tool_choice) if use_tools else None,
            client_tools=client_tools(self.tools or ()) if use_tools else (),
        )

    def check(self) -> None:
        """Raise `FaceError` for what this agent does not do, with the rule and the way out."""
        for old, new in (("functions", "tools"), ("function_call", "tool_choice")):
            if getattr(self, old) not in (None, [], "auto", "none"):
                message = f"{old!r} is the older form of {new!r}, and not served: send {new!r} instead"
                raise FaceError(400, message, code="unsupported_value", param=old)
        if self.n not in (None, 1):
            message = "one answer a request: leave 'n' out or send 1"
            raise FaceError(400, message, code="unsupported_value", param="n")
        asking = [message for message in self.messages if message.role == "user"] or self.messages
        if not any(message.says_something() for message in asking):
            message = "there is nothing to answer: every message is blank; write one with the role 'user'"
            raise FaceError(400, message, code="invalid_request", param="messages")
