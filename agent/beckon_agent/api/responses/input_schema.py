"""The OpenAPI schema of input items; `items` and `content` read them."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

from beckon_agent.api.http.openapi import listed, maybe, word

_TEXT = word()
_NAME = {"type": "string", "minLength": 1}


def _of(kind: str, **members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["type", *members],
        "properties": {"type": {"type": "string", "enum": [kind]}, **members},
    }


_IMAGE = {"type": "string", "pattern": "^(https?://|data:image/)"}
_SOUND = {
    "type": "object",
    "required": ["data", "format"],
    "properties": {"data": _TEXT, "format": word("mp3", "wav")},
}
_PART = {
    "anyOf": [
        _of("input_text", text=_TEXT),
        _of("output_text", text=_TEXT),
        _of("input_image", image_url=_IMAGE),
        _of("input_audio", input_audio=_SOUND),
        _of("input_file", file_data=_TEXT),
    ]
}
_CONTENT = {"anyOf": [_TEXT, listed(_PART)]}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "type": maybe(word("message")),
        "role": word("user", "assistant", "system", "developer"),
        "content": _CONTENT,
    },
}
Item = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "anyOf": [
                _MESSAGE,
                _of("function_call", call_id=_NAME, name=_NAME, arguments=_TEXT),
                _of("function_call_output", call_id=_NAME, output=_CONTENT),
                _of("mcp_call", id=_NAME, name=_NAME, arguments=_TEXT),
                _of("reasoning"),
                _of("item_reference", id=_NAME),
                _of("mcp_approval_response"),
            ]
        }
    ),
]
"""One item of an input, as plain data."""

NotOffered = Annotated[Any, WithJsonSchema({"type": "null"})]
"""A field of the API that this agent does nothing with: refused, with a way out, where it is not null."""
