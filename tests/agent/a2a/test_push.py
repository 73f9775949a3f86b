"""Push notifications: a client is notified at its own address, by hosts that the owner allows."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageConfiguration,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError

from beckon_agent.api.a2a import push
from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from beckon_contract.api_keys import new_entry, new_key
from beckon_runtime.egress import AllowedHost
from tests.agent.a2a.receiver import Receiver, receiving
from tests.agent.a2a.sdk_client import SdkClient, connected_client, text_message
from tests.agent.agent_process import serving
from tests.agent.auth.closed_service import ClosedService, bearing, checking, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import Reply, asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

DANGER = asks_for(("test_danger", {"text": "x"}))


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as running:
        yield running


@asynccontextmanager
async def pushing_to(platform: EventPlatform, *hosts: AllowedHost) -> AsyncIterator[ClosedService]:
    """Run an open service that notifies at these hosts."""
    async with aiohttp.ClientSession() as session:
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, checks, push_hosts=hosts) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def pushing(platform: EventPlatform, receiver: Receiver) -> AsyncIterator[ClosedService]:
    """An open service that notifies the receiver, and public hosts of one name."""
    BENCH.reset()
    hosts = (AllowedHost(host=receiver.url, private=True), AllowedHost(host="*.example.com"))
    async with pushing_to(platform, *hosts) as made:
        yield made


@pytest_asyncio.fixture(params=[("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")], ids="-".join, loop_scope="module")
async def client(pushing: ClosedService, request: pytest.FixtureRequest) -> AsyncIterator[SdkClient]:
    async with connected_client(str(pushing.http.base_url), binding=request.param) as connected:
        yield connected


def at(url: str, **members: Any) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=url, **members)


async def start(client: SdkClient, config: TaskPushNotificationConfig, **members: Any) -> Task:
    """Send a message that does not wait for its task."""
    configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=config)
    return await client.send_message(text_message("go", **members), configuration)


async def test_a_client_is_notified_of_the_end_with_its_credentials(
    pushing: ClosedService, client: SdkClient, receiver: Receiver
) -> None:
    pushing.model.script[:] = [says("Done.")]
    secret = AuthenticationInfo(scheme="Bearer", credentials="s3cret")

    task = await start(client, at(f"{receiver.url}/tasks", token="for-me", authentication=secret))
    await receiver.until("COMPLETED")

    assert client.card.capabilities.push_notifications
    (posted,) = receiver.posted
    assert posted["task"]["id"] == task.id
    assert posted["task"]["artifacts"][0]["parts"] == [{"text": "Done."}]
    assert "history" not in posted["task"]
    assert receiver.server.posts[0].headers["x-a2a-notification-token"] == "for-me"
    assert receiver.server.posts[0].headers["authorization"] == "Bearer s3cret"
    assert receiver.server.posts[0].headers["content-type"].startswith("application/json")


async def test_a_client_is_notified_when_a_person_is_needed_and_at_the_end(
    pushing: ClosedService, client: SdkClient, receiver: Receiver
) -> None:
    pushing.model.script[:] = [DANGER, says("Allowed.")]

    task = await start(client, at(receiver.url))
    await receiver.until("INPUT_REQUIRED")
    await client.send("approve", task_id=task.id)
    await receiver.until("INPUT_REQUIRED", "COMPLETED")

    request = receiver.posted[0]["task"]["status"]["message"]
    assert "test_danger" in str(request["parts"])


async def test_a_failed_notification_is_repeated(
    pushing: ClosedService, client: SdkClient, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    pushing.model.script[:] = [says("Done.")]
    receiver.statuses[:] = [503, 302]
    secret = AuthenticationInfo(scheme="Bearer", credentials="s3cret")

    with caplog.at_level(logging.WARNING):
        await start(client, at(f"{receiver.url}/a?key=s3cret", token="s3cret", authentication=secret))
        await receiver.until("COMPLETED", "COMPLETED", "COMPLETED")

    assert "it answers 503" in caplog.text
    assert "it answers 302" in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_client_is_given_up_after_the_last_try(
    pushing: ClosedService, client: SdkClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "_TRIES", 2)
    pushing.model.script[:] = [says("Done.")]
    receiver.statuses[:] = [500, 500]

    task = await start(client, at(receiver.url))
    await receiver.until("COMPLETED", "COMPLETED")

    async def has_ended() -> bool:
        return not await pushing.store.push.claim_due(most=1, seconds=0.1)

    await eventually(has_ended)
    assert [one.url for one in await pushing.store.push.list_of(task.id)] == [receiver.url]


async def test_configs_are_created_read_listed_and_deleted(
    pushing: ClosedService, client: SdkClient, receiver: Receiver
) -> None:
    pushing.model.script[:] = [DANGER]
    task = await start(client, at(receiver.url, id="first"))

    made = await client.whole.create_task_push_notification_config(
        at("https://hooks.example.com/x", task_id=task.id, id="second", token="t")
    )
    read = await client.whole.get_task_push_notification_config(
        GetTaskPushNotificationConfigRequest(task_id=task.id, id="second")
    )
    listed = await client.whole.list_task_push_notification_configs(
        ListTaskPushNotificationConfigsRequest(task_id=task.id)
    )
    await client.whole.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="second")
    )
    left = await client.whole.list_task_push_notification_configs(
        ListTaskPushNotificationConfigsRequest(task_id=task.id)
    )

    assert made == read == listed.configs[1]
    assert (made.id, made.task_id, made.url, made.token) == (
        "second",
        task.id,
        "https://hooks.example.com/x",
        "t",
    )
    assert [one.id for one in listed.configs] == ["first", "second"]
    assert [one.id for one in left.configs] == ["first"]
    with pytest.raises(A2AError, match="no push notification config 'second'"):
        await client.whole.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=task.id, id="second")
        )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://evil.test/x", "BECKON_PUSH_HOSTS"),
        ("http://hooks.example.com/x", "BECKON_PUSH_HOSTS"),
        ("https://hooks.example.com:8443/x", "BECKON_PUSH_HOSTS"),
        ("https://169.254.169.254/latest", "BECKON_PUSH_HOSTS"),
        ("ftp://hooks.example.com/x", "https://client.example.com"),
        ("hooks.example.com", "https://client.example.com"),
        ("https://me:pw@hooks.example.com/x", "'authentication'"),
        ("https://hooks.example.com/" + "x" * 3000, "at most 2000"),
        ("https://hooks.example.com:port/x", "url"),
    ],
)
async def test_an_address_that_is_not_allowed_is_refused_before_anything_begins(
    pushing: ClosedService, client: SdkClient, url: str, said: str
) -> None:
    before = len(pushing.model.requests)

    with pytest.raises((A2AError, A2AClientError), match=said):
        await start(client, at(url))

    assert len(pushing.model.requests) == before


async def test_a_name_with_a_private_address_is_not_called(
    platform: EventPlatform, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    port = receiver.url.rpartition(":")[2]
    hosts = (AllowedHost(host=f"http://localhost:{port}"),)
    async with (
        pushing_to(platform, *hosts) as made,
        connected_client(str(made.http.base_url)) as connected,
    ):
        made.model.script[:] = [says("Done.")]
        with caplog.at_level(logging.WARNING):
            await start(connected, at(f"http://localhost:{port}/x"))

            async def is_refused() -> bool:
                return "not on the public internet" in caplog.text

            await eventually(is_refused)

    assert receiver.posted == []


async def test_a_host_is_reached_where_its_owner_says_without_an_address_of_its_name(
    platform: EventPlatform, receiver: Receiver
) -> None:
    hosts = (AllowedHost(host="http://client.invalid", connect=receiver.url.removeprefix("http://")),)
    async with (
        pushing_to(platform, *hosts) as made,
        connected_client(str(made.http.base_url)) as connected,
    ):
        made.model.script[:] = [says("Done.")]
        await start(connected, at("http://client.invalid/x"))

        async def has_come() -> bool:
            return bool(receiver.posted)

        await eventually(has_come)


async def test_without_the_setting_there_are_none(platform: EventPlatform) -> None:
    async with aiohttp.ClientSession() as session:
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with (
            closed_service(platform, {"beckon": terms()}, checks) as made,
            connected_client(str(made.http.base_url)) as connected,
        ):
            made.model.script[:] = [DANGER]
            task = await connected.send("go")

            with pytest.raises(A2AError, match="BECKON_PUSH_HOSTS"):
                await start(connected, at("https://hooks.example.com/x"))
            with pytest.raises(A2AError, match="BECKON_PUSH_HOSTS"):
                await connected.whole.list_task_push_notification_configs(
                    ListTaskPushNotificationConfigsRequest(task_id=task.id)
                )
            assert not connected.card.capabilities.push_notifications


async def test_the_configs_of_others_do_not_exist(
    platform: EventPlatform, receiver: Receiver, tmp_path: Path
) -> None:
    keys = {name: new_key() for name in ("mine", "theirs")}
    file = tmp_path / "keys.jsonl"
    file.write_text("".join(f"{new_entry(key, name).line()}\n" for name, key in keys.items()))
    hosts = (AllowedHost(host=receiver.url, private=True),)
    async with aiohttp.ClientSession() as session:
        checks = checking(None, file, session)
        async with closed_service(platform, {"beckon": terms()}, checks, push_hosts=hosts) as made:
            made.model.script[:] = [DANGER]
            address = str(made.http.base_url)
            async with (
                connected_client(address, bearing(keys["mine"])) as mine,
                connected_client(address, bearing(keys["theirs"])) as theirs,
            ):
                task = await start(mine, at(receiver.url))
                named = {"task_id": task.id, "id": task.id}
                with pytest.raises(A2AError, match="there is no task"):
                    await theirs.whole.create_task_push_notification_config(at(receiver.url, **named))
                with pytest.raises(A2AError, match="there is no task"):
                    await theirs.whole.get_task_push_notification_config(
                        GetTaskPushNotificationConfigRequest(**named)
                    )
                with pytest.raises(A2AError, match="there is no task"):
                    await theirs.whole.list_task_push_notification_configs(
                        ListTaskPushNotificationConfigsRequest(task_id=task.id)
                    )
                with pytest.raises(A2AError, match="there is no task"):
                    await theirs.whole.delete_task_push_notification_config(
                        DeleteTaskPushNotificationConfigRequest(**named)
                    )


async def test_another_replica_notifies_for_one_that_was_killed(tmp_path: Path, receiver: Receiver) -> None:
    settings = {
        "BECKON_STORE": f"sqlite:///{tmp_path / 'runs.db'}",
        "BECKON_LEASE_SECONDS": "0.5",
        "BECKON_PUSH_HOSTS": f"[{{host: '{receiver.url}', private: true}}]",
    }
    folder = tmp_path / "manifests"
    folder.mkdir()
    async with (
        serving(folder, Reply(says("Late.").pieces, holds=asyncio.Event()), **settings) as first,
        connected_client(str(first.http.base_url)) as one,
    ):
        await start(one, at(receiver.url))
        first.kill()
    async with serving(folder, says("Late."), **settings):
        await receiver.until("COMPLETED")
