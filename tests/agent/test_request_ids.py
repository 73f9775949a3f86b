"""Every answer of every route names its request, and so does every line that is logged for one."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.agent.agent_process import AgentProcess, serving
from tests.agent.event_platform import described
from tests.agent.mcp.mcp_server import ACCEPT, LEGACY
from tests.agent.mcp.mcp_server import request as mcp_request
from tests.agent.running_agent import user
from tests.agent.scripted_model import ReceivedRequest, Reply, asks_for, says
from tests.broker.broker_process import broker, service, write_manifests

NAME = "x-request-id"
LIMIT = 2_000  # bytes of a body
CLOSED = "http://127.0.0.1:9"


@asynccontextmanager
async def agent_with_a_dead_tool(folder: Path, *script: Any) -> AsyncIterator[AgentProcess]:
    write_manifests(folder, broker(), *described("test.dead", "dead"), service("dead", CLOSED))
    settings = {"BECKON_MAX_REQUEST_BYTES": str(LIMIT), "BECKON_SHIM_URL": CLOSED}
    async with serving(folder, *script, **settings) as agent:
        yield agent


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the method and the path of every operation; what paths name does not exist."""
    for path, methods in description["paths"].items():
        for method in methods:
            yield method.upper(), "/".join("nothing" if part[:1] == "{" else part for part in path.split("/"))


def tries(description: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield requests for every route, good and bad ones."""
    for method, path in operations(description):
        yield {"method": method, "url": path, "json": {}}
        yield {
            "method": method,
            "url": path,
            "content": b"{",
            "headers": {"content-type": "application/json"},
        }
        yield {"method": method, "url": path, "content": b"x" * (LIMIT + 1)}
        yield {"method": "PATCH", "url": path}
    yield {"method": "GET", "url": "/nowhere"}
    yield {"method": "GET", "url": "/v1/nowhere"}
    for path in ("/mcp", "/mcp/unknown"):
        for method in ("GET", "POST", "DELETE", "PUT"):
            yield {"method": method, "url": path, "json": {}}
        yield {"method": "POST", "url": path, "headers": {"host": "rebound.example"}}


async def test_every_answer_carries_the_id_of_its_request(tmp_path: Path) -> None:
    statuses: set[int] = set()
    async with agent_with_a_dead_tool(tmp_path) as agent:
        description = (await agent.http.get("/openapi.json")).json()
        for number, wanted in enumerate(tries(description)):
            headers = {**wanted.pop("headers", {}), NAME: f"try-{number}"}
            async with agent.http.stream(**wanted, headers=headers) as answer:
                assert answer.headers.get_list(NAME) == [f"try-{number}"], (wanted, answer.status_code)
            statuses.add(answer.status_code)
        bad = [{}, {NAME: "two words"}, {NAME: "x" * 129}, {NAME: '"><script>'}]
        made = [(await agent.http.get("/v1/models", headers=headers)).headers[NAME] for headers in bad]

    assert statuses >= {200, 400, 404, 405, 413, 421}
    assert len(set(made)) == len(bad)  # and each was given one of its own
    assert all(len(name) == 32 and name.isalnum() for name in made)


def answer(sent: ReceivedRequest) -> Reply:
    """Fail where the question says so; else call the tool, and be content with what comes of it."""
    last = sent.body["messages"][-1]
    if "fail" in str(last["content"]):
        return Reply((b"out of order",), status=500, content_type="text/plain")
    return says("Pity.") if last["role"] == "tool" else asks_for(("test_dead", {}))


def requests_that_are_logged(question: str) -> Iterator[dict[str, Any]]:
    """Yield requests that ask a model, over every face that does."""
    chat = {"model": "beckon", "messages": [user(question)]}
    event = {"specversion": "1.0", "id": question, "source": "/test", "type": "t", "data": question}
    for more in ({}, {"stream": True}):
        yield {"url": "/v1/chat/completions", "json": {**chat, **more}}
    for more in ({}, {"stream": True}, {"background": True, "stream": True}):
        yield {"url": "/v1/responses", "json": {"input": question, **more}}
    yield {"url": "/events", "json": event, "headers": {"content-type": "application/cloudevents+json"}}


def calls_that_are_logged() -> Iterator[dict[str, Any]]:
    """Yield requests that call a tool without a model."""
    call = mcp_request("tools/call", {"name": "test_dead", "arguments": {}})
    yield {"url": "/tools/test_dead", "json": {}}
    for _ in range(2):  # the first one loads what serves MCP, and all others must not be taken for it
        yield {"url": "/mcp", "json": call, "headers": {"accept": ACCEPT, "mcp-protocol-version": LEGACY}}


async def test_every_line_that_a_request_causes_names_it_in_the_log(tmp_path: Path) -> None:
    sent = [*requests_that_are_logged("fail"), *requests_that_are_logged("go"), *calls_that_are_logged()]
    async with agent_with_a_dead_tool(tmp_path, *[answer] * 3 * len(sent)) as agent:

        async def ask(number: int, wanted: dict[str, Any]) -> None:
            headers = {**wanted.pop("headers", {}), NAME: f"logged-{number}"}
            await agent.http.post(**wanted, headers=headers)

        await asyncio.gather(*(ask(number, wanted) for number, wanted in enumerate(sent)))
        agent.process.send_signal(signal.SIGTERM)
        _, said = await agent.ended()

    lines = [json.loads(line) for line in said.splitlines()]
    named = [line["request_id"] for line in lines if "request_id" in line]
    assert set(named) == {f"logged-{number}" for number in range(len(sent))}, said
    # The lines of the start and the end belong to no request.
    begun = next(at for at, line in enumerate(lines) if line["message"].startswith("listening on "))
    nameless = [line["message"] for line in lines[begun + 1 :] if "request_id" not in line]
    assert all(message.startswith("draining: ") for message in nameless), nameless
    assert not any("request_id" in line for line in lines[: begun + 1])


async def test_who_is_not_let_in_is_given_the_id_as_well(tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.touch()
    async with serving(tmp_path, BECKON_ANONYMOUS="false", BECKON_KEYS_FILE=str(keys)) as agent:
        answers = [
            await agent.http.post(path, json={}, headers={NAME: "stranger"})
            for path in ("/v1/chat/completions", "/v1/responses", "/tools/f", "/mcp", "/events", "/nowhere")
        ]

    assert [answer.status_code for answer in answers] == [401] * len(answers)
    assert [answer.headers[NAME] for answer in answers] == ["stranger"] * len(answers)
