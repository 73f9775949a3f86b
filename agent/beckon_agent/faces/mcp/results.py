"""What a call came to, as MCP tells it: content for a model to read, and structured content for programs."""

from collections.abc import Mapping
from typing import TypeGuard

from beckon_agent.core.run_types import CallFinished
from beckon_contract.jsontext import dumps

_MEDIA = frozenset({"media_type", "data_base64"})


def told(call: CallFinished, *, any_json: bool) -> dict[str, object]:
    """Return the members of a `tools/call` result.

    Media, alone or in a list, become content of their own. Other JSON is told twice, as text and as
    structured content; revisions before 2026-07-28 know only objects there, later ones `any_json`.
    """
    result = call.result
    parts = result if isinstance(result, list) else [result]
    if any(_is_media(part) for part in parts):
        content = [_media(part, call.name) if _is_media(part) else _text(part) for part in parts]
        return {"content": content, "resultType": "complete"}
    members: dict[str, object] = {"content": [_text(result)], "resultType": "complete"}
    if call.failed:
        members["isError"] = True
    if isinstance(result, Mapping) or (any_json and not isinstance(result, str | None)):
        members["structuredContent"] = result
    return members


def _text(result: object) -> dict[str, object]:
    return {"type": "text", "text": result if isinstance(result, str) else dumps(result).decode()}


def _is_media(part: object) -> TypeGuard[Mapping[str, str]]:
    return (
        isinstance(part, Mapping) and part.keys() == _MEDIA and all(isinstance(v, str) for v in part.values())
    )


def _media(part: Mapping[str, str], name: str) -> dict[str, object]:
    """Return a picture or a sound as such, and any other bytes as an embedded resource."""
    media_type, data = part["media_type"], part["data_base64"]
    kind = media_type.partition("/")[0].lower()
    if kind in ("image", "audio"):
        return {"type": kind, "data": data, "mimeType": media_type}
    resource = {"uri": f"beckon://results/{name}", "mimeType": media_type, "blob": data}
    return {"type": "resource", "resource": resource}
