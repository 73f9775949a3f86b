"""Requests that no agent can take: each gets its reason in OpenAI's shape, and never reaches the model."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from beckon_agent.api.http.middleware import BodyLimit
from tests.agent.running_agent import RunningAgent, Setup, running_agent, user
from tests.agent.scripted_model import says
from tests.patience import PATIENCE
from tests.serving import served

CLOSED = "http://127.0.0.1:9"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningAgent]:
    """An agent whose model no one should ever ask."""
    setup = Setup(max_request_bytes=2_000_000)
    async with running_agent(CLOSED, tmp_path_factory.mktemp("empty"), setup=setup) as running:
        yield running
        assert running.requests == []


def check(document: dict[str, Any], code: str = "invalid_request") -> dict[str, Any]:
    """Return the error of an answer, which must have OpenAI's shape."""
    error: dict[str, Any] = document["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["code"] == code
    assert "Traceback" not in error["message"]
    return error


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


async def send(agent: RunningAgent, body: bytes, content_type: str = "application/json") -> Any:
    headers = {"content-type": content_type} if content_type else {}
    return await agent.http.post("/v1/chat/completions", content=body, headers=headers)


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools.0.type", "of the type 'function'"),
        ({"functions": [{"name": "f"}]}, "functions", "send 'tools' instead"),
        ({"tool_choice": "any"}, "tool_choice", "'auto', 'none', 'required'"),
        ({"tool_choice": {"type": "custom", "custom": {"name": "f"}}}, "tool_choice", "names a function"),
        ({"function_call": {"name": "f"}}, "function_call", "send 'tool_choice' instead"),
        ({"top_logprobs": 2}, "top_logprobs", "'logprobs': true"),
        ({"metadata": {"k": "v"}}, "metadata", "'store': true"),
        (
            {"messages": [{"role": "user", "content": [{"type": "zzz"}]}]},
            "messages.0.content.0.type",
            "'zzz' is not taken; send text, refusal",
        ),
    ],
)
async def test_a_request_may_not_want_what_an_agent_does_not_do(
    agent: RunningAgent, fields: dict[str, Any], param: str, said: str
) -> None:
    response = await agent.post(**fields)

    assert response.status_code == 400
    error = check(response.json(), "unsupported_value")
    assert error["param"] == param
    assert said in error["message"]


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"tools": [{"type": "function"}]}, "tools.0", "invalid_request"),
        ({"tools": [function("two words")]}, "tools.0.function.name", "invalid_request"),
        ({"tools": [function("f"), function("f")]}, "tools.1.name", "tool_name_taken"),
        ({"tool_choice": function("f")}, "tool_choice", "unknown_tool"),
    ],
)
async def test_a_function_must_have_a_good_name_of_its_own(
    agent: RunningAgent, fields: dict[str, Any], param: str, code: str
) -> None:
    response = await agent.post(**fields)

    assert response.status_code == 400
    assert check(response.json(), code)["param"] == param


@pytest.mark.parametrize("n", [0, 2, -1])
async def test_one_answer_is_all_there_is(agent: RunningAgent, n: int) -> None:
    response = await agent.post(n=n)

    assert response.status_code == 400
    assert "leave 'n' out" in check(response.json(), "unsupported_value")["message"]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o" * 100, "", "\ud800", "Beckon"])
