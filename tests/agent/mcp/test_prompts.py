"""The system prompt of an agent as a prompt of MCP, where its owner publishes it."""

import pytest
from mcp import MCPError
from mcp_types import TextContent

from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.mcp_server import LEGACY, MODERN, mcp_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@both
async def test_a_published_prompt_is_listed_and_read(platform: EventPlatform, mode: str) -> None:
    async with (
        mcp_server(platform.shim, platform.folder, publish_prompt=True) as server,
        server.client(mode) as client,
    ):
        (listed,) = (await client.list_prompts()).prompts
        found = await client.get_prompt("beckon")
        with pytest.raises(MCPError, match="there is no prompt 'other' here"):
            await client.get_prompt("other")

    assert (listed.name, listed.arguments) == ("beckon", None)
    (message,) = found.messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    assert message.content.text == "You are a test."


@both
async def test_a_prompt_that_is_not_published_cannot_be_read(platform: EventPlatform, mode: str) -> None:
    async with mcp_server(platform.shim, platform.folder) as server, server.client(mode) as client:
        listed = (await client.list_prompts()).prompts
        with pytest.raises(MCPError, match="there is no prompt 'beckon' here"):
            await client.get_prompt("beckon")

    assert listed == []
