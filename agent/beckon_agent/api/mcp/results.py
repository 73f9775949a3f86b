"""The results of tools as MCP has them: content, structured content, and schemas of it.

A result has content for a model to read, and structured content for programs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from beckon_agent.core.run_events import CallFinished
from beckon_contract.failures import Reason, failure
from beckon_contract.jsontext import dumps
from beckon_contract.resources.tools import Tool
from beckon_contract.schema.validation import Validator


def output_schema(tool: Tool | None, *, any_json: bool) -> Mapping[str, Any] | None:
    """Return the schema of a tool's structured content, `None` without one.

    Revisions before 2026-07-28 allow only a schema of an object there, later ones `any_json`.
    """
    if tool is None or tool.returns is None:
        return None
    return tool.returns if any_json or tool.returns.get("type") == "object" else None


def check_result(call: CallFinished, schema: Mapping[str, Any]) -> CallFinished:
    """Return a call whose result fits the schema of its tool, else a failed call.

    A client would refuse the whole answer, and could not say why.
    """
    if call.failed:
        return call
    problems = Validator(schema, "the result").problems(call.result)
    if not problems:
        return call
    message = (
        f"the tool ran, but its result does not fit its output schema: {'; '.join(problems)}. "
        "Correct the tool, or the annotation beckon.dev/returns of its EventType"
    )
    return replace(call, result=failure(Reason.TOOL_FAILED, message), failed=True)


_MEDIA = frozenset({"media_type", "data_base64"})


def to_call_result(
    call: CallFinished, *, any_json: bool, schema: Mapping[str, Any] | None = None
) -> dict[str, object]:
    """Return the members of a `tools/call` result.

    Media, alone or in a list, become content of their own. Other JSON is sent twice, as text and as
    structured content; revisions before 2026-07-28 allow only objects there, later ones `any_json`. With a
    `schema`, every result is structured content, and fits it.
    """
    if schema is not None:
        call = check_result(call, schema)
    result = call.result
    parts = _parts_of(result)
    has_media = any(_is_media(part) for part in parts)
    if has_media:
        content = [
            _media_content(part, call.name) if _is_media(part) else _text_content(part) for part in parts
        ]
    else:
        content = [_text_content(result)]
    members: dict[str, object] = {"content": content, "resultType": "complete"}
    if call.failed:
        members["isError"] = True
    is_structure = isinstance(result, Mapping) or (any_json and not isinstance(result, str | None))
    if schema is not None or (is_structure and not has_media):
        members["structuredContent"] = result
    return members


def media_of(result: object) -> list[Mapping[str, str]]:
    """Return the media of a result: documents with `media_type` and `data_base64`."""
    return [part for part in _parts_of(result) if _is_media(part)]


def _parts_of(result: object) -> list[object]:
    return result if isinstance(result, list) else [result]


def _text_content(result: object) -> dict[str, object]:
    return {"type": "text", "text": result if isinstance(result, str) else dumps(result).decode()}


def _is_media(part: object) -> TypeGuard[Mapping[str, str]]:
    return (
        isinstance(part, Mapping) and part.keys() == _MEDIA and all(isinstance(v, str) for v in part.values())
    )


def _media_content(part: Mapping[str, str], name: str) -> dict[str, object]:
    """Return a picture or a sound as content of its type. Any other bytes become an embedded resource."""
    media_type, data = part["media_type"], part["data_base64"]
    kind = media_type.partition("/")[0].lower()
    if kind in ("image", "audio"):
        return {"type": kind, "data": data, "mimeType": media_type}
    resource = {"uri": f"beckon://results/{name}", "mimeType": media_type, "blob": data}
    return {"type": "resource", "resource": resource}
