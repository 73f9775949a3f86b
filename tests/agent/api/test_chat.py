"""Chat completions: streaming and not give the same, and an OpenAI client needs no more than a base URL."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from openai import AsyncOpenAI, NotFoundError
from openai.types.chat import ChatCompletionMessageParam

from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.core.run_types import Limits
from tests.agent.conftest import StartAgent
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import RunningAgent, Setup, payloads, user
from tests.agent.scripted_model import (
    Reply,
    Script,
    asks_for,
    calls,
    chunk,
    fragment,
    refuses,
    says,
    sse,
    streamed,
)
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
ECHO = asks_for(("test_echo", {"text": "x"}), ("test_nothing", {"a": 1}))


@pytest.mark.parametrize(
    "script",
    [
        [says("Hel", "lo.")],
        [streamed(chunk({"reasoning": "hm"}), chunk({"content": "Yes."}), chunk(finish="stop"), USAGE)],
        [streamed(chunk({"content": "cut of"}), chunk(finish="length"), USAGE)],
        [streamed(chunk({"content": "no"}), chunk(finish="content_filter"))],
        [ECHO, streamed(chunk({"content": "Done."}), chunk(finish="stop"), USAGE)],
        [ECHO, ECHO, ECHO],
        [streamed(chunk(finish="stop"))],
    ],
)
async def test_streaming_and_not_give_the_same(start_agent: StartAgent, script: list[Script]) -> None:
    async with start_agent(*script, *script, setup=Setup(limits=Limits(steps=3))) as agent:
        whole, streamed_ = await agent.ask(), await agent.ask_streaming()

    assert (whole.text, whole.reasoning, whole.finish_reason, whole.usage) == (
        streamed_.text,
        streamed_.reasoning,
        streamed_.finish_reason,
        streamed_.usage,
    )
    fields = ("type", "name", "arguments", "failed", "result")
    for answer in (whole, streamed_):
        for event in answer.events:
            assert event["id"]
    named = [
        sorted(json.dumps({key: event.get(key) for key in fields}) for event in answer.events)
        for answer in (whole, streamed_)
    ]
    assert named[0] == named[1]


def openai_client(agent: RunningAgent) -> AsyncOpenAI:
    """Return a client in which only the base URL was changed."""
    return AsyncOpenAI(base_url=f"{agent.url}/v1", api_key="sk-any", max_retries=0)


async def test_the_openai_client_works_with_only_its_base_url_changed(start_agent: StartAgent) -> None:
    script = [
        asks_for(("test_echo", {"text": "x"})),
        streamed(chunk({"content": "Done."}), chunk(finish="stop"), USAGE),
    ]
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "go"}]
    async with start_agent(*script, *script) as agent, openai_client(agent) as client:
        whole = await client.chat.completions.create(model="beckon", messages=messages)
        stream = await client.chat.completions.create(
            model="beckon", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [piece async for piece in stream]
        models = await client.models.list()
        with pytest.raises(NotFoundError, match="beckon"):
            await client.chat.completions.create(model="gpt-4o", messages=messages)

    assert whole.choices[0].message.content == "Done."
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert whole.usage.total_tokens == 10
    assert whole.model == "beckon"
    assert "".join(piece.choices[0].delta.content or "" for piece in chunks if piece.choices) == "Done."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10
    assert [model.id for model in models.data] == ["beckon"]


async def test_a_stream_opens_with_the_role_and_ends_with_done(start_agent: StartAgent) -> None:
    async with start_agent(says("Hi.")) as agent:
        response = await agent.post(stream=True)
        chunks = payloads(response.text)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len({piece["id"] for piece in chunks}) == 1
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all(piece["choices"] for piece in chunks), "usage only where it was asked for"


async def test_what_a_request_asks_of_the_model_reaches_it(start_agent: StartAgent) -> None:
    request = {
        "temperature": 0.5,
        "max_tokens": 50,
        "stop": ["END", "STOP"],
        "seed": 7,
        "top_p": 0.9,
        "response_format": {"type": "json_object"},
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "top_logprobs": 2,
        "reasoning_effort": "low",
        "verbosity": "high",
        "user": "me",
        "safety_identifier": "s",
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "prompt_cache_options": {"mode": "explicit"},
        "parallel_tool_calls": True,
    }
    async with start_agent(says("{}"), says("b")) as agent:
        await agent.ask(**request)
        await agent.ask(max_completion_tokens=60, stop="END", max_tokens=None)
        first, second = (one.body for one in agent.requests)

    assert {name: first[name] for name in request} == request
    assert not first.keys() & {"store", "beckon"}
    assert (second["max_tokens"], second["stop"]) == (60, ["END"])
    assert "temperature" not in second


async def test_roles_and_content_parts_reach_the_model(start_agent: StartAgent) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    text = {"type": "text", "text": "What is this?"}
    async with start_agent(says("a"), says("b")) as agent:
        await agent.ask(
            {"role": "developer", "content": "Be brief."}, {"role": "user", "content": [text, picture]}
        )
        await agent.ask({"role": "user", "content": [text, text]})
        first, second = (one.body["messages"] for one in agent.requests)

    assert first[0]["role"] == "system"
    assert "Be brief." in first[0]["content"]
    assert first[-1]["content"] == [text, picture]
    assert second[-1]["content"] == "What is this?What is this?"


async def test_a_side_request_makes_no_call_where_the_model_makes_none(start_agent: StartAgent) -> None:
    async with start_agent(says("A title"), says("A title")) as agent:
        answer = await agent.ask(user("Name this chat"), max_tokens=20)
        await agent.ask(user("Name this chat"), tool_choice="none")
        tools = ["tools" in one.body for one in agent.requests]

    assert (answer.text, answer.events) == ("A title", [])
    assert tools == [True, False]
    assert BENCH.calls == []


async def test_tool_events_are_reported_only_to_those_who_ask(start_agent: StartAgent) -> None:
    script = [asks_for(("test_echo", {"text": "x"})), says("ok")]
    async with start_agent(*script, *script, *script) as agent:
        plain = (await agent.post()).json()
        quiet = payloads((await agent.post(stream=True)).text)
        answer = await agent.ask()

    assert "beckon" not in plain
    assert not any("beckon" in piece for piece in quiet)
    assert [(event["type"], event["name"]) for event in answer.events] == [
        ("call.started", "test_echo"),
        ("call.finished", "test_echo"),
    ]
    assert answer.events[0]["arguments"] == {"text": "x"}


async def test_what_a_tool_reports_is_shown_to_those_who_ask_for_events(start_agent: StartAgent) -> None:
    script = [asks_for(("test_steps", {"steps": [1, 2]})), says("ok")]
    body = {"model": "beckon", "messages": [user("go")], "stream": True, "beckon": {"events": True}}
    shown: list[dict[str, object]] = []
    async with (
        start_agent(*script) as agent,
        agent.http.stream("POST", "/v1/chat/completions", json=body) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data: {") and (event := json.loads(line[6:]).get("beckon")):
                shown.append(event)
                if event["type"] == "call.progressed":
                    BENCH.gate.set()

    reports = [event for event in shown if event["type"] == "call.progressed"]
    assert [(event["progress"], event["total"], event["message"]) for event in reports] == [
        (1, 4, "step 1"),
        (2, 4, "step 2"),
    ]
    assert {event["id"] for event in shown} == {shown[0]["id"]}
    assert [event["type"] for event in (shown[0], shown[-1])] == ["call.started", "call.finished"]


async def test_comments_keep_a_silent_stream_alive(start_agent: StartAgent) -> None:
    async with start_agent(
        asks_for(("test_wait", {})), says("ok"), setup=Setup(pace=StreamPace(keep_alive=0.05))
    ) as agent:
        body = {"model": "beckon", "messages": [user("go")], "stream": True}
        lines: list[str] = []
        async with agent.http.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if lines.count(": keep-alive") == 3:
                    BENCH.gate.set()

    assert lines.count(": keep-alive") >= 3
    assert [line for line in lines if line][-1] == "data: [DONE]"


async def test_headers_go_out_before_a_slow_first_word(start_agent: StartAgent) -> None:
    hold = asyncio.Event()
    slow = Reply([b": wait\n\n", sse(chunk({"content": "Hi, you."}), chunk(finish="stop"))], holds=hold)
    async with start_agent(slow, setup=Setup(pace=StreamPace(first_event=0.05))) as agent:
        body = {"model": "beckon", "messages": [user("go")], "stream": True}
        async with agent.http.stream("POST", "/v1/chat/completions", json=body) as response:
            assert response.status_code == 200
            hold.set()
            text = "".join([line + "\n" async for line in response.aiter_lines()])

    assert "Hi, you." in text


async def test_a_failure_before_the_first_event_has_a_status_and_one_after_it_is_in_the_stream(
    start_agent: StartAgent,
) -> None:
    said = streamed(
        chunk({"content": "Let me see."}),
        calls(fragment(0, "c", "test_echo", '{"text": "x"}')),
        chunk(finish="stop"),
    )
    async with start_agent(refuses(400, "no"), said, refuses(400, "never")) as agent:
        early = await agent.post(stream=True)
        late = await agent.post(stream=True)
        last = json.loads(late.text.strip().splitlines()[-1].removeprefix("data: "))

    assert early.status_code == 502
    assert early.json()["error"]["code"] == "model_error"
    assert late.status_code == 200
    assert "Let me see." in late.text
    assert "never" in last["error"]["message"]
    assert last["error"]["type"] == "server_error"


async def no_one_waits(platform: EventPlatform) -> bool:
    return await platform.metric("waiting_calls") == 0


@contextlib.asynccontextmanager
async def hanging_up(agent: RunningAgent, *, stream: bool) -> AsyncIterator[None]:
    """Ask, and hang up at the end of the block."""
    async with httpx.AsyncClient(base_url=agent.url, timeout=PATIENCE) as client:
        body = {"model": "beckon", "messages": [user("go")], "stream": stream}
        asking = asyncio.create_task(client.post("/v1/chat/completions", json=body))
        yield
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_hangs_up_frees_the_slot_of_its_tool_call(
    start_agent: StartAgent, platform: EventPlatform, stream: bool
) -> None:
    async with start_agent(asks_for(("test_wait", {})), says("never")) as agent:
        async with hanging_up(agent, stream=stream):
            await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
            assert await platform.metric("waiting_calls") == 1
        await eventually(lambda: no_one_waits(platform))

        assert agent.service.running == 0
        assert len(agent.requests) == 1
        assert await agent.metric("runs_total", ending="cancelled") == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_hangs_up_ends_the_answer_of_the_model(
    start_agent: StartAgent, stream: bool
) -> None:
    never = asyncio.Event()
    talking = Reply([sse(chunk({"content": "On and on"}), done=False), b": more\n\n"], holds=never)
    async with start_agent(talking) as agent:

        async def was_requested() -> bool:
            return bool(agent.requests)

        async with hanging_up(agent, stream=stream):
            await eventually(was_requested)
        await asyncio.wait_for(agent.model.hung_up.wait(), PATIENCE)
        assert agent.service.running == 0


async def test_a_client_that_reads_nothing_is_given_up(start_agent: StartAgent) -> None:
    flood = streamed(*[chunk({"content": "x" * 100_000})] * 300, chunk(finish="stop"))
    async with start_agent(flood, setup=Setup(pace=StreamPace(stalled=0.2))) as agent:
        body = json.dumps({"model": "beckon", "messages": [user("go")], "stream": True}).encode()
        port = int(agent.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.read(1)

        async def is_over() -> bool:
            return agent.service.running == 0 and await agent.metric("runs_total") == 1

        await eventually(is_over)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        assert await agent.metric("runs_total", ending="cancelled") == 1
