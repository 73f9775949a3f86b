"""The demo model over real HTTP: OpenAI's forms, streams, errors, and the dialects' renderings.

Covered: the openai client streaming and not, parallel calls, usage, markup in pieces, the
refusal of tools, bad requests, start and stop of the process.
"""

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel

from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.base import Item
from beckon_agent.dialects.registry import DIALECTS
from beckon_demo.app import build_app
from tests.patience import PATIENCE
from tests.serving import served

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "calculator",
            "description": "Calculate an arithmetic expression.",
            "parameters": {
                "type": "object",
                "properties": {"expression": {"type": "string"}},
                "required": ["expression"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "current_time",
            "description": "Tell the time in a city.",
            "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}},
        },
    },
]
BOTH = "What is 2+2 and what time is it in Europe/Paris?"
SUM = ("calculator", {"expression": "2+2"})
TIME = ("current_time", {"timezone": "Europe/Paris"})


@asynccontextmanager
async def _demo(**changes: int) -> AsyncIterator[str]:
    async with served(build_app(**changes), lifespan="off") as url:
        yield f"{url}/v1"


def _client(base_url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)


def _requested(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def test_an_openai_client_gets_calls_and_then_an_answer_that_quotes_the_results() -> None:
    async with _demo() as url, _client(url) as client:
        history = _requested(BOTH)
        first = await client.chat.completions.create(model="demo", messages=history, tools=TOOLS)
        message = first.choices[0].message
        calls = message.tool_calls or []
        assert first.choices[0].finish_reason == "tool_calls"
        assert [
            (c.function.name, json.loads(c.function.arguments)) for c in calls if c.type == "function"
        ] == [SUM, TIME]
        history.append(message.model_dump(exclude_none=True))
        history += [
            {"role": "tool", "tool_call_id": calls[0].id, "content": '{"result": 4}'},
            {"role": "tool", "tool_call_id": calls[1].id, "content": '{"error": {"reason": "timeout"}}'},
        ]
        last = await client.chat.completions.create(model="demo", messages=history, tools=TOOLS)

    assert last.choices[0].message.content == "[demo model] calculator: 4\ncurrent_time failed: timeout"
    assert last.choices[0].finish_reason == "stop"
    assert last.usage is not None
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens > 0


_ONE: Any = {"type": "function", "function": {"name": "current_time"}}


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", []),
        ("auto", []),
        ("required", ["current_time"]),
        (_ONE, ["current_time"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [_ONE]}}, []),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [_ONE]}}, ["current_time"]),
    ],
)
async def test_each_tool_choice_is_obeyed(choice: Any, called: list[str]) -> None:
    async with _demo() as url, _client(url) as client:
        answer = await client.chat.completions.create(
            model="demo", messages=_requested("Hello"), tools=TOOLS, tool_choice=choice
        )

    calls = answer.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == called


async def test_a_stream_brings_calls_in_pieces_and_its_usage_last() -> None:
    async with _demo() as url, _client(url) as client:
        stream = await client.chat.completions.create(
            model="demo",
            messages=_requested(BOTH),
            tools=TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]

    deltas = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    arguments = [
        "".join(d.function.arguments or "" for d in deltas if d.function and d.index == i) for i in (0, 1)
    ]
    assert [delta.function.name for delta in deltas if delta.function and delta.id] == [
        "calculator",
        "current_time",
    ]
    assert [json.loads(text) for text in arguments] == [SUM[1], TIME[1]]
    assert len(deltas) > 8
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason] == [
        "tool_calls"
    ]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None


async def test_a_streamed_text_is_the_text_that_is_not_streamed() -> None:
    async with _demo() as url, _client(url) as client:
        whole = await client.chat.completions.create(model="demo", messages=_requested("Hello"))
        stream = await client.chat.completions.create(model="demo", messages=_requested("Hello"), stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]

    assert "".join(pieces) == whole.choices[0].message.content
    assert len(pieces) > 10
    assert all(len(piece) <= 4 for piece in pieces)


async def _read(client: openai.AsyncOpenAI, model: str, dialect: str, history: list[Any]) -> list[Item]:
    rendered = DIALECTS[dialect].render(history, TOOLS)
    messages: list[Any] = list(rendered.messages)
    reader = DIALECTS[dialect].make_reader(TOOLS)
    stream = await client.chat.completions.create(
        model=model, messages=messages, stop=list(rendered.stop), stream=True
    )
    items: list[Item] = []
    async for chunk in stream:
        items += reader.feed(chunk.choices[0].delta.content or "")
    return items + reader.finish()


@pytest.mark.parametrize("model", ["demo", "demo-no-tools", "demo-prompted", "demo-chatglm3"])
@pytest.mark.parametrize("dialect", ["prompted", "chatglm3"])
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_prompt_of_our_dialects_is_answered_in_its_markup(
    model: str, dialect: str, size: int
) -> None:
    async with _demo(chunk_characters=size) as url, _client(url) as client:
        history = [{"role": "system", "content": "Be kind."}, *_requested(BOTH)]
        calls = [item for item in await _read(client, model, dialect, history) if isinstance(item, ToolCall)]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == [SUM, TIME]

        wire = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in calls
        ]
        history.append({"role": "assistant", "content": None, "tool_calls": wire})
        results = [{"role": "tool", "tool_call_id": call.id, "content": '{"result": 4}'} for call in calls]
        answer = await _read(client, model, dialect, [*history, *results])
        again = await _read(
            client, model, dialect,
            [*history, *results, {"role": "assistant", "content": "4 and 4."}, *_requested("What is 3*3?")],
        )  # fmt: skip

    assert "".join(item.text for item in answer if isinstance(item, TextDelta)) == (
        "[demo model] calculator: 4\ncurrent_time: 4"
    )
    assert [json.loads(item.arguments) for item in again if isinstance(item, ToolCall)] == [
        {"expression": "3*3"}
    ]


