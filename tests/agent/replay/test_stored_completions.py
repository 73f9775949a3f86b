"""Stored chat completions by OpenAI's package: retrieve, list, messages, delete, for their owner alone."""

import asyncio
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import Replaying, ended
from tests.agent.running_agent import user
from tests.agent.scripted_model import Reply, asks_for, chunk, refuses, says, sse

pytestmark = pytest.mark.asyncio(loop_scope="module")

FUNCTION: Any = {"type": "function", "function": {"name": "local_time", "parameters": {"type": "object"}}}
ECHO = asks_for(("test_echo", {"text": "a"}))


def openai_of(service: Replaying) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)


async def test_a_stored_completion_is_retrieved_listed_and_deleted(start_service: StartService) -> None:
    handing = asks_for(("local_time", {}))
    async with (
        start_service(ECHO, says("It is ", "a."), handing, says("Not stored.")) as service,
        openai_of(service) as client,
    ):
        create = client.chat.completions.create
        first = await create(
            model="beckon", messages=[{"role": "user", "content": "go"}], store=True, metadata={"of": "a"}
        )
        second = await create(
            model="beckon", messages=[{"role": "user", "content": "when"}], store=True, tools=[FUNCTION]
        )
        await create(model="beckon", messages=[{"role": "user", "content": "hi"}])
        again = await client.chat.completions.retrieve(first.id)
        handed = await client.chat.completions.retrieve(second.id)
        page = await client.chat.completions.list(limit=1)
        listed = [one.id async for one in page]
        others = await client.chat.completions.list(model="editor")
        messages = await client.chat.completions.messages.list(first.id, limit=1, order="desc")
        deleted = await client.chat.completions.delete(first.id)
        gone = await service.http.get(f"/v1/chat/completions/{first.id}")

    assert again.choices == first.choices
    assert (again.usage, again.model, again.created) == (first.usage, first.model, first.created)
    assert again.to_dict()["metadata"] == {"of": "a"}
    assert handed.choices == second.choices
    assert listed == [second.id, first.id]
    assert others.data == []
    assert [(one.role, one.content) for one in messages.data] == [("user", "go")]
    assert (deleted.deleted, gone.status_code) == (True, 404)


async def test_a_stored_completion_is_there_for_its_owner_alone(start_service: StartService) -> None:
    body = {"model": "beckon", "messages": [user("a secret")], "store": True}
    async with start_service(says("Yes.")) as service:
        made = await service.http.post("/v1/chat/completions", json=body, headers={"x-owner": "alice"})
        path = f"/v1/chat/completions/{made.json()['id']}"
        for owner, status in (("mallory", 404), ("alice", 200)):
            headers = {"x-owner": owner}
            answers = [
                await service.http.get(path, headers=headers),
                await service.http.get(f"{path}/messages", headers=headers),
                await service.http.delete(path, headers=headers) if owner == "mallory" else made,
            ]
            assert [answer.status_code for answer in answers] == [status] * 3
            listed = await service.http.get("/v1/chat/completions", headers=headers)
            assert len(listed.json()["data"]) == (1 if owner == "alice" else 0)


async def test_what_cannot_be_retrieved_has_its_cause(start_service: StartService) -> None:
    body = {"model": "beckon", "messages": [user("go")], "store": True}
    async with start_service(refuses(400, "no credit left"), says("Yes.")) as service:
        await service.http.post("/v1/chat/completions", json=body)
        (failed,) = (await service.http.get("/runs")).json()["data"]
        response = await service.ask("go")
        answers: list[httpx.Response] = [
            await service.http.get("/v1/chat/completions/nothing"),
            await service.http.get(f"/v1/chat/completions/{failed['id']}"),
            await service.http.get(f"/v1/chat/completions/{response['id']}"),
            await service.http.get("/v1/chat/completions", params={"after": "nothing"}),
            await service.http.get("/v1/chat/completions", params={"order": "asc"}),
            await service.http.get("/v1/chat/completions", params={"metadata[of]": "a"}),
        ]

    assert [answer.status_code for answer in answers] == [404, 404, 404, 400, 400, 400]
    assert "the run is failed" in answers[1].json()["error"]["message"]
    assert all(answer.json()["error"]["param"] for answer in answers)


async def test_head_of_a_stream_ends_before_its_run(start_service: StartService) -> None:
    more = asyncio.Event()
    slow = Reply((sse(chunk({"content": "Well"}), done=False), sse(chunk(finish="stop"))), holds=more)
    async with start_service(slow) as service:
        begun = await service.ask("go", background=True)
        head = await service.http.head(f"/v1/responses/{begun['id']}", params={"stream": "true"})
        more.set()
        await ended(service, begun["id"])
        run = await service.store.runs.get(begun["id"])

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")
    assert run is not None
    assert run.status == "completed"
