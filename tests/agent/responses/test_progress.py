"""Progress reports of a tool: streamed live to clients that include them, and no part of the response."""

import json
from typing import Any

import pytest

from beckon_agent.api.responses.item_types import PROGRESS
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import Event, RunningFace, said
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

STEPS = asks_for(("test_steps", {"steps": [1, 2, 3]}))


async def received_events(face: RunningFace, method: str, path: str, **request: Any) -> list[Event]:
    """Read a stream to its end; the tool goes on with each report in it."""
    events: list[Event] = []
    async with face.http.stream(method, path, **request) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["type"] == PROGRESS:
                    BENCH.gate.set()
    return events


@pytest.mark.parametrize("background", [False, True])
async def test_who_includes_progress_gets_it_beside_the_events_of_the_api(
    start_face: StartFace, background: bool
) -> None:
    async with start_face(STEPS, says("Done.")) as face:
        body = {"input": "go", "stream": True, "background": background, "include": [PROGRESS]}
        events = await received_events(face, "POST", "/v1/responses", json=body)
        again = await face.join(events[0]["response"]["id"])

    shown = [event for event in events if event["type"] == PROGRESS]
    assert [(event["progress"], event["total"], event["message"]) for event in shown] == [
        (1, 4, "step 1"),
        (2, 4, "step 2"),
        (3, 4, "step 3"),
    ]
    (item,) = (event for event in events if event["type"] == "response.mcp_call.in_progress")
    assert {(event["item_id"], event["output_index"]) for event in shown} == {
        (item["item_id"], item["output_index"])
    }
    assert [event for event in events if event["type"] != PROGRESS] == again
    places = [event["sequence_number"] for event in events]
    assert places == sorted(places)


async def test_a_stream_that_is_joined_later_gets_the_newest_at_once(start_face: StartFace) -> None:
    async with start_face(STEPS, says("Done.")) as face:
        begun = await face.ask(background=True)
        path = f"/v1/responses/{begun['id']}"
        query = {"stream": "true", "starting_after": "1000", "include[]": PROGRESS}
        events = await received_events(face, "GET", path, params=query)

    assert [event["progress"] for event in events] == [1, 2, 3]


async def test_others_hear_nothing_of_it(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_echo", {"text": "x"})), STEPS, says("Done.")) as face:
        begun = await face.ask(background=True)
        query = {"stream": "true", "include[]": PROGRESS}
        loud = await received_events(face, "GET", f"/v1/responses/{begun['id']}", params=query)
        quiet = await face.join(begun["id"])
        whole = await face.get(begun["id"])

    assert [event for event in loud if event["type"] != PROGRESS] == quiet
    assert said(whole) == "Done."