async def test_a_model_without_tools_refuses_them_as_a_server_without_a_parser_does() -> None:
    async with _demo() as url, _client(url) as client:
        with pytest.raises(openai.BadRequestError, match="requires --enable-auto-tool-choice"):
            await client.chat.completions.create(
                model="demo-no-tools", messages=_requested(BOTH), tools=TOOLS
            )


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
LIST_CALL = {
    **CALLED,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "[]"}}],
}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "Invalid JSON"),
        (b"[]", 400, "object"),
        (b'{"model": "demo"}', 400, "messages"),
        (b'{"model": "demo", "messages": []}', 400, "messages"),
        (b'{"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}', 404, "gpt-9"),
        ({"messages": [{"role": "observation", "content": "x"}]}, 400, "Invalid value: 'observation'"),
        ({"messages": [*_requested("x"), CALLED, *_requested("y")]}, 400, "had no response: a"),
        ({"messages": [*_requested("x"), CALLED]}, 400, "had no response: a"),
        ({"messages": [*_requested("x"), LIST_CALL]}, 400, "a JSON object"),
        (
            {"messages": [{"role": "tool", "tool_call_id": "b", "content": "x"}]},
            400,
            "must answer a preceding",
        ),
        ({"messages": _requested("x"), "tools": [{"type": "function"}]}, 400, "tools.0.function"),
        ({"messages": _requested("x"), "tool_choice": "any"}, 400, "tool_choice: send none"),
        (
            {"messages": _requested("x"), "tools": TOOLS, "tool_choice": {"type": "function"}},
            400,
            "tool_choice:",
        ),
        (
            {
                "messages": _requested("x"),
                "tool_choice": {"type": "function", "function": {"name": "absent"}},
            },
            400,
            "no function 'absent'",
        ),
        ({"messages": _requested("x" * 3000)}, 413, "larger than 2000 bytes"),
    ],
)
async def test_a_bad_request_is_answered_with_openais_error_object(
    body: bytes | dict[str, Any], status: int, message: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps({"model": "demo", **body}).encode()
    async with _demo(max_request_bytes=2000) as url, httpx2.AsyncClient() as client:
        answer = await client.post(f"{url}/chat/completions", content=content)

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}


async def test_its_models_and_its_health_are_reported_and_other_paths_refused() -> None:
    async with _demo() as url, httpx2.AsyncClient() as client:
        models = (await client.get(f"{url}/models")).json()
        health = await client.get(url.replace("/v1", "/healthz"))
        unknown = await client.get(f"{url}/nope")
        wrong = await client.get(f"{url}/chat/completions")

    assert [one["id"] for one in models["data"]] == [
        "demo",
        "demo-no-tools",
        "demo-prompted",
        "demo-chatglm3",
    ]
    assert health.status_code == 200
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "not_found_error")
    assert wrong.status_code == 405


async def test_the_process_shows_its_address_serves_and_stops_cleanly() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "beckon_demo", "--port", "0", stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        line = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found is not None
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"{found.group()}/healthz")).status_code == 200
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("taken", [True, False])
async def test_a_port_that_is_taken_or_no_port_gives_one_clear_line(taken: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1]) if taken else "many"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "beckon_demo", "--port", port, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 2
    assert errors.decode().startswith(f"beckon_demo: {'cannot listen' if taken else 'BECKON_PORT: '}")
    assert errors.decode().count("\n") == 1


class _Booking(BaseModel):
    city: str
    nights: int


async def test_an_answer_has_the_json_schema_of_its_request() -> None:
    question = _requested("Book 3 nights in Rome")
    async with _demo() as url, _client(url) as client:
        parsed = await client.chat.completions.parse(
            model="demo", messages=question, response_format=_Booking
        )
        free = await client.chat.completions.create(
            model="demo", messages=question, response_format={"type": "json_object"}
        )

    assert parsed.choices[0].message.parsed == _Booking(city="Rome", nights=3)
    assert list(json.loads(free.choices[0].message.content or "")) == ["answer"]


async def test_a_schema_of_several_forms_is_refused_as_by_openai() -> None:
    schema = {"anyOf": [_Booking.model_json_schema()]}
    wanted = {"type": "json_schema", "json_schema": {"name": "booking", "schema": schema}}
    async with _demo() as url, _client(url) as client:
        with pytest.raises(openai.BadRequestError, match="'anyOf' is not permitted") as refused:
            await client.chat.completions.create(
                model="demo", messages=_requested("Book 3 nights"), extra_body={"response_format": wanted}
            )

    assert refused.value.param == "response_format"
