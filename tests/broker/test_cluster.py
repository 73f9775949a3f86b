"""The broker as a pod of the class: it follows an API server, and says what is in force."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from beckon_contract.knative.broker_class import MAX_STATES, TriggerState, in_force_request, read_answer
from tests.broker.subscribers import subscriber
from tests.broker.test_process import broker_process, get, post, rest_of, wait_until_listening
from tests.patience import eventually
from tests.sources.api_server import ApiServer, Document, api_server, refusing

ADDRESS: Document = {"address": {"url": "http://beckon-broker-ingress/default/default"}}


async def put_broker(
    api: ApiServer, name: str = "default", status: Document | None = None, class_: str = "Beckon"
) -> None:
    annotations = {"eventing.knative.dev/broker.class": class_}
    metadata = {"namespace": "default", "name": name, "annotations": annotations}
    await api.put("brokers", {"metadata": metadata, "status": ADDRESS if status is None else status})


async def put_trigger(api: ApiServer, url: str, name: str = "t", **spec: Any) -> TriggerState:
    """Write a Trigger with its address in the status, as the operator does; return the state to ask for."""
    sink = spec.get("delivery", {}).get("deadLetterSink", {}).get("uri")
    document = {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"broker": "default", "subscriber": {"uri": "http://not.looked.at"}, **spec},
        "status": {"subscriberUri": url, **({"deadLetterSinkUri": sink} if sink else {})},
    }
    await api.put("triggers", document)
    metadata = api.objects["triggers", "default", name]["metadata"]
    return TriggerState("default", name, metadata["uid"], metadata["generation"], url, sink or "")


@asynccontextmanager
async def pod(folder: Path, api: ApiServer, **environment: str) -> AsyncIterator[str]:
    """Run the broker in a cluster; yield its URL."""
    variables = {
        "BECKON_PORT": "0",
        "BECKON_BROKER_SOURCE": "cluster",
        "KUBECONFIG": str(api.kubeconfig(folder)),
        **environment,
    }
    async with broker_process(folder, **variables) as process:
        yield await wait_until_listening(process)


async def ask(url: str, *states: TriggerState, wait: float = 5.0) -> Document:
    async with aiohttp.ClientSession() as session:
        request = in_force_request(states, wait)
        async with session.post(f"{url}/in-force", json=request) as answer:
            assert answer.status == 200, await answer.text()
            found: Document = await answer.json()
            return found


async def is_ready(url: str) -> bool:
    return await get(f"{url}/readyz") == 200


async def test_it_routes_by_the_addresses_that_the_operator_has_written(tmp_path: Path) -> None:
    async with api_server() as api, subscriber() as tool:
        await put_broker(api)
        state = await put_trigger(api, tool.url)
        async with pod(tmp_path, api) as url:
            await eventually(lambda: is_ready(url))
            assert await post(url) == 202
            await tool.wait()
            assert read_answer(await ask(url, state)).states == {state}
            assert [await post(url, path=path) for path in ("/default/other", "/other/default")] == [404, 404]


async def test_it_takes_no_events_before_everything_is_read(tmp_path: Path) -> None:
    async with api_server() as api:
        await put_broker(api)
        api.refuse = refusing("not now", 503)
        async with pod(tmp_path, api) as url:
            assert not await is_ready(url)
            assert await post(url) == 503
            api.refuse = lambda _: None
            await eventually(lambda: is_ready(url))
            assert await post(url) == 202


async def test_an_answer_comes_once_a_change_is_in_force(tmp_path: Path) -> None:
    async with api_server() as api, subscriber() as old, subscriber() as new:
        await put_broker(api)
        before = await put_trigger(api, old.url)
        async with pod(tmp_path, api) as url:
            assert read_answer(await ask(url, before)).states == {before}
            after = await put_trigger(api, new.url, filter={"attributes": {"type": "test.call"}})
            assert read_answer(await ask(url, after)).states == {after}
            assert read_answer(await ask(url, before, wait=0)).states == frozenset()
            await post(url)
            await new.wait()
            assert old.requests == []

            await api.delete("triggers", "t")
            await put_broker(api, status={})

            async def is_gone() -> bool:
                return await post(url) == 404

            await eventually(is_gone)


async def test_a_broker_of_another_class_and_one_without_an_address_take_no_events(tmp_path: Path) -> None:
    async with api_server() as api:
        await put_broker(api, "mt", class_="MTChannelBasedBroker")
        await put_broker(api, "refused", status={})
        await put_broker(api, "ours")
        async with pod(tmp_path, api) as url:
            await eventually(lambda: is_ready(url))
            answers = [await post(url, path=f"/default/{name}") for name in ("mt", "refused", "ours")]

    assert answers == [404, 404, 202]


async def test_a_routed_trigger_stays_so_until_its_new_dead_letter_sink_is_written(tmp_path: Path) -> None:
    async with api_server() as api, subscriber() as tool:
        await put_broker(api)
        state = await put_trigger(api, tool.url)
        async with pod(tmp_path, api) as url:
            await ask(url, state)
            sink = {"deadLetterSink": {"ref": {"apiVersion": "v1", "kind": "Service", "name": "s"}}}
            await put_trigger(api, tool.url, delivery=sink)
            other = await put_trigger(api, "http://other", "other")
            await ask(url, other)
            await post(url)
            await tool.wait()


async def test_without_its_log_it_is_ready_and_says_so(tmp_path: Path) -> None:
    async with api_server() as api:
        await put_broker(api)
        async with pod(tmp_path, api, BECKON_NATS_URL="nats://127.0.0.1:1") as url:
            await eventually(lambda: is_ready(url))
            log = (await ask(url))["log"]
            status = await post(url)

    assert status == 503
    assert log["address"] == "127.0.0.1:1"
    assert "127.0.0.1:1" in log["problem"]


async def test_only_a_trigger_that_the_operator_has_judged_is_reported_as_not_ready(tmp_path: Path) -> None:
    conditions = [{"type": "SubscriberResolved", "status": "False"}]
    async with api_server() as api:
        await put_broker(api)
        for name, status in (("new", {}), ("judged", {"conditions": conditions})):
            spec = {"broker": "default", "subscriber": {"uri": "http://tool"}}
            metadata = {"namespace": "default", "name": name}
            await api.put("triggers", {"metadata": metadata, "spec": spec, "status": status})
        variables = {"BECKON_PORT": "0", "BECKON_BROKER_SOURCE": "cluster"}
        async with broker_process(tmp_path, **variables, KUBECONFIG=str(api.kubeconfig(tmp_path))) as process:
            url = await wait_until_listening(process)
            await eventually(lambda: is_ready(url))
            process.terminate()
            lines = [line for line in (await rest_of(process)).splitlines() if "is not ready" in line]

    assert len(lines) == 1
    assert "judged" in lines[0]


async def test_a_question_for_many_triggers_may_be_larger_than_an_event(tmp_path: Path) -> None:
    service = f"http://{'s' * 250}.default.svc.cluster.local/{'path/' * 40}"
    unknown = [
        TriggerState("default", f"{number:04}-{'t' * 240}", "uid", 1, service) for number in range(MAX_STATES)
    ]
    async with api_server() as api:
        await put_broker(api)
        known = await put_trigger(api, "http://tool")
        async with pod(tmp_path, api, BECKON_MAX_EVENT_BYTES="65536") as url:
            answer = read_answer(await ask(url, *unknown[1:], known))

    assert answer.states == {known}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"triggers": 1}', "triggers must be a list"),
        (b'{"triggers": [{"generation": "1"}]}', "generation must be an integer"),
        (b'{"triggers": [{"generation": 1, "name": 2}]}', "name must be a string"),
        (b'{"triggers": [], "waitSeconds": 6}', "waitSeconds must be a number from 0 to 5"),
    ],
)
async def test_a_wrong_request_is_refused_with_its_mistake(
    tmp_path: Path, content: bytes, words: str
) -> None:
    async with (
        api_server() as api,
        pod(tmp_path, api) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/in-force", data=content) as answer,
    ):
        problem = await answer.json(content_type="application/problem+json")

    assert answer.status == 400
    assert words in problem["detail"]


async def test_without_an_api_server_it_does_not_start(tmp_path: Path) -> None:
    environment = {
        "BECKON_PORT": "0",
        "BECKON_BROKER_SOURCE": "cluster",
        "KUBECONFIG": str(tmp_path / "none"),
    }
    async with broker_process(tmp_path, **environment) as process:
        said = await rest_of(process)

    assert process.returncode == 2
    assert said.startswith("beckon-broker: ")
    assert len(said.splitlines()) == 1
