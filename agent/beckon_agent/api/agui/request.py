"""Requests of AG-UI (`RunAgentInput`): the conversation, the client's tools, context and state of a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FileSource,
    ResumeEntry,
    RunAgentInput,
    TextPart,
    Tool,
    ToolMessage,
    UserMessage,
)
from pydantic import ValidationError

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.content import read_part
from beckon_agent.api.responses.request import FunctionTool
from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, Message
from beckon_agent.core.run_types import ClientTool, Options
from beckon_agent.model.messages import is_blank

MAX_ID = 200  # characters of a thread's or a run's id
_MAX_MESSAGES = 10_000
_MAX_TOOLS = 128
_MAX_CONTEXT = 100
_MAX_INSTRUCTIONS = 100_000  # characters of context and state


@dataclass(frozen=True, slots=True)
class AguiRequest:
    """A request that was read.

    With entries in `resume` it resumes a run with answers to its interrupts, else it starts one.
    """

    thread_id: str
    run_id: str
    messages: Sequence[Message]
    options: Options
    resume: Sequence[ResumeEntry]
    state: object


def read_request(document: Mapping[str, Any]) -> AguiRequest:
    """Read the body of a request; raise `ApiError` with the field, the rule and the cure."""
    try:
        body = RunAgentInput.model_validate(document)
    except ValidationError as error:
        raise _invalid_input(error) from None
    _check_sizes(body)
    messages = [
        converted for at, one in enumerate(body.messages) for converted in _to_messages(one, f"messages.{at}")
    ]
    if not body.resume and not any(_asks_something(message) for message in messages):
        message = "messages: there is nothing to answer; send a message with the role 'user', or 'tool'"
        raise ApiError(400, message, code="invalid_request", param="messages")
    tools = tuple(_client_tool(tool, f"tools.{at}") for at, tool in enumerate(body.tools or ()))
    options = Options(client_tools=tools, instructions=_to_instructions(body))
    return AguiRequest(body.thread_id, body.run_id, messages, options, body.resume or (), body.state)


def _invalid_input(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    return ApiError(400, f"{field}: {first['msg']}", code="invalid_request", param=field)


def _check_sizes(body: RunAgentInput) -> None:
    for field, value in (("threadId", body.thread_id), ("runId", body.run_id)):
        if not 1 <= len(value) <= MAX_ID:
            raise _too_many(field, f"must have 1 to {MAX_ID} characters")
    counted = (
        ("messages", body.messages, _MAX_MESSAGES),
        ("tools", body.tools, _MAX_TOOLS),
        ("context", body.context, _MAX_CONTEXT),
        ("resume", body.resume, _MAX_TOOLS),
    )
    for field, items, most in counted:
        if items is not None and len(items) > most:
            raise _too_many(field, f"has {len(items)} entries; send at most {most}")


def _too_many(field: str, message: str) -> ApiError:
    return ApiError(400, f"{field}: {message}", code="invalid_request", param=field)


def _to_messages(one: object, place: str) -> Iterator[Message]:
    """Yield a message in the form of chat completions; none for reasoning and activities."""
    match one:
        case UserMessage():
            yield {"role": "user", "content": _to_content(one.content, f"{place}.content")}
        case AssistantMessage():
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in one.tool_calls or ()
            ]
            message: Message = {"role": "assistant", "content": one.content, CLAIMED: True}
            yield message | ({"tool_calls": calls} if calls else {})
        case ToolMessage():
            content = _to_content(one.content, f"{place}.content")
            text = content if isinstance(content, str) else json_values.to_json(content)
            yield {"role": "tool", "tool_call_id": one.tool_call_id, "content": text or one.error or ""}
        case _ if _role_of(one) in ("system", "developer"):
            yield {"role": _role_of(one), "content": getattr(one, "content", "")}


def _role_of(message: object) -> str:
    """Return the role of a message of the protocol."""
    return str(getattr(message, "role", ""))


def _to_content(content: str | Sequence[Any], place: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [_to_part(part, f"{place}.{at}") for at, part in enumerate(content)]


def _to_part(part: Any, place: str) -> dict[str, Any]:
    """Return a content part in the form of chat completions."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    source = part.source
    if isinstance(source, FileSource):
        message = f"{place}.source: handles of a provider are not taken; send the bytes as a source 'data'"
        raise ApiError(400, message, code="unsupported_content", param=f"{place}.source")
    inline = isinstance(source, DataSource)
    url = f"data:{source.mime_type};base64,{source.value}" if inline else source.value
    match part.type:
        case "image":
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio" if inline:
            kind = source.mime_type.partition(";")[0].rpartition("/")[2]
            form = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}.get(kind, kind)
            return {"type": "input_audio", "input_audio": {"data": source.value, "format": form}}
        case "document" if inline:
            return {"type": "file", "file": {"filename": "document", "file_data": url}}
    message = f"{place}: send a part of the type text or image, or audio or document with a source 'data'"
    raise ApiError(400, message, code="unsupported_content", param=place)


def _asks_something(message: Message) -> bool:
    content = message["content"]
    return message["role"] == "tool" or (
        message["role"] == "user" and (isinstance(content, list) or not is_blank(content))
    )


def _client_tool(tool: Tool, place: str) -> ClientTool:
    document = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or None,
    }
    return read_part(FunctionTool, document, place).to_client_tool()


def _to_instructions(body: RunAgentInput) -> str:
    """Return context and state as instructions of the run; raise `ApiError` if they are too long."""
    lines = [f"{one.description}: {one.value}" for one in body.context or ()]
    if body.state not in (None, {}):
        lines.append(f"The state of the application, in JSON: {json_values.to_json(body.state)}")
    text = "\n".join(lines)
    if len(text) > _MAX_INSTRUCTIONS:
        message = f"have {len(text)} characters; send at most {_MAX_INSTRUCTIONS}"
        raise ApiError(400, f"context and state: {message}", code="invalid_request", param="context")
    return f"About the application of the user:\n{text}" if text else ""
