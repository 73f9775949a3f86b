"""Every face reports a quota that is used up, in its own shape, and begins nothing above it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx
import pytest
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import asks_for, chunk, says, streamed
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONCE = [{"of": "requests", "per": "agent", "limit": 1, "seconds": 3600}]
AGENTS = {
    "open": terms(),
    "chat": terms(quotas=ONCE),
    "stored": terms(quotas=ONCE),
    "tools": terms(quotas=ONCE),
    "mcp": terms(quotas=ONCE),
    "events": terms(quotas=ONCE),
    "crowded": terms(quotas=[{"of": "tokens", "per": "agent", "limit": 150, "seconds": 3600}]),
    "spent": terms(quotas=[{"of": "tokens", "per": "agent", "limit": 1, "seconds": 3600}]),
}
EVENT = {"ce-specversion": "1.0", "ce-source": "/test", "ce-type": "test.question"}
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """An open service whose agents have quotas."""
    async with aiohttp.ClientSession() as session:
        door = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, AGENTS, door) as made:
            made.model.script[:] = [says("hello")] * 4
            yield made


async def post(service: ClosedService, path: str, body: Any, **headers: str) -> httpx.Response:
    return await service.http.post(path, json=body, headers=headers)


def assert_later(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert 3000 < int(answer.headers["retry-after"]) <= 3600


async def test_chat_completions(service: ClosedService) -> None:
    assert (await service.chat("chat", None)).status_code == 200

    whole, streamed = await service.chat("chat", None), await service.chat("chat", None, stream=True)

    for refused in (whole, streamed):
        assert_later(refused)
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert "the quota of 1 requests in 3600 s for all users" in refused.json()["error"]["message"]
    assert len(service.model.requests) == 1
    assert (await service.chat("open", None)).status_code == 200


async def test_responses(service: ClosedService) -> None:
    body = {"model": "stored", "input": "go"}
    assert (await post(service, "/v1/responses", body)).status_code == 200

    for wish in ({}, {"stream": True}, {"background": True}):
        refused = await post(service, "/v1/responses", {**body, **wish})
        assert_later(refused)
        assert refused.json()["error"]["type"] == "rate_limit_error"
    assert len(service.model.requests) == 1


async def test_calls_by_hand(service: ClosedService) -> None:
    assert (await service.call("tools", "test_echo", None, text="a")).status_code == 200
    BENCH.calls.clear()

    refused = await service.call("tools", "test_echo", None, text="b")

    assert_later(refused)
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"].endswith("/rate-limit-exceeded")
    assert BENCH.calls == []


async def test_mcp(service: ClosedService) -> None:
    call = {"name": "test_echo", "arguments": {"text": "a"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    assert '"isError":true' not in (await post(service, "/mcp/mcp", request, **MCP)).text

    refused = await post(service, "/mcp/mcp", request, **MCP)

    assert refused.status_code == 200  # an error that the model may read is a result
    assert '"isError":true' in refused.text
    assert "the quota of 1 requests" in refused.text


async def test_events(service: ClosedService) -> None:
    first = await post(service, "/events/events", {"question": "go"}, **EVENT, **{"ce-id": "1"})

    second = await post(service, "/events/events", {"question": "go"}, **EVENT, **{"ce-id": "2"})
    again = await post(service, "/events/events", {"question": "go"}, **EVENT, **{"ce-id": "1"})

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert_later(second)


async def test_tokens_that_are_used_up_end_a_run_before_its_next_question_to_the_model(
    service: ClosedService,
) -> None:
    service.model.script[:] = [asks_for(("test_echo", {"text": "a"})), says("never asked for")]

    body = {"model": "spent", "input": "go", "include": ["mcp_call"]}
    made = (await post(service, "/v1/responses", body)).json()

    assert (made["status"], made["error"]["code"]) == ("failed", "rate_limit_exceeded")
    assert "quota of 1 tokens" in made["error"]["message"]
    assert len(service.model.requests) == 1
    assert_later(await service.chat("spent", None))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_sixty_requests_at_once_use_a_quota_of_tokens_once(service: ClosedService, path: str) -> None:
    cost = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    hello = streamed(chunk({"content": "hello"}, "stop"), {"choices": [], "usage": cost})
    service.model.script[:] = [hello] * 60
    question = {"messages": [{"role": "user", "content": "go"}]} if "chat" in path else {"input": "go"}

    answers = await asyncio.gather(
        *(post(service, path, {"model": "crowded", **question}) for _ in range(60))
    )

    codes = [answer.status_code for answer in answers]
    admitted = codes.count(200)
    assert codes.count(429) == 60 - admitted
    assert len(service.model.requests) == admitted
    assert 1 <= admitted <= 11, "150 tokens are for ten answers of 15, and one more may pass the quota"
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status_code == 429)
    assert (await post(service, path, {"model": "crowded", **question})).status_code == 200, "some are left"
