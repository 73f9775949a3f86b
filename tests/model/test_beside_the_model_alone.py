"""The agent selects as well as the model alone does, with the same prompt and schema."""

import asyncio
import json
from collections.abc import Iterator

import jsonschema
import pytest

from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.tools.bm25 import Index
from beckon_cli.local.local_model import MODEL
from bench.model.__main__ import count_right
from bench.model.asking import Call, Offer, ask_agent, ask_directly, example_tools, offer, running_model
from bench.model.questions import QUESTIONS
from tests.e2e.local_platform import port_range

SOME = QUESTIONS[::10]
TOOLS = example_tools()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_model(port_range()) as url:
        yield url


@pytest.mark.timeout(600)
@pytest.mark.parametrize("limit", [1, 3])
def test_its_calls_are_valid_and_right_as_often(server: str, limit: int) -> None:
    index = Index(TOOLS)
    request = [offer(question, TOOLS, index, limit) for question in SOME]

    ours = asyncio.run(_ask_all(server, request))
    alone = [ask_directly(server, one) for one in request]

    for call in filter(None, ours):
        jsonschema.validate(json.loads(call[1]), TOOLS[call[0]].parameters)
    assert any(ours)
    for agent, model in zip(count_right(SOME, ours), count_right(SOME, alone), strict=True):
        assert agent >= model


async def _ask_all(server: str, request: list[Offer]) -> list[Call | None]:
    async with ModelClient(f"{server}/v1", "", MODEL) as client:
        # The dialect that `auto` settles on here, after requests that only one of the two would make.
        model = DialectModel(client, "prompted")
        return [await ask_agent(model, server, one) for one in request]
