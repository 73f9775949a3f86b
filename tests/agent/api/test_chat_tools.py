"""Functions of the client beside the cluster's tools, in chat completions: handed back, and gone on from."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI

from beckon_agent.api.chat import routes
from beckon_agent.api.chat.request import ChatRequest, HandedCalls
from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.app import _add_error_handlers
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.conftest import StartAgent
from tests.agent.running_agent import RunningAgent, payloads, user
from tests.agent.scripted_model import Script, asks_for, says
from tests.patience import PATIENCE
from tests.serving import served

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACE: Any = {
    "type": "function",
    "function": {
        "name": "where_am_i",
        "description": "Return where the user is.",
        "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}},
    },
}
ASKS_PLACE = asks_for(("where_am_i", {"precise": True}))
ECHO = asks_for(("test_echo", {"text": "x"}))


@asynccontextmanager
async def chat(agent: RunningAgent, store: Store, owner: str = "") -> AsyncIterator[httpx.AsyncClient]:
    """Serve the face of an agent that keeps what it did, for one owner."""
    app = FastAPI()
    face = routes.make_router(
        agent.service, StreamPace(), lambda _, hosted: HandedCalls(store, owner, hosted.name)
    )
    app.router.routes.extend(face.routes)
    _add_error_handlers(app)
    async with served(app) as url, httpx.AsyncClient(base_url=f"{url}/v1/", timeout=PATIENCE) as http:
        yield http


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(f"sqlite:///{tmp_path / 'store.db'}")
    yield opened
    await opened.aclose()


async def ask(http: httpx.AsyncClient, *messages: dict[str, Any], **body: Any) -> dict[str, Any]:
    request = {"model": "beckon", "messages": list(messages), "tools": [PLACE], **body}
    answer = await http.post("chat/completions", json=request)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()["choices"][0]
    return document


def answered(call: dict[str, Any], content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


async def test_a_call_of_the_clients_function_is_handed_back(start_agent: StartAgent, store: Store) -> None:
    async with start_agent(ASKS_PLACE) as agent, chat(agent, store) as http:
        choice = await ask(http, user("Where am I?"))

    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["function"] == {"name": "where_am_i", "arguments": '{"precise":true}'}
    shown = [tool["function"]["name"] for tool in agent.requests[0].body["tools"]]
    assert {"where_am_i", "test_echo"} <= set(shown)


async def test_the_clients_function_hides_the_clusters_tool_of_its_name(
    start_agent: StartAgent, store: Store
) -> None:
    echo = {"type": "function", "function": {**PLACE["function"], "name": "test_echo"}}
    async with start_agent(ECHO, ECHO, says("x")) as agent, chat(agent, store) as http:
        hidden = await ask(http, user("Echo x"), tools=[echo])
        seen = await ask(http, user("Echo x"))

    assert hidden["finish_reason"] == "tool_calls"
    assert hidden["message"]["tool_calls"][0]["function"]["name"] == "test_echo"
    first, second, _ = ([tool["function"] for tool in each.body["tools"]] for each in agent.requests)
    (declared,) = [tool for tool in first if tool["name"] == "test_echo"]
    assert declared["description"] == PLACE["function"]["description"]
    assert [tool["name"] for tool in second].count("test_echo") == 1
    assert seen["message"]["content"] == "x"


async def test_streaming_hands_back_the_same(start_agent: StartAgent, store: Store) -> None:
    script = asks_for(("where_am_i", {}), ("where_am_i", {"precise": True}))
    async with start_agent(script, script) as agent, chat(agent, store) as http:
        whole = await ask(http, user("go"))
        request = {"model": "beckon", "messages": [user("go")], "tools": [PLACE], "stream": True}
        chunks = payloads((await http.post("chat/completions", json=request)).text)

    choices = [chunk["choices"][0] for chunk in chunks]
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls", ())]
    assert [call["index"] for call in calls] == [0, 1]
    assert [call["function"] for call in calls] == [
        call["function"] for call in whole["message"]["tool_calls"]
    ]
    assert choices[-1]["finish_reason"] == whole["finish_reason"] == "tool_calls"


async def test_the_model_goes_on_with_the_clients_answer(start_agent: StartAgent, store: Store) -> None:
    async with start_agent(ASKS_PLACE, says("You are in Bonn.")) as agent, chat(agent, store) as http:
        first = (await ask(http, user("Where am I?")))["message"]
        choice = await ask(http, user("Where am I?"), first, answered(first["tool_calls"][0], "Bonn"))

    assert choice["message"]["content"] == "You are in Bonn."
    _, _, call, result = agent.requests[1].body["messages"]
    assert result["content"] == "Bonn"
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]


async def test_what_the_clusters_tools_had_answered_is_not_forgotten(
    start_agent: StartAgent, store: Store
) -> None:
    both = asks_for(("test_echo", {"text": "beside"}), ("where_am_i", {}))
    async with start_agent(ECHO, both, says("Done.")) as agent, chat(agent, store) as http:
        first = (await ask(http, user("go")))["message"]
        await ask(http, user("go"), first, answered(first["tool_calls"][0], "Bonn"))

    messages = agent.requests[2].body["messages"][1:]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]
    assert [message["content"] for message in messages if message["role"] == "tool"] == [
        "x",
        "beside",
        "Bonn",
    ]
    requested = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == requested


async def test_no_one_goes_on_from_what_another_did(start_agent: StartAgent, store: Store) -> None:
    script: list[Script] = [ECHO, ASKS_PLACE, says("Done.")]
    async with start_agent(*script) as agent:
        async with chat(agent, store, "alice") as http:
            first = (await ask(http, user("go")))["message"]
        async with chat(agent, store, "mallory") as http:
            await ask(http, user("go"), first, answered(first["tool_calls"][0], "Bonn"))

    results = [
        message["content"] for message in agent.requests[2].body["messages"] if message["role"] == "tool"
    ]
    assert results == ["Bonn"]


async def test_ids_that_no_one_was_handed_are_what_they_are(start_agent: StartAgent, store: Store) -> None:
    call = {"id": f"chat_{secrets.token_hex(16)}.1", "type": "function", "function": {**PLACE["function"]}}
    call["function"] = {"name": "where_am_i", "arguments": "{}"}
    theirs = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with start_agent(says("Done.")) as agent, chat(agent, store) as http:
        choice = await ask(http, user("go"), theirs, answered(call, "Bonn"))

    assert choice["message"]["content"] == "Done."
    assert [message["role"] for message in agent.requests[0].body["messages"]][1:] == [
        "user",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "test_echo"}}])
async def test_a_choice_of_the_client_is_for_the_first_answer(
    start_agent: StartAgent, store: Store, choice: object
) -> None:
    async with start_agent(ECHO, says("Done.")) as agent, chat(agent, store) as http:
        answer = await ask(http, user("go"), tool_choice=choice)

    assert answer["message"]["content"] == "Done."
    # Only some servers take it, which a test cannot be: here it must have come as far as the run.
    body = {"model": "beckon", "messages": [user("go")], "tool_choice": choice}
    assert ChatRequest.model_validate(body).to_options().first_choice == choice


async def test_a_client_that_wants_no_tools_hands_in_none(start_agent: StartAgent, store: Store) -> None:
    async with start_agent(says("None.")) as agent, chat(agent, store) as http:
        await ask(http, user("go"), tool_choice="none")

    assert "tools" not in agent.requests[0].body


async def test_the_typed_client_runs_its_own_functions(start_agent: StartAgent, store: Store) -> None:
    async with start_agent(ECHO, ASKS_PLACE, says("In Bonn.")) as agent, chat(agent, store) as http:
        client = AsyncOpenAI(base_url=str(http.base_url), api_key="sk-any", max_retries=0)
        messages: list[Any] = [user("go")]
        async with client:
            first = await client.chat.completions.create(model="beckon", messages=messages, tools=[PLACE])
            said = first.choices[0].message
            assert said.tool_calls
            messages += [said.model_dump(exclude_none=True), answered({"id": said.tool_calls[0].id}, "Bonn")]
            async with client.chat.completions.stream(
                model="beckon", messages=messages, tools=[PLACE]
            ) as stream:
                final = await stream.get_final_completion()

    assert final.choices[0].message.content == "In Bonn."
    assert len(agent.requests) == 3


async def test_requests_side_by_side_keep_apart(start_agent: StartAgent, store: Store) -> None:
    async with start_agent(ASKS_PLACE, ASKS_PLACE) as agent, chat(agent, store) as http:
        choices = await asyncio.gather(ask(http, user("one")), ask(http, user("two")))

    ids = {choice["message"]["tool_calls"][0]["id"] for choice in choices}
    assert len(ids) == 2
