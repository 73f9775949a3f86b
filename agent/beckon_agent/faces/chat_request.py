"""What a chat completions request may say, and the rules of this agent for it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.model.types import Message
from beckon_agent.runs import Options

_FORWARDED = ("top_p", "seed", "presence_penalty", "frequency_penalty", "response_format", "reasoning_effort")
_MAX_MESSAGES = 10_000


class ChatMessage(BaseModel):
    """One message of the conversation, in OpenAI's shape."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None


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
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: Any = None
    beckon: Extension = Extension()

    def conversation(self) -> list[Message]:
        """Return the messages as plain data, with only the fields that were sent."""
        return [message.model_dump(exclude_unset=True) for message in self.messages]

    def options(self) -> Options:
        """Return what the request asks of the model."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        sent = self.model_extra or {}
        return Options(
            use_tools=self.tool_choice != "none",
            temperature=self.temperature,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            stop=tuple(stop),
            extra={name: sent[name] for name in _FORWARDED if sent.get(name) is not None},
        )

    def check(self) -> None:
        """Raise `FaceError` for what this agent does not do, with the rule and the way out."""
        for name in ("tools", "functions"):
            if getattr(self, name):
                message = (
                    f"this agent brings its own tools and calls them; a request may not bring {name!r}: "
                    "leave it out, or apply an EventType and a Trigger to add a tool"
                )
                raise FaceError(400, message, code="tools_not_accepted", param=name)
        if self.tool_choice not in (None, "auto", "none"):
            message = "the agent chooses its tools itself: leave 'tool_choice' out, or send 'auto' or 'none'"
            raise FaceError(400, message, code="tools_not_accepted", param="tool_choice")
        if self.n not in (None, 1):
            raise FaceError(
                400, "one answer a request: leave 'n' out or send 1", code="unsupported_value", param="n"
            )
