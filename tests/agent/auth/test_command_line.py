"""The command line in front of a closed service."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from beckon_cli.client import AgentClient
from beckon_cli.errors import CommandError
from beckon_contract.api_keys import new_entry, new_key
from tests.agent.auth.closed_service import ClosedService, checking, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import chunk, says, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENTS = {"open": terms(), "ops": terms(access={"groups": ["ops"]})}


@pytest.fixture
def key() -> str:
    return new_key()


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform, key: str, tmp_path: Path) -> AsyncIterator[ClosedService]:
    file = tmp_path / "keys.jsonl"
    file.write_text(new_entry(key, "me").line())
    async with (
        aiohttp.ClientSession() as session,
        closed_service(platform, AGENTS, checking(None, file, session)) as running,
    ):
        yield running


async def test_the_command_line_sends_its_key(service: ClosedService, key: str) -> None:
    service.model.add(says("hello"))
    async with AgentClient(str(service.http.base_url), key) as client:
        assert await client.list_agents() == ["open"]
        ((name, shown),) = [event async for event in client.call_tool("test_echo", {"text": "x"})]
        assert (name, shown["result"]) == ("result", "x")
        question = [{"role": "user", "content": "go"}]
        chunks = [chunk async for chunk in client.stream_chat("open", question)]

    assert any(choice["delta"].get("content") == "hello" for one in chunks for choice in one["choices"])


async def test_an_answer_that_fails_in_its_stream_is_an_error(service: ClosedService, key: str) -> None:
    failure = {"error": {"message": "the server is full", "type": "x"}}
    service.model.add(streamed(chunk({"content": "half of"}), failure, done=False))
    question = [{"role": "user", "content": "go"}]
    async with AgentClient(str(service.http.base_url), key) as client:
        with pytest.raises(CommandError, match="the server is full"):
            assert [chunk async for chunk in client.stream_chat("open", question)] == []


@pytest.mark.parametrize("credential", ["", "bk_made-up"])
async def test_without_a_key_that_fits_it_says_where_one_belongs(
    service: ClosedService, credential: str
) -> None:
    async with AgentClient(str(service.http.base_url), credential) as client:
        with pytest.raises(CommandError, match="sends the key in BECKON_API_KEY") as caught:
            await client.list_agents()
        with pytest.raises(CommandError, match="BECKON_API_KEY"):
            await anext(client.stream_chat("open", []))

    assert not credential or credential not in str(caught.value)
