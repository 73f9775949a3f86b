"""What a tool of an MCP server returned, as the result of a call."""

import base64
import binascii
from collections.abc import Sequence

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from beckon_tools.errors import ToolError
from beckon_tools.results import Media


def result_of(result: CallToolResult, tool: str) -> object:
    """Return the result of a call: what is structured, else its content; raise `ToolError` for a failure.

    One block of content stands for itself, several are a list.
    """
    if result.is_error:
        raise ToolError(_words(result.content) or f"the tool {tool} failed, and does not say why")
    if result.structured_content is not None:
        return result.structured_content
    found = [_block(block) for block in result.content]
    return found[0] if len(found) == 1 else found


def _block(block: ContentBlock) -> object:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _media(block.mime_type, block.data)
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return _media(resource.mime_type or "application/octet-stream", resource.blob)
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _media(kind: str, data: str) -> object:
    try:
        return Media(kind, base64.b64decode(data, validate=True)).document()
    except binascii.Error:
        raise ToolError("the MCP server sent what is no base64") from None


def _words(content: Sequence[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent)).strip()
