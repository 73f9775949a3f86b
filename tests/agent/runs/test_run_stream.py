"""The events of a run as a stream: past and new ones, resumed, until the run ends."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import RunningFace
from tests.agent.scripted_model import asks_for, says
from tests.agent.store.examples import new_run
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

Document = dict[str, Any]
ECHO = asks_for(("test_echo", {"text": "é"}))


def received_events(text: str) -> list[tuple[int, str, Document]]:
    """Return the events of a stream that was read to its end."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return found


async def streamed(face: RunningFace, run: str, **headers: str) -> httpx.Response:
    return await face.http.get(f"/runs/{run}/events", headers={"accept": "text/event-stream", **headers})


async def test_a_stream_shows_what_happens_and_happened_until_the_end(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_wait", {})), says("Done.")) as face:
        made = await face.ask(background=True)
        following = asyncio.create_task(streamed(face, made["id"]))
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        assert not following.done()
        BENCH.gate.set()
        answer = await asyncio.wait_for(following, PATIENCE)
        again = await streamed(face, made["id"])

    assert answer.headers["content-type"].startswith("text/event-stream")
    events = received_events(answer.text)
    assert [name for _, name, _ in events] == [
        "turn",
        "call",
        "result",
        "text",
        "turn",
        "finished",
        "ended",
    ]
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[2][2]["result"] == "through"
    assert events[-1][2] == {"type": "ended", "number": len(events), "status": "completed"}
    assert "messages" not in events[-2][2]
    assert received_events(again.text) == events


async def test_a_stream_that_broke_goes_on_behind_the_last_event(start_face: StartFace) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        made = await face.ask()
        whole = received_events((await streamed(face, made["id"])).text)
        rest = received_events((await streamed(face, made["id"], **{"last-event-id": str(whole[2][0])})).text)
        refused = await streamed(face, made["id"], **{"last-event-id": "three"})

    assert rest == whole[3:]
    assert refused.status_code == 400


async def test_who_looks_on_and_leaves_ends_nothing(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_wait", {})), says("Done.")) as face:
        asking = asyncio.create_task(face.ask())
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        (run,) = (await face.http.get("/runs")).json()["data"]
        async with face.http.stream(
            "GET", f"/runs/{run['id']}/events", headers={"accept": "text/event-stream"}
        ) as looking:
            assert [line async for line in _first(looking)]
        BENCH.gate.set()
        made = await asyncio.wait_for(asking, PATIENCE)

    assert made["status"] == "completed"


async def test_an_open_stream_reports_that_another_process_took_the_run_over(start_face: StartFace) -> None:
    async with start_face(says("Done.")) as face:
        await face.store.runs.create(new_run("resp_left"), holder="a process that died", seconds=3)
        watched = received_events((await streamed(face, "resp_left", **{"x-owner": "ann"})).text)

    reported = [members["takeovers"] for _, name, members in watched if name == "taken_over"]
    assert reported == [1]
    assert watched[-1][2]["status"] == "completed"


async def _first(response: httpx.Response) -> Any:
    async for line in response.aiter_lines():
        yield line
        return
