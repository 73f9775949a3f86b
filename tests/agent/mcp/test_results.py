"""What becomes of a tool's result."""

from typing import Any

import pytest
from mcp_types import CallToolResult

from beckon_agent.api.mcp.results import to_call_result
from beckon_agent.core.run_events import CallFinished

SOUND = {"media_type": "audio/wav", "data_base64": "AAAA"}
PICTURE = {"media_type": "image/png", "data_base64": "AAAA"}
LONG = {"type": "object", "properties": {"long": {"type": "integer"}}}
PAPER = {"media_type": "application/pdf", "data_base64": "AAAA"}


def content(result: object, *, any_json: bool = False) -> tuple[list[dict[str, Any]], object]:
    """Return the content and the structured content, which a client's types must take."""
    document = to_call_result(CallFinished("1", "tool", result, failed=False, seconds=0), any_json=any_json)
    CallToolResult.model_validate(document, by_name=False)
    found = document["content"]
    assert isinstance(found, list)
    return found, document.get("structuredContent")


@pytest.mark.parametrize(
    ("result", "text", "structured", "structured_now"),
    [
        ("plain words", "plain words", None, None),
        ({"a": [1, None]}, '{"a":[1,null]}', {"a": [1, None]}, {"a": [1, None]}),
        ([1, "b"], '[1,"b"]', None, [1, "b"]),
        ([], "[]", None, []),
        ({"long": 10**30}, '{"long":1' + "0" * 30 + "}", {"long": 10**30}, {"long": 10**30}),
        (0, "0", None, 0),
        (None, "null", None, None),
        ({**PICTURE, "more": 1}, '{"media_type":"image/png","data_base64":"AAAA","more":1}', ..., ...),
        ({**PICTURE, "data_base64": 1}, '{"media_type":"image/png","data_base64":1}', ..., ...),
    ],
)
def test_json_is_text_and_structured_content(
    result: object, text: str, structured: object, structured_now: object
) -> None:
    whole = result if structured is ... else structured
    whole_now = result if structured_now is ... else structured_now

    assert content(result) == ([{"type": "text", "text": text}], whole)
    assert content(result, any_json=True) == ([{"type": "text", "text": text}], whole_now)


def test_media_are_content_of_their_own() -> None:
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    paper = {"uri": "beckon://results/tool", "mimeType": "application/pdf", "blob": "AAAA"}

    assert content(SOUND) == ([audio], None)
    assert content([PICTURE, SOUND, PAPER]) == ([image, audio, {"type": "resource", "resource": paper}], None)
    words = [{"type": "text", "text": "a"}, {"type": "text", "text": "[1]"}]
    assert content(["a", [1], PICTURE], any_json=True) == ([*words, image], None)


@pytest.mark.parametrize(
    ("result", "schema", "fits"),
    [
        ({"long": 10**30}, LONG, True),
        ({"long": 1.5}, LONG, False),
        (None, {"type": ["object", "null"]}, True),
        ([{"a": [1, "b"]}], {"items": {"properties": {"a": {"items": {"type": "integer"}}}}}, False),
    ],
)
def test_any_json_is_checked(result: object, schema: dict[str, Any], fits: bool) -> None:
    found = to_call_result(CallFinished("1", "tool", result, False, 0), any_json=True, schema=schema)

    assert found.get("isError", False) is not fits
    if fits:
        assert found["structuredContent"] == result
