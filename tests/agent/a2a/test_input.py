"""Tools that request input of the person at an A2A client."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_data_parts
from a2a.types.a2a_pb2 import ListTasksRequest, Task, TaskState
from a2a.utils.errors import A2AError

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.a2a.sdk_client import SdkClient, answer_of, connected_client, data_message
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import event_platform
from tests.agent.long.shop import order_thing, ordered
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

HAT = asks_for(("order", {"name": "hat"}))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ClosedService]:
    """A service whose one tool puts two forms to a person."""
    folder = tmp_path_factory.mktemp("manifests-of-forms")
    async with event_platform(folder, [order_thing], {}) as platform, aiohttp.ClientSession() as session:
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, checks) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(shop: ClosedService) -> AsyncIterator[SdkClient]:
    """The SDK's client of the service."""
    ordered.clear()
    async with connected_client(str(shop.http.base_url)) as connected:
        yield connected


def form_of(task: Task) -> dict[str, Any]:
    """Return the one form that a task requests."""
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, task
    (data,) = get_data_parts(task.status.message.parts)
    (form,) = data["inputs"]
    found: dict[str, Any] = form
    return found


async def answer(client: SdkClient, task: Task, **given: Any) -> Task:
    form = {"id": form_of(task)["id"], **given}
    return await client.send_message(data_message({"inputs": [form]}, task_id=task.id))


async def test_each_form_is_required_input_answered_with_data(shop: ClosedService, client: SdkClient) -> None:
    shop.model.script[:] = [HAT, says("It is ordered.")]

    first = await client.send("a hat, please")
    waiting = await client.whole.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_INPUT_REQUIRED))
    second = await answer(client, first, action="accept", content={"size": 7})
    ended = await answer(client, second, action="accept", content={"really": True})

    assert "The tool order needs input: Which size of hat?" in first.status.message.parts[0].text
    assert form_of(first)["schema"]["properties"]["size"]["maximum"] == 99
    assert first.id in [task.id for task in waiting.tasks]
    assert form_of(second)["message"] == "Order hat in size 7?"
    assert (answer_of(ended), ordered) == ("It is ordered.", ["hat 7"])


async def test_a_declined_form_is_a_result_for_the_model(shop: ClosedService, client: SdkClient) -> None:
    shop.model.script[:] = [HAT, says("As you like.")]

    ended = await answer(client, await client.send("a hat"), action="decline")

    assert answer_of(ended) == "As you like."
    assert "did not fill it in" in str(shop.model.requests[-1].body["messages"][-1])
    assert ordered == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": "accept", "content": {"size": 100}}, "size"),
        ({"action": "accept", "content": {}}, "`size` is required"),
        ({"action": "perhaps"}, "action"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_task_waits_on(
    shop: ClosedService, client: SdkClient, given: dict[str, Any], message: str
) -> None:
    shop.model.script[:] = [HAT]
    waiting = await client.send("a hat")

    with pytest.raises((A2AError, A2AClientError), match=message):
        await answer(client, waiting, **given)
    with pytest.raises((A2AError, A2AClientError), match="else with data"):
        await client.send("approve", task_id=waiting.id)

    assert form_of(await client.get(waiting.id)) == form_of(waiting)
