"""Streams of tasks by the SDK's own client, and approvals: the input that a task requires."""

import asyncio

import pytest
from a2a.client import A2AClientError
from a2a.helpers.proto_helpers import get_data_parts
from a2a.types.a2a_pb2 import SendMessageConfiguration, SubscribeToTaskRequest, Task, TaskState
from a2a.utils.errors import A2AError

from tests.agent.a2a.sdk_client import (
    SdkClient,
    answer_of,
    data_message,
    states_of,
    streamed_answer,
    text_message,
)
from tests.agent.auth.closed_service import ClosedService
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOW = SendMessageConfiguration(return_immediately=True)
REFUSED = (A2AError, A2AClientError)


def requests_of(task: Task) -> list[dict[str, object]]:
    """Return the approval requests of a task that requires input."""
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, task
    (data,) = get_data_parts(task.status.message.parts)
    found: list[dict[str, object]] = data["approvals"]
    return found


async def test_a_stream_has_the_states_the_calls_and_the_answer(
    service: ClosedService, client: SdkClient
) -> None:
    service.model.script[:] = [asks_for(("test_echo", {"text": "abc"})), says("It says abc.")]

    events = await client.stream(text_message("go"))

    assert events[0].HasField("task")
    assert states_of(events)[-2:] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    assert streamed_answer(events) == "It says abc."
    calls = [event.status_update.metadata for event in events if event.status_update.HasField("metadata")]
    assert [(call["toolCall"]["name"], call["toolCall"]["state"]) for call in calls] == [
        ("test_echo", "started"),
        ("test_echo", "done"),
    ]


async def test_a_client_subscribes_to_a_task_that_it_did_not_stream(
    service: ClosedService, client: SdkClient
) -> None:
    service.model.script[:] = [asks_for(("test_wait", {})), says("through at last")]
    task = await client.send_message(text_message("wait"), NOW)
    async with asyncio.timeout(PATIENCE):
        await BENCH.waiting.wait()

    stream = client.streaming.subscribe(SubscribeToTaskRequest(id=task.id))
    first = await anext(aiter(stream))
    BENCH.gate.set()
    rest = [event async for event in stream]

    assert first.task.id == task.id
    assert (states_of(rest)[-1], streamed_answer(rest)) == ("TASK_STATE_COMPLETED", "through at last")
    with pytest.raises(REFUSED, match="has ended, it is completed; read it with GetTask"):
        _ = [event async for event in client.streaming.subscribe(SubscribeToTaskRequest(id=task.id))]


@pytest.mark.parametrize(("word", "calls"), [("Approve.", ["danger"]), ("deny", [])])
async def test_a_call_that_needs_an_approval_is_required_input_answered_by_a_word(
    service: ClosedService, client: SdkClient, word: str, calls: list[str]
) -> None:
    service.model.script[:] = [asks_for(("test_danger", {})), says("That is that.")]

    waiting = await client.send("do it")
    (request,) = requests_of(waiting)
    ended = await client.send(word, task_id=waiting.id)

    assert request["name"] == "test_danger"
    assert (ended.id, ended.status.state) == (waiting.id, TaskState.TASK_STATE_COMPLETED)
    assert (answer_of(ended), BENCH.calls) == ("That is that.", calls)


async def test_decisions_are_data_with_a_reason(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [asks_for(("test_danger", {}), ("test_danger", {})), says("One of two.")]
    waiting = await rpc.send("do it twice")
    first, second = requests_of(waiting)
    decisions = [
        {"id": first["id"], "approve": True},
        {"id": second["id"], "approve": False, "reason": "once is enough"},
    ]

    for incomplete in (decisions[:1], [*decisions, {"id": "mcpr_none", "approve": True}]):
        with pytest.raises(A2AError, match=r"these are left|there is no request"):
            await rpc.send_message(data_message({"approvals": incomplete}, task_id=waiting.id))
    ended = await rpc.send_message(data_message({"approvals": decisions}, task_id=waiting.id))

    assert (answer_of(ended), BENCH.calls) == ("One of two.", ["danger"])
    assert "once is enough" in str(service.model.requests[-1].body["messages"])


async def test_a_stream_ends_when_the_task_requires_input_and_the_answer_streams_the_rest(
    service: ClosedService, client: SdkClient
) -> None:
    service.model.script[:] = [asks_for(("test_danger", {})), says("It is done.")]

    asking = await client.stream(text_message("do it"))
    task_id = asking[0].task.id
    rest = await client.stream(text_message("approve", task_id=task_id))

    assert states_of(asking)[-1] == "TASK_STATE_INPUT_REQUIRED"
    assert (states_of(rest)[-1], streamed_answer(rest)) == ("TASK_STATE_COMPLETED", "It is done.")


async def test_a_subscriber_stays_while_the_task_waits_for_an_approval(
    service: ClosedService, rpc: SdkClient
) -> None:
    service.model.script[:] = [asks_for(("test_danger", {})), says("It is done.")]
    waiting = await rpc.send("do it")
    stream = rpc.streaming.subscribe(SubscribeToTaskRequest(id=waiting.id))
    first = await anext(aiter(stream))

    await rpc.send("approve", task_id=waiting.id)
    rest = [event async for event in stream]

    assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert (states_of(rest)[-1], streamed_answer(rest)) == ("TASK_STATE_COMPLETED", "It is done.")


@pytest.mark.parametrize(
    ("text", "message"),
    [("maybe", "answer with the text 'approve' or 'deny'"), ("approve all", "answer with the text")],
)
async def test_another_word_is_no_decision(
    service: ClosedService, rpc: SdkClient, text: str, message: str
) -> None:
    service.model.script[:] = [asks_for(("test_danger", {}))]
    waiting = await rpc.send("do it")

    with pytest.raises(A2AError, match=message):
        await rpc.send(text, task_id=waiting.id)

    assert (await rpc.get(waiting.id)).status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert BENCH.calls == []
