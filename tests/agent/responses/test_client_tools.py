"""Functions that the client brings: calls of them are handed back, mixed with the cluster's own."""

from typing import Any

import pytest

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import kinds, said
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
WEATHER_CALL = asks_for(("get_weather", {"city": "Bonn"}))
MIXED = asks_for(("test_echo", {"text": "x"}), ("get_weather", {"city": "Bonn"}))


async def test_a_call_of_a_function_is_handed_back(start_face: StartFace) -> None:
    async with start_face(WEATHER_CALL, WEATHER_CALL) as face:
        whole = await face.ask(tools=[WEATHER])
        events = await face.stream(tools=[WEATHER])
        stored = await face.get(whole["id"])

    assert kinds(events)[2:] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    (call,) = whole["output"]
    assert (call["type"], call["name"], call["arguments"]) == (
        "function_call",
        "get_weather",
        '{"city":"Bonn"}',
    )
    assert call["status"] == "completed"
    assert whole["status"] == "completed"
    assert whole["tools"] == [{**WEATHER, "strict": None}]
    assert stored == whole
    declared = [tool["function"]["name"] for tool in face.agent.requests[0].body["tools"]]
    assert "get_weather" in declared
    assert "test_echo" in declared


@pytest.mark.parametrize("stateless", [False, True])
async def test_the_answer_of_a_function_goes_back_to_the_model(
    start_face: StartFace, stateless: bool
) -> None:
    async with start_face(MIXED, says("Sunny.")) as face:
        first = await face.ask("weather?", tools=[WEATHER])
        echo, call = first["output"]
        answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
        history = [{"role": "user", "content": "weather?"}, *first["output"], answer]
        second = (
            await face.ask(history, tools=[WEATHER], store=False)
            if stateless
            else await face.ask([answer], tools=[WEATHER], previous_response_id=first["id"])
        )

    assert (echo["type"], echo["output"], call["type"]) == ("mcp_call", "x", "function_call")
    assert said(second) == "Sunny."
    messages = face.agent.requests[-1].body["messages"]
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["x", "sunny"]


async def test_a_request_that_wants_no_tools_gets_none(start_face: StartFace) -> None:
    async with start_face(says("No.")) as face:
        await face.ask(tools=[WEATHER], tool_choice="none")

    assert "tools" not in face.agent.requests[0].body
