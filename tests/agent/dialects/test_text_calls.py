"""The setting for calls in the text of an answer, and what an Agent says of it."""

import asyncio
import time
from typing import Never

import pytest
from pydantic import ValidationError

from beckon_agent.agents.configured import ConfiguredAgent, model_of
from beckon_agent.agents.keys import KeyRing, SecretEntry
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.core.model_types import Message, Turn
from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_agent.dialects.base import RawCall
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ToolsNotSupported
from beckon_agent.run.answer_reading import TextCallFilter
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.settings import Settings
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.agent_resource import KIND, read_agent
from beckon_contract.resources.tools import API_VERSION, Tool
from tests.agent.running_agent import QUICK
from tests.agent.scripted_model import KEY, declaration, refuses, says, scripted_model

URL = "http://127.0.0.1:9/v1"


async def _reads_nothing(wanted: SecretEntry) -> Never:
    raise AssertionError("no Agent here names a Secret")


NO_KEYS = KeyRing(_reads_nothing, list, print, 1)
OWN = ConfiguredAgent(Agent("a", "default", "", Limits()), ModelSpec(URL, "m", "auto", "k", "any"))


def test_the_default_is_the_models_own_family(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().text_calls == "own"
    monkeypatch.setenv("BECKON_TEXT_CALLS", "never")
    assert Settings().text_calls == "never"


def test_another_value_is_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BECKON_TEXT_CALLS", "always")

    with pytest.raises(ValidationError, match="'never', 'own' or 'any'"):
        Settings()


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({}, "any"),
        ({"textCalls": "never"}, "never"),
        ({"textCalls": "own", "model": {"baseURL": URL}}, "own"),
        ({"model": {"baseURL": URL}}, "any"),
    ],
)
def test_an_agent_says_it_or_has_the_services_setting(spec: dict[str, object], meant: str) -> None:
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "helper"}, "spec": spec}

    found = model_of(read_agent(from_object(document)), OWN, NO_KEYS)

    assert isinstance(found, ModelSpec)
    assert found.text_calls == meant


async def test_auto_with_never_does_not_fall_back_to_a_dialect_that_writes_calls_as_text() -> None:
    async with (
        scripted_model(refuses(400, "the model does not support tools")) as server,
        ModelClient(server.base_url, KEY, "m", patience=QUICK) as client,
    ):
        with pytest.raises(ToolsNotSupported):
            async for _ in DialectModel(client, "auto", "never").stream([], [], Options()):
                pass


async def test_the_event_loop_goes_on_while_a_long_conversation_is_searched() -> None:
    """The longest time between two turns of the loop is below the time of the search itself."""
    declared = declaration("effect", "tag")
    parameters = declared["function"]["parameters"]
    effect = Tool("effect", "default", "effect", "effect", None, "effect", parameters, "spec.schemaData")
    call = '<tool_call>{"name": "effect", "arguments": {"tag": "X"}}</tool_call>'
    messages: list[Message] = [{"role": "user", "content": "a few words of a long text, " * 35_000}]
    begun = time.perf_counter()
    assert TextCallFilter(messages, [declared]).allow_calls([RawCall("effect", '{"tag": "X"}')], call)
    search = time.perf_counter() - begun

    async with (
        scripted_model(says(call)) as server,
        ModelClient(server.base_url, KEY, "qwen3", patience=QUICK) as client,
    ):
        watch = asyncio.create_task(_longest_pause())
        items = [item async for item in DialectModel(client, "native").stream(messages, [effect], Options())]
        watch.cancel()
        longest = await watch

    turn = items[-1]
    assert isinstance(turn, Turn)
    assert [one.name for one in turn.calls] == ["effect"]
    assert longest < 0.8 * search


async def _longest_pause() -> float:
    """Return the longest time between two turns of the loop, in seconds, once cancelled."""
    longest, last = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        return longest
