"""An answer that broke off is incomplete at every API, in the store and in the terminal."""

import asyncio
import json
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
from tests.agent.running_agent import gathered, payloads, whole
from tests.agent.scripted_model import chunk, streamed
from tests.cli.run_beckon import beckon

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "The answer is"
BROKEN = streamed(chunk({"content": TEXT}), done=False)


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """An open service whose model breaks off every answer."""
    async with aiohttp.ClientSession() as session:
        door = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, door) as made:
            made.model.script[:] = [BROKEN] * 4
            yield made


@pytest.mark.parametrize("store", [False, True])
async def test_chat_completions(service: ClosedService, store: bool) -> None:
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    answer = whole((await service.chat("beckon", None, store=store)).json())
    stream = gathered(payloads((await service.chat("beckon", None, store=store, **streaming)).text))

    for one in (answer, stream):
        assert (one.text, one.finish_reason) == (TEXT, "length")


async def test_responses_and_stored_runs(service: ClosedService) -> None:
    body = {"model": "beckon", "input": "go"}
    answer = (await service.http.post("/v1/responses", json=body)).json()
    stream = (await service.http.post("/v1/responses", json={**body, "stream": True})).text
    run = (await service.http.get(f"/runs/{answer['id']}")).json()
    listed = (await service.http.get("/runs", params={"status": "incomplete"})).json()["data"]
    events = await server_sent(service.http, f"/runs/{answer['id']}/events")

    details = {"reason": "max_output_tokens", "ending": "incomplete"}
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", details)
    assert "event: response.incomplete" in stream
    assert "event: response.completed" not in stream
    assert (run["status"], run["ending"]) == ("incomplete", "incomplete")
    assert len(listed) == 2
    assert [event["ending"] for name, event in events if name == "finished"] == ["incomplete"]
    assert (events[-1][0], events[-1][1]["status"]) == ("ended", "incomplete")


async def server_sent(http: httpx.AsyncClient, path: str) -> list[tuple[str, Any]]:
    """Return the names and data of a stream that ended."""
    text = (await http.get(path, headers={"accept": "text/event-stream"})).text
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]


@pytest.mark.parametrize("options", [[], ["--stored"]])
async def test_questions_on_the_terminal(service: ClosedService, options: list[str]) -> None:
    port = {"BECKON_PORT": str(service.http.base_url.port)}
    for_people = await asyncio.to_thread(beckon, "ask", *options, "go", settings=port)
    for_programs = await asyncio.to_thread(beckon, "ask", *options, "--json", "go", settings=port)

    assert TEXT in for_people.stdout
    assert "the answer is incomplete: " in for_people.stderr
    document = json.loads(for_programs.stdout)
    assert (document["answer"], document["incomplete"]) == (TEXT, True)


async def test_a_conversation_on_the_terminal(service: ClosedService) -> None:
    port = {"BECKON_PORT": str(service.http.base_url.port)}
    ended = await asyncio.to_thread(beckon, "chat", given="go\n/quit\n", settings=port)

    assert TEXT in ended.stdout
    assert "the answer is incomplete: " in ended.stderr
