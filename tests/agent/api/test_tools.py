"""The catalogue for people and programs: `GET /tools`, and calls by hand."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from tests.agent.conftest import StartAgent
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import RunningAgent, Setup, running_agent
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE, eventually
from tests.shim.support import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def agent(start_agent: StartAgent) -> AsyncIterator[RunningAgent]:
    """An agent whose model gets no request."""
    async with start_agent() as running:
        yield running
        assert running.requests == []


def problem(response: httpx.Response, status: int, slug: str) -> dict[str, object]:
    """Return the problem that an answer is."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, object] = response.json()
    assert document["type"] == f"https://beckon.dev/problems/{slug}"
    assert document["status"] == status
    return document


async def test_the_tools_are_listed_as_the_model_sees_them(agent: RunningAgent) -> None:
    document = (await agent.http.get("/tools")).json()
    tools = {tool["name"]: tool for tool in document["tools"]}

    assert document.keys() == {"tools", "refused", "skipped"}
    assert tools["test_echo"]["declaration"]["function"]["name"] == "test_echo"
    assert tools["test_echo"]["triggers"] == ["test-echo"]
    assert tools["test_danger"]["requires_approval"] is True
    assert list(tools) == sorted(tools)


async def test_a_tool_is_called_without_a_model(agent: RunningAgent) -> None:
    response = await agent.http.post("/tools/test_echo", json={"text": "é", "count": 2})

    assert response.status_code == 200
    assert response.json()["result"] == "éé"
    assert response.json()["seconds"] > 0
    assert await agent.metric("tool_calls_total", tool="test_echo", outcome="answered") == 1


@pytest.mark.parametrize(
    ("path", "arguments", "status", "slug"),
    [
        ("test_echo", {"txt": "x"}, 422, "invalid-arguments"),
        ("test_ecko", {"text": "x"}, 404, "unknown-tool"),
        ("test_direct", {}, 404, "unknown-tool"),
        ("test_danger", {}, 403, "denied"),
        ("test_hurry", {}, 504, "timeout"),
        ("test_dead", {}, 502, "undeliverable"),
        ("test_fail", {"kind": "refuse"}, 502, "tool-failed"),
        ("test_echo", {"text": "x", "count": 2**70}, 422, "invalid-arguments"),
    ],
)
async def test_a_failure_is_a_problem_with_its_reason(
    agent: RunningAgent, path: str, arguments: dict[str, object], status: int, slug: str
) -> None:
    document = problem(await agent.http.post(f"/tools/{path}", json=arguments), status, slug)

    assert document["detail"]
    assert document["reason"] == slug.replace("-", "_")
    assert BENCH.calls == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "JSON object"),
        (b'"text"', "JSON object"),
        (b"{oops", "not JSON"),
        (b"", "JSON object"),
        (b'{"text": NaN}', ""),
    ],
)
async def test_arguments_must_be_an_object(agent: RunningAgent, body: bytes, said: str) -> None:
    headers = {"content-type": "application/json"}
    response = await agent.http.post("/tools/test_echo", content=body, headers=headers)

    assert response.status_code in (400, 422)
    slug = "invalid-request" if said else "invalid-arguments"
    assert said in str(problem(response, response.status_code, slug)["detail"])


async def test_a_page_of_another_origin_cannot_call_a_tool(agent: RunningAgent) -> None:
    response = await agent.http.post(
        "/tools/test_echo", content=b'{"text": "x"}', headers={"content-type": "text/plain"}
    )

    assert "application/json" in str(problem(response, 400, "invalid-request")["detail"])
    assert BENCH.calls == []


async def test_a_call_by_hand_is_the_event_that_a_call_of_the_agent_would_be(platform: EventPlatform) -> None:
    """A Trigger may ask for the agent's source: what passes the catalogue must pass the Broker."""
    async with serving() as shim, running_agent(shim.url, platform.folder) as agent:
        await agent.http.post("/tools/test_echo", json={"text": "x"})
        await agent.http.post("/tools/test_echo", json={"text": "x"})
    first, second = (posted.headers for posted in shim.posts)

    assert first["ce-source"] == "/beckon/agents/default/beckon"
    assert first["ce-type"] == "test.echo"
    assert first["ce-id"] != second["ce-id"]


async def test_a_caller_that_hangs_up_frees_the_slot_of_its_call(
    agent: RunningAgent, platform: EventPlatform
) -> None:
    async def no_one_waits() -> bool:
        return await platform.metric("waiting_calls") == 0

    async with httpx.AsyncClient(base_url=agent.url, timeout=PATIENCE) as client:
        calling = asyncio.create_task(client.post("/tools/test_wait", json={}))
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
    await eventually(no_one_waits)

    assert agent.service.running == 0


async def test_calls_by_hand_count_as_runs(start_agent: StartAgent) -> None:
    async with start_agent(setup=Setup(max_runs=1)) as agent:
        first = asyncio.create_task(agent.http.post("/tools/test_wait", json={}))
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        second = await agent.http.post("/tools/test_echo", json={"text": "x"})
        BENCH.gate.set()

        assert (await first).json()["result"] == "through"
    problem(second, 503, "overloaded")
    assert second.headers["retry-after"] == "1"


async def test_who_takes_a_stream_gets_what_the_tool_reports(agent: RunningAgent) -> None:
    BENCH.reset()
    shown: list[tuple[str, dict[str, object]]] = []
    accept = {"accept": "application/json, text/event-stream"}
    async with agent.http.stream(
        "POST", "/tools/test_steps", json={"steps": [1, 2]}, headers=accept
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                shown.append((name, json.loads(line.removeprefix("data: "))))
                BENCH.gate.set()

    assert shown[:2] == [
        ("progress", {"progress": 1, "total": 4, "message": "step 1"}),
        ("progress", {"progress": 2, "total": 4, "message": "step 2"}),
    ]
    ((name, answer),) = shown[2:]
    assert (name, answer["result"]) == ("result", "there")


async def test_without_a_report_the_answer_is_whole(agent: RunningAgent) -> None:
    accept = {"accept": "application/json, text/event-stream"}
    answered = await agent.http.post("/tools/test_echo", json={"text": "a"}, headers=accept)
    failed = await agent.http.post("/tools/test_echo", json={}, headers=accept)

    assert answered.json()["result"] == "a"
    problem(failed, 422, "invalid-arguments")


LONG = int("1" * 30)


async def test_a_long_integer_stays_whole_and_no_number_is_refused_by_name(agent: RunningAgent) -> None:
    whole = await agent.http.post("/tools/test_measure", json={"digits": 30})
    none = await agent.http.post("/tools/test_measure", json={"digits": 0})

    assert json.loads(whole.text)["result"] == {"long": LONG}
    assert "NaN is not JSON" in str(problem(none, 502, "tool-failed")["detail"])


async def test_a_whole_float_arrives_as_the_integer_that_it_is(agent: RunningAgent) -> None:
    arguments = b'{"text": "hi", "count": 2e0}'
    headers = {"content-type": "application/json"}
    response = await agent.http.post("/tools/test_echo", content=arguments, headers=headers)
    assert response.json()["result"] == "hihi"
    assert BENCH.data == [b'{"text":"hi","count":2}']
