"""Messages of A2A as messages of a run, and back.

A text part is text, a data part is its JSON text; other parts are images, sounds and files, as at
`/v1/responses`.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from a2a.helpers.proto_helpers import get_data_parts, new_text_part, new_url_part
from a2a.types.a2a_pb2 import Message, Part, Role
from a2a.utils.errors import InvalidParamsError

from beckon_agent.api.responses.content import chat_content, unsupported_error
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message as ChatMessage

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def to_chat_message(message: Message) -> ChatMessage:
    """Return a client's message as the input of a run.

    Raises `ApiError` for parts that cannot be sent to a model.
    """
    parts = [_content_part(part, f"message.parts[{index}]") for index, part in enumerate(message.parts)]
    if all(part["type"] == "input_text" for part in parts):
        return {"role": "user", "content": "\n".join(part["text"] for part in parts)}
    return {"role": "user", "content": chat_content(parts, "message.parts")}


def _content_part(part: Part, place: str) -> dict[str, Any]:
    match part.WhichOneof("content"):
        case "text":
            return {"type": "input_text", "text": part.text}
        case "data":
            data = _whole_numbers(get_data_parts([part])[0])
            return {"type": "input_text", "text": json_values.to_json(data)}
        case "raw":
            return _raw_part(part)
        case "url" if part.media_type.startswith("image/"):
            return {"type": "input_image", "image_url": part.url}
        case "url":
            message = "files are not fetched from addresses: send the bytes as 'raw', with 'mediaType'"
            raise unsupported_error(place, f"{message}; an image may be a 'url' with an image's 'mediaType'")
    raise InvalidParamsError(f"{place}: a part needs one of 'text', 'data', 'raw' and 'url'")


def _raw_part(part: Part) -> dict[str, Any]:
    encoded = base64.b64encode(part.raw).decode("ascii")
    kind = part.media_type or "application/octet-stream"
    if kind.startswith("text/"):
        return {"type": "input_text", "text": part.raw.decode("utf-8", "replace")}
    if kind in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": encoded, "format": _SOUNDS[kind]}}
    url = f"data:{kind};base64,{encoded}"
    if kind.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "filename": part.filename or "file", "file_data": url}


def _whole_numbers(value: object) -> object:
    """Return a JSON value with whole numbers as integers, and its members in order.

    Protobuf stores each number as a double, and members without an order.
    """
    match value:
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {name: _whole_numbers(one) for name, one in sorted(value.items())}
        case list():
            return [_whole_numbers(one) for one in value]
    return value


def message_digest(owner: str, agent: str, message: Message) -> str:
    """Return the digest of a message of this owner to this agent: of its id and of all its content."""
    seen = hashlib.sha256(f"{owner}\n{agent}\n".encode())
    seen.update(message.SerializeToString(deterministic=True))
    return seen.hexdigest()


def to_history(given: Sequence[ChatMessage], message_id: str, task: str, context: str) -> Iterator[Message]:
    """Yield the client's messages of a run: its texts, and the images that are addresses."""
    for number, message in enumerate(given):
        if message["role"] != "user":
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        parts = [part for one in blocks if (part := _shown_part(json_values.as_mapping(one))) is not None]
        yield Message(
            message_id=message_id if number == 0 else f"{message_id}.{number}",
            task_id=task,
            context_id=context,
            role=Role.ROLE_USER,
            parts=parts,
        )


def _shown_part(part: Mapping[str, Any]) -> Part | None:
    match part.get("type"):
        case "text":
            return new_text_part(json_values.as_text(part.get("text")))
        case "image_url":
            url = json_values.as_text(json_values.as_mapping(part.get("image_url")).get("url"))
            return None if url.startswith("data:") else new_url_part(url)
    return None


def to_agent_message(task: str, context: str, parts: Sequence[Part]) -> Message:
    """Return a message of the agent about a task. Its id is the same for the same parts."""
    digest = hashlib.sha256(b"".join(part.SerializeToString(deterministic=True) for part in parts))
    return Message(
        message_id=f"{task}.{digest.hexdigest()[:16]}",
        task_id=task,
        context_id=context,
        role=Role.ROLE_AGENT,
        parts=parts,
    )
