"""One answer of a model: falling back to a dialect, fewer keywords, and what cannot be read."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from beckon_agent.core.model_types import Message, Turn
from beckon_agent.core.run_events import StreamItem, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelRefused, SchemaRejected, ToolsNotSupported
from beckon_agent.run.model_turn import DialectModel
from beckon_contract.resources.tools import Tool
from tests.agent.running_agent import QUICK
from tests.agent.scripted_model import (
    KEY,
    ReceivedRequest,
    Reply,
    Script,
    ScriptedModel,
    answers,
    asks_for,
    refuses,
    says,
    scripted_model,
)

MESSAGES: list[Message] = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "go"}]
ECHO = Tool(
    "echo",
    "default",
    "echo",
    "echo",
    None,
    "Say it again.",
    {"type": "object", "properties": {"text": {"type": "string", "pattern": "^a*$"}}, "required": ["text"]},
    "spec.schemaData",
)
NO_TOOLS = refuses(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser')
NO_SCHEMA = refuses(400, "Failed to initialize samplers: failed to parse grammar")
PROMPTED_CALL = '{"functionCall": {"name": "echo", "args": {"text": "a"}}}'


@asynccontextmanager
async def speaking(
    *script: Script, dialect: str = "auto", name: str = "m"
) -> AsyncIterator[tuple[DialectModel, ScriptedModel]]:
    async with (
        scripted_model(*script) as server,
        ModelClient(server.base_url, KEY, name, patience=QUICK) as client,
    ):
        yield DialectModel(client, dialect), server


async def items_of(
    model: DialectModel,
    tools: Sequence[Tool] = (ECHO,),
    messages: Sequence[Message] = MESSAGES,
    **options: Any,
) -> list[StreamItem]:
    return [item async for item in model.stream(messages, tools, Options(**options))]


async def turn_of(model: DialectModel, tools: Sequence[Tool] = (ECHO,)) -> Turn:
    last = (await items_of(model, tools))[-1]
    assert isinstance(last, Turn)
    return last


def with_tools(server: ScriptedModel) -> list[bool]:
    """Return which requests declared tools natively."""
    return [bool(request.body.get("tools")) for request in server.requests]


async def test_auto_falls_back_when_the_server_has_no_tools_and_remembers_it() -> None:
    async with speaking(NO_TOOLS, says(PROMPTED_CALL), says("hello")) as (model, server):
        first, second = await turn_of(model), await turn_of(model)

        assert [(call.name, call.arguments) for call in first.calls] == [("echo", '{"text": "a"}')]
        assert second.text == "hello"
        assert with_tools(server) == [True, False, False]
        assert "echo" in server.requests[1].body["messages"][0]["content"]
        assert model.name == "m (prompted)"


async def test_the_name_of_a_model_suggests_the_dialect_to_fall_back_to() -> None:
    async with speaking(NO_TOOLS, says("hello"), name="chatglm3-6b") as (model, _):
        await turn_of(model)

        assert model.name == "chatglm3-6b (chatglm3)"


async def test_an_explicit_dialect_never_falls_back() -> None:
    async with speaking(NO_TOOLS, says("never"), dialect="native") as (model, server):
        with pytest.raises(ToolsNotSupported):
            await turn_of(model)

        assert len(server.requests) == 1


async def test_a_refused_schema_is_declared_with_fewer_keywords_and_then_in_words() -> None:
    script = (NO_SCHEMA, NO_SCHEMA, says('{"answer": "hello"}'), says('{"answer": "again"}'))
    async with speaking(*script) as (model, server):
        assert (await turn_of(model)).text == "hello"
        assert (await turn_of(model)).text == "again"

        assert with_tools(server) == [True, True, False, False]
        plain, fewer = (str(request.body["tools"]) for request in server.requests[:2])
        assert "'pattern'" in plain
        assert "'pattern'" not in fewer


async def test_fewer_keywords_may_be_enough_and_are_remembered() -> None:
    call = asks_for(("echo", {"text": "a"}))
    async with speaking(NO_SCHEMA, call, call, dialect="native") as (model, server):
        assert len((await turn_of(model)).calls) == 1
        assert len((await turn_of(model)).calls) == 1

        assert len({str(request.body["tools"]) for request in server.requests[1:]}) == 1
        assert with_tools(server) == [True] * 3


async def test_an_explicit_dialect_gives_up_where_fewer_keywords_do_not_help() -> None:
    async with speaking(NO_SCHEMA, NO_SCHEMA, says("never"), dialect="native") as (model, server):
        with pytest.raises(SchemaRejected):
            await turn_of(model)

        assert len(server.requests) == 2


@pytest.mark.parametrize("refusal", [NO_TOOLS, NO_SCHEMA])
async def test_runs_that_are_refused_at_the_same_time_all_fall_back(refusal: Reply) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        return refusal if request.body.get("tools") else says("hello")

    async with speaking(*[answer] * 40) as (model, _):
        turns = await asyncio.gather(*(turn_of(model) for _ in range(8)))

    assert [turn.text for turn in turns] == ["hello"] * 8


async def test_a_text_dialect_is_read_while_it_streams_and_its_markup_is_not_shown() -> None:
    script = (refuses(400, "unknown field response_format"), says("Let me ", "see.\n", *PROMPTED_CALL))
    async with speaking(*script, dialect="prompted") as (model, server):
        items = await items_of(model)

        shown = "".join(item.text for item in items if isinstance(item, TextDelta))
        turn = items[-1]
        assert isinstance(turn, Turn)
        assert shown.strip() == "Let me see."
        assert shown == turn.text
        assert [call.name for call in turn.calls] == ["echo"]
        assert with_tools(server) == [False, False]


async def test_an_answer_of_markup_that_cannot_be_read_is_shown() -> None:
    async with speaking(says('<tool_call>{"name": "echo"', ', "arguments": {"a": 1'), dialect="hermes") as (
        model,
        _,
    ):
        items = await items_of(model)

    text = "".join(item.text for item in items if isinstance(item, TextDelta))
    assert text == '<tool_call>{"name": "echo", "arguments": {"a": 1'
    assert isinstance(items[-1], Turn)
    assert items[-1].text == text


async def test_more_tools_than_the_server_takes_are_no_request() -> None:
    many = [
        Tool(f"t{n}", "d", f"t{n}", f"t{n}", None, "T.", {"type": "object"}, "spec.schemaData")
        for n in range(129)
    ]
    async with speaking(says("a")) as (model, server):
        await turn_of(model, many[:128])
        with pytest.raises(ModelRefused, match="129 tools are more than the 128"):
            await turn_of(model, many)

        assert [len(request.body["tools"]) for request in server.requests] == [128]


@pytest.mark.parametrize(("name", "limit"), [("m", 128), ("qwen3:8b", 16), ("gemma3:4b", 8)])
async def test_a_model_says_how_many_tools_it_takes(name: str, limit: int) -> None:
    listing = answers({"object": "list", "data": [{"id": name, "object": "model"}]})
    async with speaking(name=name) as (named, _), speaking(listing, name="") as (first, _):
        assert await named.tool_limit() == limit
        assert await first.tool_limit() == limit


async def test_the_first_model_of_the_server_is_taken_where_none_is_named() -> None:
    def listing(request: ReceivedRequest) -> Reply:
        assert request.path == "/v1/models"
        body = b'{"object": "list", "data": [{"id": "the-first", "object": "model"}]}'
        return Reply([body], content_type="application/json")

    async with speaking(listing, says("hello"), name="") as (model, server):
        await turn_of(model)

        assert server.requests[1].body["model"] == "the-first"
        assert model.name == "the-first (native)"


def test_a_dialect_that_does_not_exist_is_refused_with_those_that_do() -> None:
    client = ModelClient("http://127.0.0.1:9/v1", KEY, "m")

    with pytest.raises(ValueError, match="prompted"):
        DialectModel(client, "klingon")
