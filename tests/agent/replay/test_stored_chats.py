"""Chat completions whose runs are stored: the same answers, and something to look at afterwards."""

import asyncio
import json
from typing import Any

import pytest

from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import Replaying
from tests.agent.running_agent import Answer, gathered, payloads, user, whole
from tests.agent.scripted_model import asks_for, refuses, says
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL = asks_for(("test_echo", {"text": "a"}))


async def ask(service: Replaying, *, stream: bool = False, **body: Any) -> tuple[str, Answer]:
    """Return the id of a completion, and what it says."""
    request = {
        "model": "beckon",
        "messages": [user("go")],
        "beckon": {"events": True},
        **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
        **body,
    }
    answer = await service.http.post("/v1/chat/completions", json=request)
    assert answer.status_code == 200, answer.text
    chunks = payloads(answer.text) if stream else [answer.json()]
    return chunks[0]["id"], gathered(chunks) if stream else whole(chunks[0])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_stored_completion_says_the_same_and_can_be_replayed(
    start_service: StartService, stream: bool
) -> None:
    async with start_service(CALL, says("It ", "is ", "a."), CALL, says("It ", "is ", "a.")) as service:
        _, plain = await ask(service, stream=stream)
        run, stored = await ask(service, stream=stream, store=True)

        assert (
            (stored.text, stored.finish_reason) == (plain.text, plain.finish_reason) == ("It is a.", "stop")
        )
        assert [call["result"] for call in stored.finished] == [call["result"] for call in plain.finished]
        record = await service.store.runs.get(run)
        assert record is not None
        assert (record.status, record.face) == ("completed", "chat.completions")
        await service.same(run)


async def test_what_is_not_to_be_stored_is_not(start_service: StartService) -> None:
    async with start_service(says("Yes."), says("Yes.")) as service:
        for body in ({}, {"store": False}):
            run, _ = await ask(service, **body)
            assert await service.store.runs.get(run) is None


async def test_a_model_that_fails_is_reported_as_ever_and_the_run_has_failed(
    start_service: StartService,
) -> None:
    async with start_service(refuses(400, "no credit left")) as service:
        request = {"model": "beckon", "messages": [user("go")], "store": True}
        answer = await service.http.post("/v1/chat/completions", json=request)

        assert answer.status_code == 502
        assert "no credit left" in answer.json()["error"]["message"]


async def test_a_failure_in_the_middle_is_reported_in_the_stream(start_service: StartService) -> None:
    async with start_service(CALL, refuses(400, "no credit left")) as service:
        request = {"model": "beckon", "messages": [user("go")], "store": True, "stream": True}
        answer = await service.http.post("/v1/chat/completions", json=request)

        last = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
        assert "no credit left" in json.loads(last.removeprefix("data: "))["error"]["message"]


async def test_a_call_that_needs_approval_waits_for_it(start_service: StartService) -> None:
    async with start_service(asks_for(("test_danger", {})), says("Done.")) as service:
        asking = asyncio.create_task(ask(service, store=True))
        waiting: list[dict[str, Any]] = []

        async def waits() -> bool:
            waiting[:] = (await service.http.get("/approvals")).json()["data"]
            return bool(waiting)

        await eventually(waits)
        word = await service.http.post(f"/approvals/{waiting[0]['id']}", json={"approve": True})
        _, answer = await asking

        assert word.status_code == 200, word.text
        assert answer.text == "Done."
        assert [call["result"] for call in answer.finished] == ["done"]
