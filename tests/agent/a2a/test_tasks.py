"""Tasks by the SDK's own client: sent, read, continued in their context, listed, cancelled."""

import asyncio

import pytest
from a2a.client import A2AClientError
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageConfiguration,
    TaskState,
)
from a2a.utils.errors import A2AError

from tests.agent.a2a.sdk_client import SdkClient, answer_of, connected_client, data_message, text_message
from tests.agent.auth.closed_service import ClosedService
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_message_is_a_task_with_the_answer_as_artifact(
    service: ClosedService, client: SdkClient
) -> None:
    service.model.script[:] = [asks_for(("test_echo", {"text": "abc"})), says("It says abc.")]

    task = await client.send("say abc")
    read = await client.get(task.id)

    assert (task.status.state, answer_of(task)) == (TaskState.TASK_STATE_COMPLETED, "It says abc.")
    assert read == task
    assert [part.text for message in read.history for part in message.parts] == ["say abc"]
    assert BENCH.calls[-1:] == ["abc"]
    stored = (await service.http.get(f"/runs/{task.id}")).json()
    assert (stored["face"], stored["agent"], stored["status"]) == ("a2a", "beckon", "completed")


async def test_a_card_names_the_interfaces_and_the_tools_of_its_agent(service: ClosedService) -> None:
    address = str(service.http.base_url)

    async with connected_client(f"{address}/agents/other") as other, connected_client(address) as default:
        service.model.script[:] = [says("I am the other.")]
        task = await other.send("who are you?")

    assert (other.card.name, default.card.name) == ("other", "beckon")
    assert other.card.supported_interfaces[0].url == f"{address}/agents/other/a2a"
    assert {skill.name for skill in other.card.skills} >= {"other", "test_echo"}
    assert (await service.http.get(f"/runs/{task.id}")).json()["agent"] == "other"


async def test_the_messages_of_one_context_are_one_conversation(
    service: ClosedService, client: SdkClient
) -> None:
    service.model.script[:] = [says("Hello Ada."), says("You are Ada."), says("Who?")]

    first = await client.send("I am Ada.")
    second = await client.send("Who am I?", context_id=first.context_id)
    apart = await client.send("Who am I?")

    assert (second.context_id, second.id != first.id) == (first.context_id, True)
    assert apart.context_id != first.context_id
    texts = [
        [message["content"] for message in request.body["messages"][1:]] for request in service.model.requests
    ]
    assert texts == [["I am Ada."], ["I am Ada.", "Hello Ada.", "Who am I?"], ["Who am I?"]]


async def test_a_client_may_name_its_own_contexts(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [says("Hello Ada."), says("You are Ada.")]

    first = await rpc.send("I am Ada.", context_id="my-thread")
    second = await rpc.send("Who am I?", context_id="my-thread")

    assert (first.context_id, second.context_id) == ("my-thread", "my-thread")
    assert len(service.model.requests[-1].body["messages"]) == 4


async def test_the_same_message_twice_is_one_task(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [says("once")]
    message = text_message("go")

    first, again = await rpc.send_message(message), await rpc.send_message(message)

    assert again == first
    assert len(service.model.requests) == 1


async def test_a_task_is_read_while_it_works_and_cancelled(service: ClosedService, client: SdkClient) -> None:
    service.model.script[:] = [asks_for(("test_wait", {}))]
    now = SendMessageConfiguration(return_immediately=True)

    begun = await client.send_message(text_message("wait"), now)
    async with asyncio.timeout(PATIENCE):
        await BENCH.waiting.wait()
    working = await client.get(begun.id)
    cancelled = await client.whole.cancel_task(CancelTaskRequest(id=begun.id))

    assert begun.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
    assert working.status.state == TaskState.TASK_STATE_WORKING
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    with pytest.raises((A2AError, A2AClientError), match="has ended"):
        await client.whole.cancel_task(CancelTaskRequest(id=begun.id))


async def test_tasks_are_listed_by_context_and_state(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [says("1"), says("2"), says("3")]
    sent = [await rpc.send(str(number), context_id=f"c{number % 2}") for number in range(3)]

    first = await rpc.whole.list_tasks(ListTasksRequest(page_size=2))
    rest = await rpc.whole.list_tasks(ListTasksRequest(page_size=2, page_token=first.next_page_token))
    even = await rpc.whole.list_tasks(ListTasksRequest(context_id="c0", include_artifacts=True))
    failed = await rpc.whole.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_FAILED))

    assert [task.id for task in [*first.tasks, *rest.tasks]] == [task.id for task in reversed(sent)]
    assert (first.total_size, rest.next_page_token) == (3, "")
    assert [answer_of(task) for task in even.tasks] == ["3", "1"]
    assert not any(task.artifacts for task in first.tasks)
    assert (failed.total_size, list(failed.tasks)) == (0, [])


async def test_a_data_part_reaches_the_model_as_its_json(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [says("seen")]

    await rpc.send_message(data_message({"order": 17, "share": 0.5}))

    assert service.model.requests[0].body["messages"][-1]["content"] == '{"order":17,"share":0.5}'


async def test_a_failed_run_is_a_failed_task_with_its_reason(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = []

    task = await rpc.send("go")

    assert task.status.state == TaskState.TASK_STATE_FAILED
    assert "418" in task.status.message.parts[0].text


async def test_a_history_is_as_long_as_the_client_wants(service: ClosedService, rpc: SdkClient) -> None:
    service.model.script[:] = [says("hello")]
    task = await rpc.send("go")

    read = await rpc.whole.get_task(GetTaskRequest(id=task.id, history_length=0))

    assert (len(task.history), len(read.history)) == (1, 0)