async def test_an_unknown_model_is_a_404_that_names_the_agents(agent: RunningAgent, model: str) -> None:
    response = await send(agent, json.dumps({"model": model, "messages": [user("go")]}).encode())

    assert response.status_code == 404
    error = check(response.json(), "model_not_found")
    assert error["message"].endswith("set 'model' to one of: beckon")
    assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": "hi"}, "messages", "list"),
        ({"messages": None}, "messages", "list"),
        ({"messages": [5]}, "messages.0", "dictionary"),
        ({"messages": [{"content": "hi"}]}, "messages.0.role", "required"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "messages.0.role", "'user'"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content", "a list of content parts"),
        (
            {"messages": [{"role": "user", "content": ["hi"]}]},
            "messages.0.content",
            "a list of content parts",
        ),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "messages.0.content", "a list of content"),
        ({"messages": [user("")]}, "messages", "blank"),
        ({"messages": [user(" \n\t")]}, "messages", "blank"),
        ({"messages": [{"role": "user", "content": None}]}, "messages", "blank"),
        ({"messages": [{"role": "user"}]}, "messages", "blank"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, "messages", "blank"),
        ({"messages": [{"role": "system", "content": "x"}, user("")]}, "messages", "blank"),
        ({"messages": [{"role": "assistant", "content": ""}]}, "messages", "blank"),
        ({"messages": [user("x")] * 10_001}, "messages", "at most 10000"),
        ({"model": None}, "model", "string"),
        ({"model": 5}, "model", "string"),
        ({"stream": "perhaps"}, "stream", "boolean"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "number"),
        ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
        ({"max_completion_tokens": -5}, "max_completion_tokens", "greater than or equal to 1"),
        ({"stream_options": "usage"}, "stream_options", "dictionary"),
        ({"beckon": []}, "beckon", "dictionary"),
        ({"n": "many"}, "n", "integer"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function", "required"),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "any", "tools": []}}},
            "tool_choice.allowed_tools.mode",
            "'required'",
        ),
        ({"top_p": 7}, "top_p", "less than or equal to 1"),
        ({"seed": "x"}, "seed", "integer"),
        ({"presence_penalty": 3}, "presence_penalty", "less than or equal to 2"),
        ({"frequency_penalty": "much"}, "frequency_penalty", "number"),
        ({"logit_bias": {"50256": 101}}, "logit_bias.50256", "less than or equal to 100"),
        ({"logprobs": "all"}, "logprobs", "boolean"),
        ({"top_logprobs": 21}, "top_logprobs", "less than or equal to 20"),
        ({"reasoning_effort": "extreme"}, "reasoning_effort", "'low'"),
        ({"verbosity": "chatty"}, "verbosity", "'low'"),
        ({"parallel_tool_calls": "no way"}, "parallel_tool_calls", "boolean"),
        ({"response_format": {"type": "zzz"}}, "response_format.type", "'json_schema'"),
        ({"response_format": {"type": "json_schema"}}, "response_format", "'name' and 'schema'"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "zzz"}},
                }
            },
            "response_format.json_schema.schema",
            "is no JSON Schema",
        ),
        ({"metadata": {"k": "v" * 513}}, "metadata.k", "at most 512"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages.0.content.0.text",
            "must be a string",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "https://x"}]}]},
            "messages.0.content.0.image_url",
            "must be an object",
        ),
    ],
)
async def test_a_field_of_the_wrong_kind_is_named(
    agent: RunningAgent, fields: dict[str, Any], param: str, said: str
) -> None:
    response = await send(agent, json.dumps({"model": "beckon", "messages": [user("go")], **fields}).encode())

    assert response.status_code == 400
    error = check(response.json())
    assert error["param"] == param
    assert said in error["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "must be a JSON object"),
        (b"{oops", "not JSON"),
        (b'{"model": "beckon"', "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"5", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"\xff\xfe\x00", "parsing the body"),
        (b"[" * 50_000, ""),
    ],
)
async def test_a_body_that_is_no_request_is_answered_with_what_it_is(
    agent: RunningAgent, body: bytes, said: str
) -> None:
    response = await send(agent, body)

    assert response.status_code == 400
    assert said in check(response.json())["message"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_only_json_is_taken_because_any_web_page_can_send_the_rest(
    agent: RunningAgent, content_type: str
) -> None:
    body = json.dumps({"model": "beckon", "messages": [user("go")]}).encode()
    response = await send(agent, body, content_type)

    assert response.status_code == 400
    assert "application/json" in check(response.json())["message"]


async def test_what_is_not_served_has_the_shape_of_its_neighbours(agent: RunningAgent) -> None:
    missing = await agent.http.get("/v1/nothing/here")
    wrong_method = await agent.http.get("/v1/chat/completions")
    other = await agent.http.get("/nothing")
    other_method = await agent.http.delete("/tools")

    assert (missing.status_code, wrong_method.status_code) == (404, 405)
    assert check(missing.json(), "not_found")["message"].startswith("GET /v1/nothing/here")
    check(wrong_method.json(), "method_not_allowed")
    assert wrong_method.headers["allow"] == "POST"
    assert (other.status_code, other_method.status_code) == (404, 405)
    assert other.headers["content-type"] == "application/problem+json"
    assert other.json()["type"].endswith("/not-found")
    assert other_method.json()["type"].endswith("/method-not-allowed")
    assert other_method.headers["allow"] == "GET, HEAD"


async def test_a_huge_body_is_refused_announced_or_not(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1000

    async with running_agent(CLOSED, tmp_path, setup=Setup(max_request_bytes=10_000)) as agent:
        announced = await agent.post(messages=[user("x" * 20_000)])
        unannounced = await agent.http.post(
            "/v1/chat/completions", content=pieces(), headers={"content-type": "application/json"}
        )
        elsewhere = await agent.http.post("/tools/x", json={"x": "x" * 20_000})

    for response in (announced, unannounced):
        assert response.status_code == 413
        assert "larger than 10000 bytes" in check(response.json(), "request_too_large")["message"]
    assert elsewhere.status_code == 413
    assert elsewhere.json()["type"].endswith("/request-too-large")


async def test_what_is_not_known_is_ignored_and_odd_text_reaches_the_model(tmp_path: Path) -> None:
    body = (
        b'{"model": "beckon", "future_field": {"x": 1}, "temperature": null, "stop": [], "tools": [],'
        b'"messages": [{"role": "user", "content": [{"type": "text", "text": "lone \\ud800 \\u0000"}],'
        b'"name": "me", "future": true}]}'
    )
    async with running_agent(CLOSED, tmp_path, says("fine")) as agent:
        response = await send(agent, body)

        assert response.status_code == 200, response.text
        assert response.json()["choices"][0]["message"]["content"] == "fine"
        assert agent.requests[0].body["messages"][-1]["content"].startswith("lone ")


async def test_a_conversation_may_end_with_any_role(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path, says("a"), says("b")) as agent:
        await agent.ask({"role": "system", "content": "Say a."})
        await agent.ask(user("go"), {"role": "assistant", "content": "So"})

        assert len(agent.requests) == 2


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async def app(*_: object) -> None:
        raise AssertionError("the body is not whole")

    async with served(BodyLimit(app, limit=1000, seconds=0.05)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nhalf")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
        writer.close()
        await writer.wait_closed()

    assert b" 408 " in head
