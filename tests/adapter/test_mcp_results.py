"""What a result of an MCP server becomes in the reply event."""

import base64

import pytest
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from beckon_adapter.mcp.caller import result_of
from beckon_tools import ToolError

PNG = base64.b64encode(b"\x89PNG").decode()
PICTURE = {"media_type": "image/png", "data_base64": PNG}
BYTES = {"media_type": "application/octet-stream", "data_base64": PNG}
URI = "file:///notes.txt"


@pytest.mark.parametrize(
    ("block", "result"),
    [
        (TextContent(text="a note"), "a note"),
        (ImageContent(mime_type="image/png", data=PNG), PICTURE),
        (EmbeddedResource(resource=TextResourceContents(uri=URI, text="a note")), "a note"),
        (EmbeddedResource(resource=BlobResourceContents(uri=URI, blob=PNG, mime_type="image/png")), PICTURE),
        (EmbeddedResource(resource=BlobResourceContents(uri=URI, blob=PNG)), BYTES),
        (ResourceLink(uri=URI, name="notes"), {"type": "resource_link", "uri": URI, "name": "notes"}),
    ],
)
def test_a_block_is_the_result_by_itself(block: ContentBlock, result: object) -> None:
    assert result_of(CallToolResult(content=[block]), "read") == result


def test_several_blocks_are_a_list() -> None:
    found = result_of(CallToolResult(content=[TextContent(text="a"), TextContent(text="b")]), "read")

    assert found == ["a", "b"]


@pytest.mark.parametrize(
    "block",
    [
        ImageContent(mime_type="image/png", data="no base64!"),
        EmbeddedResource(resource=BlobResourceContents(uri=URI, blob="no base64!")),
    ],
)
def test_data_that_is_no_base64_is_a_failure(block: ContentBlock) -> None:
    with pytest.raises(ToolError, match="the MCP server sent what is no base64"):
        result_of(CallToolResult(content=[block]), "read")


def test_an_error_without_a_text_names_the_tool() -> None:
    with pytest.raises(ToolError, match="the tool read failed, and does not say why"):
        result_of(CallToolResult(content=[], is_error=True), "read")
