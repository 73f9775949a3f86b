"""What a request may ask of its run alone: instructions, a choice of tools, fewer tools, fewer calls."""

import pytest

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import said
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = asks_for(("test_echo", {"text": "x"}))
TWO = asks_for(("test_echo", {"text": "x"}), ("test_nap", {"milliseconds": 1}))


async def test_instructions_are_for_one_response_only(start_face: StartFace) -> None:
    async with start_face(says("One."), says("Two.")) as face:
        first = await face.ask("first", instructions="Be brief.")
        await face.ask("second", previous_response_id=first["id"])
        prompts = [request.body["messages"][0]["content"] for request in face.agent.requests]

    assert prompts == ["You are a test.\n\nBe brief.", "You are a test."]


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "name": "test_echo"},
        {"type": "mcp", "server_label": "cluster", "name": "test_echo"},
    ],
)
async def test_a_choice_of_tools_is_taken_and_repeated(start_face: StartFace, choice: object) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        response = await face.ask(tool_choice=choice)

    assert response["tool_choice"] == choice
    assert said(response) == "Done."


async def test_tools_that_are_not_allowed_are_not_called(start_face: StartFace) -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "test_nap"}]}
    async with start_face(TWO, says("Done.")) as face:
        response = await face.ask(tool_choice=choice)

    assert BENCH.calls == []
    assert [item["status"] for item in response["output"]] == ["failed", "completed", "completed"]
    assert said(response) == "Done."


async def test_no_more_calls_are_made_than_allowed(start_face: StartFace) -> None:
    async with start_face(ECHO, TWO, says("Done.")) as face:
        response = await face.ask(max_tool_calls=2)

    assert BENCH.calls == ["x", "x"]
    assert [item["status"] for item in response["output"][:3]] == ["completed", "completed", "failed"]
