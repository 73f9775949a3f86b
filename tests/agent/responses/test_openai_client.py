"""OpenAI's typed client needs no more than a base URL."""

from typing import Any

import pytest
from openai import NotFoundError
from openai.types.responses import ResponseCompletedEvent, ResponseTextDeltaEvent
from openai.types.responses.response_output_item import McpCall
from pydantic import BaseModel

from tests.agent.responses.conftest import StartFace
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = asks_for(("test_echo", {"text": "x"}))


class City(BaseModel):
    """What the model is to write."""

    name: str


async def test_the_typed_client_creates_retrieves_and_deletes(start_face: StartFace) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        made = await face.openai.responses.create(model="beckon", input="go")
        found = await face.openai.responses.retrieve(made.id)
        await face.openai.responses.delete(made.id)
        with pytest.raises(NotFoundError, match="there is no response"):
            await face.openai.responses.retrieve(made.id)

    assert made.output_text == "Done."
    assert found == made
    assert isinstance(made.output[0], McpCall)


async def test_the_typed_client_streams(start_face: StartFace) -> None:
    async with start_face(ECHO, says("Do", "ne.")) as face:
        stream = await face.openai.responses.create(model="beckon", input="go", stream=True)
        events = [event async for event in stream]

    deltas = [event.delta for event in events if isinstance(event, ResponseTextDeltaEvent)]
    assert "".join(deltas) == "Done."
    assert isinstance(events[-1], ResponseCompletedEvent)
    assert events[-1].response.output_text == "Done."


async def test_the_helper_for_streams_gathers_the_same(start_face: StartFace) -> None:
    async with (
        start_face(ECHO, says("Do", "ne.")) as face,
        face.openai.responses.stream(model="beckon", input="go") as stream,
    ):
        async for _ in stream:
            pass
        final = await stream.get_final_response()

    assert final.output_text == "Done."


async def test_structured_output_is_parsed(start_face: StartFace) -> None:
    async with start_face(says('{"name": ', '"Bonn"}')) as face:
        parsed = await face.openai.responses.parse(model="beckon", input="where?", text_format=City)

    assert parsed.output_parsed == City(name="Bonn")
    sent: dict[str, Any] = face.agent.requests[0].body["response_format"]
    assert sent["json_schema"]["schema"]["required"] == ["name"]


async def test_a_background_stream_is_resumed_by_the_typed_client(start_face: StartFace) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        stream = await face.openai.responses.create(model="beckon", input="go", background=True, stream=True)
        first = await anext(aiter(stream))
        await stream.close()
        assert first.type == "response.created"
        resumed = await face.openai.responses.retrieve(
            first.response.id, stream=True, starting_after=first.sequence_number
        )
        rest = [event async for event in resumed]

    assert rest[0].sequence_number == 1
    assert rest[-1].type == "response.completed"
