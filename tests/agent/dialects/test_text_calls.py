"""The setting for calls in the text of an answer, and what an Agent says of it."""

from typing import Never

import pytest
from pydantic import ValidationError

from beckon_agent.hosting.keys import KeyRing, Wanted
from beckon_agent.hosting.models import ModelSpec
from beckon_agent.hosting.own import Own, model_of
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ToolsNotSupported
from beckon_agent.runs import Agent, Limits, Options
from beckon_agent.settings import Settings
from beckon_agent.turns import Model
from beckon_contract.agent_resources import KIND, read_agent
from beckon_contract.resources import from_object
from beckon_contract.tool_resources import API_VERSION
from tests.agent.running_agent import QUICK
from tests.agent.scripted_model import KEY, refuses, scripted_model

URL = "http://127.0.0.1:9/v1"


async def _reads_nothing(wanted: Wanted) -> Never:
    raise AssertionError("no Agent here names a Secret")


NO_KEYS = KeyRing(_reads_nothing, list, print, 1)
OWN = Own(Agent("a", "default", "", Limits()), ModelSpec(URL, "m", "auto", "k", "any"))


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
            async for _ in Model(client, "auto", "never").stream([], [], Options()):
                pass
