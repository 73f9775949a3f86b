"""A task whose agent is killed in the middle of its answer, as its client sees it."""

import asyncio
from contextlib import suppress
from pathlib import Path

from a2a.client import A2AClientError
from a2a.types.a2a_pb2 import SendMessageRequest, StreamResponse, SubscribeToTaskRequest

from tests.agent.a2a.sdk_client import answer_of, connected_client, states_of, streamed_answer, text_message
from tests.agent.agent_process import serving
from tests.agent.scripted_model import Reply, chunk, says, sse
from tests.patience import PATIENCE

HALF = "Half of the answer"
WHOLE = "The whole answer."


async def test_a_killed_agent_continues_its_task_and_a_subscriber_gets_the_end(tmp_path: Path) -> None:
    durable = {"BECKON_STORE": f"sqlite:///{tmp_path / 'runs.db'}", "BECKON_LEASE_SECONDS": "0.5"}
    folder = tmp_path / "manifests"
    folder.mkdir()
    gate = asyncio.Event()
    broken = Reply((sse(chunk({"content": HALF}), done=False), b""), holds=asyncio.Event())
    whole = says(WHOLE)
    seen: list[StreamResponse] = []

    async with (
        serving(folder, broken, **durable) as first,
        connected_client(str(first.http.base_url)) as client,
    ):
        request = SendMessageRequest(message=text_message("go"))
        async with asyncio.timeout(PATIENCE):
            with suppress(A2AClientError):  # the end of the connection
                async for event in client.streaming.send_message(request):
                    seen.append(event)
                    if event.HasField("artifact_update"):
                        first.kill()

    task_id = seen[0].task.id
    async with (
        serving(folder, Reply(whole.pieces, holds=gate), **durable) as second,
        connected_client(str(second.http.base_url)) as client,
        asyncio.timeout(PATIENCE),
    ):
        stream = client.streaming.subscribe(SubscribeToTaskRequest(id=task_id))
        subscribed = await anext(aiter(stream))
        gate.set()
        rest = [event async for event in stream]
        task = await client.get(task_id)

    assert (streamed_answer(seen), subscribed.task.id) == (HALF, task_id)
    assert (states_of(rest)[-1], streamed_answer(rest)) == ("TASK_STATE_COMPLETED", WHOLE)
    assert answer_of(task) == WHOLE
