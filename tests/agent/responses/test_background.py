"""Responses in the background: they outlive their connections, and their streams can be joined anywhere."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from beckon_agent.api.http.streaming import StreamPace
from tests.agent.conftest import StartAgent
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import kinds, running_face, said
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = asks_for(("test_echo", {"text": "x"}))
WAIT = asks_for(("test_wait", {}))


async def test_a_response_in_the_background_is_answered_at_once_and_ends_by_itself(
    start_face: StartFace,
) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        begun = await face.ask(background=True)
        await BENCH.waiting.wait()
        running = await face.get(begun["id"])
        BENCH.gate.set()
        ended = await face.until(begun["id"], "completed")

    assert begun["status"] in ("queued", "in_progress")
    assert (begun["output"], begun["background"]) == ([], True)
    assert running["status"] == "in_progress"
    assert [(item["type"], item["status"]) for item in running["output"]] == [("mcp_call", "in_progress")]
    assert said(ended) == "Done."
    assert ended["output"][0]["id"] == running["output"][0]["id"]


async def test_a_stream_in_the_background_begins_in_the_queue(start_face: StartFace) -> None:
    async with start_face(says("Hi.")) as face:
        events = await face.stream(background=True)

    assert kinds(events)[:3] == ["created", "queued", "in_progress"]
    assert [event["response"]["status"] for event in events[:3]] == ["queued", "queued", "in_progress"]


async def test_a_broken_stream_goes_on_behind_any_of_its_events(start_face: StartFace) -> None:
    async with start_face(ECHO, says("a", "b", "c")) as face:
        events = await face.stream(background=True)
        response_id = events[-1]["response"]["id"]
        for number in (-1, 0, 1, 5, len(events) - 2, len(events) - 1, len(events) + 5):
            assert await face.join(response_id, starting_after=number) == events[number + 1 :]


async def test_a_stream_is_joined_while_a_tool_works(start_face: StartFace) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        begun = await face.ask(background=True)
        await BENCH.waiting.wait()
        joining = [asyncio.create_task(face.join(begun["id"], starting_after=after)) for after in (-1, 3)]
        await eventually(lambda: asyncio.sleep(0, all(not task.done() for task in joining)))
        BENCH.gate.set()
        events, rest = await asyncio.gather(*joining)

    assert kinds(events)[-1] == "completed"
    assert rest == events[4:]


async def test_a_client_that_hangs_up_does_not_end_a_response_in_the_background(
    start_face: StartFace,
) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        request = {"model": "beckon", "input": "go", "background": True, "stream": True}
        async with face.http.stream("POST", "/v1/responses", json=request) as answer:
            first = await anext(answer.aiter_text())
        response_id = first.partition('"id":"')[2].partition('"')[0]
        await BENCH.waiting.wait()
        BENCH.gate.set()
        ended = await face.until(response_id, "completed")

    assert said(ended) == "Done."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_hangs_up_ends_a_response_in_the_foreground(
    start_face: StartFace, stream: bool
) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        request = {"model": "beckon", "input": "go", "stream": stream}
        asking = asyncio.create_task(face.http.post("/v1/responses", json=request))
        await BENCH.waiting.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

        async def nothing_runs() -> bool:
            return face.agent.service.running == 0

        await eventually(nothing_runs)

    assert len(face.agent.requests) == 1


async def test_a_cancelled_response_says_so_and_its_stream_ends(start_face: StartFace) -> None:
    async with start_face(WAIT) as face:
        begun = await face.ask(background=True)
        await BENCH.waiting.wait()
        joining = asyncio.create_task(face.join(begun["id"]))
        answer = await face.http.post(f"/v1/responses/{begun['id']}/cancel")
        events = await joining
        again = await face.http.post(f"/v1/responses/{begun['id']}/cancel")
        stored = await face.get(begun["id"])

    assert answer.json()["status"] == again.json()["status"] == stored["status"] == "cancelled"
    assert kinds(events)[-1] == "incomplete"
    assert events[-1]["response"]["status"] == "cancelled"
    assert [(item["name"], item["status"]) for item in stored["output"]] == [("test_wait", "incomplete")]


async def test_a_response_in_the_foreground_cannot_be_joined_before_its_end(start_face: StartFace) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        request = {"model": "beckon", "input": "go", "stream": True}
        async with face.http.stream("POST", "/v1/responses", json=request) as answer:
            pieces = answer.aiter_text()
            response_id = (await anext(pieces)).partition('"id":"')[2].partition('"')[0]
            await BENCH.waiting.wait()
            joined = await face.http.get(f"/v1/responses/{response_id}", params={"stream": "true"})
            BENCH.gate.set()
            rest = [piece async for piece in pieces]

    assert rest[-1].endswith("data: [DONE]\n\n")
    assert joined.status_code == 400
    assert joined.json()["error"]["code"] == "not_in_background"


async def test_comments_keep_a_silent_stream_alive(start_face: StartFace) -> None:
    async with start_face(WAIT, says("Done."), pace=StreamPace(keep_alive=0.02)) as face:
        request = {"model": "beckon", "input": "go", "stream": True}
        async with face.http.stream("POST", "/v1/responses", json=request) as answer:
            lines = []
            async for line in answer.aiter_lines():
                lines.append(line)
                if line == ": keep-alive":
                    BENCH.gate.set()

    assert ": keep-alive" in lines
    assert lines[-2:] == ["data: [DONE]", ""]


async def test_a_previous_response_that_is_in_progress_is_refused(start_face: StartFace) -> None:
    async with start_face(WAIT, says("Done.")) as face:
        begun = await face.ask(background=True)
        await BENCH.waiting.wait()
        answer = await face.post("more", previous_response_id=begun["id"])
        BENCH.gate.set()
        await face.until(begun["id"], "completed")

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "response_in_progress"


async def test_a_stream_goes_on_at_another_process_where_the_first_one_ended(
    start_agent: StartAgent, tmp_path: Path
) -> None:
    async with start_agent(WAIT, says("Done.")) as agent:
        async with running_face(agent, tmp_path) as first:
            begun = await first.ask(background=True)
            await BENCH.waiting.wait()
            request = first.http.stream("GET", f"/v1/responses/{begun['id']}", params={"stream": "true"})
            async with request as answer:
                lines = answer.aiter_lines()
                seen = [json.loads(line[6:]) async for line in taken(lines, 7) if line.startswith("data: ")]
        async with running_face(agent, tmp_path) as second:
            BENCH.gate.set()
            events = await second.join(begun["id"])
            rest = await second.join(begun["id"], starting_after=seen[-1]["sequence_number"])

    assert len(seen) == 7
    assert [*seen, *rest] == events
    assert said(events[-1]["response"]) == "Done."
    assert BENCH.calls == ["wait"]


async def taken(lines: AsyncIterator[str], events: int) -> AsyncIterator[str]:
    """Yield lines up to the end of so many events."""
    async for line in lines:
        yield line
        events -= line.startswith("data: ")
        if not events:
            return
