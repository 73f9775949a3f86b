"""Chat completion requests, checked as strictly as a strict provider checks them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from beckon_demo.reply import Rules

MODELS: Final = ("demo", "demo-no-tools", "demo-prompted", "demo-chatglm3")
"""`demo` takes tools; the others refuse them, as a server without a tool parser does, and read prompts."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_NO_TOOLS: Final = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


class BadRequest(Exception):
    """A refused request; `body` is OpenAI's error object, `status` the HTTP status."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400, code: str | None = None):
        super().__init__(message)
        self.status = status
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


class _Function(BaseModel):
    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class _Tool(BaseModel):
    type: Literal["function"]
    function: _Function


class _StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """The fields that the demo model knows; it passes over all others."""

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=10_000)
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None

    @property
    def declarations(self) -> list[dict[str, Any]]:
        """The tools as they were sent."""
        return [tool.model_dump() for tool in self.tools or ()]

    @property
    def wants_usage(self) -> bool:
        """True if a stream ends with the count of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def rules(self) -> Rules:
        """The rules from `tool_choice` and `parallel_tool_calls`."""
        choice, parallel = self.tool_choice, self.parallel_tool_calls is not False
        if isinstance(choice, dict):
            return Rules(tool=str((choice.get("function") or {}).get("name")), parallel=parallel)
        return Rules(calls=choice != "none", required=choice == "required", parallel=parallel)


def read_request(body: bytes) -> ChatRequest:
    """Parse and check a request's body; raise BadRequest with the error's place."""
    try:
        request = ChatRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise BadRequest(f"{where or 'the body'}: {first['msg']}", param=where or None) from None
    if request.model not in MODELS:
        raise BadRequest(
            f"The model `{request.model}` does not exist; there are {', '.join(MODELS)}",
            param="model",
            status=404,
            code="model_not_found",
        )
    if request.tools and request.model != "demo":
        raise BadRequest(_NO_TOOLS)
    _check_history(request.messages)
    return request


def _check_history(messages: Sequence[Mapping[str, Any]]) -> None:
    """Check the messages as strict providers do.

    Every call must be answered, every tool message must answer a call, and arguments must be an object.
    Raises BadRequest.
    """
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        param = f"messages.[{place}]"
        role = message.get("role")
        if role not in _ROLES:
            raise BadRequest(
                f"Invalid value: {role!r}. Supported values are: {', '.join(_ROLES)}", param=f"{param}.role"
            )
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise BadRequest(
                    "messages with role 'tool' must answer a preceding 'tool_calls'", param=param
                )
            open_calls.remove(str(message.get("tool_call_id")))
            continue
        _all_answered(open_calls, param)
        open_calls = {_call_id(call, f"{param}.tool_calls") for call in message.get("tool_calls") or ()}
    _all_answered(open_calls, "messages")


def _all_answered(open_calls: set[str], param: str) -> None:
    if open_calls:
        raise BadRequest(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. These had no response: {', '.join(sorted(open_calls))}",
            param=param,
        )


def _call_id(call: object, param: str) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping) or not call.get("id"):
        raise BadRequest("a tool call needs an id and a function", param=param)
    try:
        arguments = json.loads(function.get("arguments") or "")
    except (TypeError, ValueError, RecursionError):
        arguments = None
    if not function.get("name") or not isinstance(arguments, dict):
        raise BadRequest("a call's function needs a name, and arguments that are a JSON object", param=param)
    return str(call["id"])
