"""The models of Agents: whose key goes where, keys that change, probes, one client for equal references."""

import asyncio
import logging
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from beckon_agent.agents.keys import Key, KeyRing, NoModel, NoSecret, SecretEntry
from beckon_agent.agents.kubernetes import Periods
from beckon_agent.agents.kubernetes_status import read_verdict
from beckon_agent.agents.model_pool import ModelPool, ModelSpec
from beckon_agent.core.run_types import Options
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelAuthError
from beckon_contract.resources.agent_resource import SecretKey
from tests.agent.cluster.running import running_cluster
from tests.agent.cluster_objects import agent
from tests.agent.model_server import model_server
from tests.agent.running_agent import QUICK, user
from tests.agent.scripted_model import KEY
from tests.patience import PATIENCE, eventually
from tests.sources.api_server import ApiServer

CLOSED = "http://127.0.0.1:9/v1"
QUICKLY = Periods(keys=0.05, models=0.1, statuses=0.2)


def places_of_model(url: str, **more: Any) -> dict[str, Any]:
    return {"model": {"baseURL": url, "name": "m", **more}}


def with_key(url: str, secret: str = "model-key", key: str = "api-key") -> dict[str, Any]:
    return places_of_model(url, apiKeySecret={"name": secret, "key": key})


async def test_the_services_key_goes_to_the_services_own_server_only(
    server: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        model_server() as own,
        model_server() as other,
        running_cluster(server, tmp_path, own.url, periods=QUICKLY) as running,
    ):
        await server.put("agents", agent("elsewhere", **places_of_model(other.url)))
        await server.put("agents", agent("inherits", model={"name": "other"}))
        await running.serves("elsewhere")
        await running.serves("inherits", model="other")
        await running.status("elsewhere", ModelAnswers="Answers")

    assert {sent.headers["authorization"] for sent in own.requests} == {f"Bearer {KEY}"}
    assert all("authorization" not in sent.headers for sent in other.requests)
    assert set(other.listed) == {""}
    assert KEY not in caplog.text


async def test_an_agents_key_comes_from_its_secret_and_a_changed_one_needs_no_restart(
    server: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="beckon_agent")
    server.secrets["team-a", "model-key"] = {"token": "first-secret-key\n"}
    async with (
        model_server(keys={"first-secret-key"}) as model,
        running_cluster(server, tmp_path, CLOSED, periods=QUICKLY) as running,
    ):
        await server.put("agents", agent("helper", "team-a", **with_key(model.url, key="token")))
        await running.serves("team-a/helper")
        await running.status("helper", "team-a", ModelAnswers="Answers", Ready="Ready")
        model.keys = {"second-secret-key"}
        status = await running.status("helper", "team-a", ModelAnswers="Unauthorized", Ready="Unauthorized")
        refused = await running.post("team-a/helper")
        server.secrets["team-a", "model-key"] = {"token": "second-secret-key"}
        await running.serves("team-a/helper")
        await running.status("helper", "team-a", Ready="Ready")

    assert refused.status_code == 502
    assert "put a valid key into the Secret model-key" in str(status)
    shown = caplog.text + str(server.statuses) + refused.text
    assert "first-secret-key" not in shown
    assert "second-secret-key" not in shown


@pytest.mark.parametrize(
    ("entries", "reason", "cure"),
    [
        ({}, "SecretNotFound", "kubectl -n default create secret generic model-key"),
        ({"other": "x"}, "SecretKeyNotFound", "has no key 'api-key'"),
        ({"api-key": "  \n"}, "SecretKeyNotFound", "is empty"),
        ({"forbidden": "x"}, "SecretForbidden", "the resourceNames of the Role beckon-agent"),
        ({"api-key": "bad\x01key-bad-key"}, "InvalidModel", "no HTTP header can carry"),
    ],
    ids=["missing", "no-such-key", "empty", "forbidden", "unusable"],
)
async def test_without_a_usable_key_an_agent_waits_for_it_and_says_so(
    entries: dict[str, str], reason: str, cure: str, server: ApiServer, tmp_path: Path
) -> None:
    if entries:
        server.secrets["default", "model-key"] = entries
    if "forbidden" in entries:
        server.refuse = lambda request: (403, "no") if "/secrets/" in request.path else None
    async with (
        model_server() as model,
        running_cluster(server, tmp_path, CLOSED, periods=QUICKLY) as running,
    ):
        await server.put("agents", agent("helper", **with_key(model.url)))
        status = await running.status("helper", Accepted="Accepted", ModelAnswers=reason, Ready=reason)
        error = await running.error("helper")
        server.refuse = lambda _: None
        server.secrets["default", "model-key"] = {"api-key": "a-good-key"}
        await running.serves("helper")

    assert error[:2] == (503, "agent_not_ready")
    assert f"({reason})" in error[2]
    assert "bad" not in str(status) + error[2]
    assert cure in status["conditions"][1]["message"]


async def test_a_secret_that_cannot_be_read_now_leaves_the_key_that_is_known(
    server: ApiServer, tmp_path: Path
) -> None:
    server.secrets["default", "model-key"] = {"api-key": "a-good-key"}
    async with (
        model_server(keys={"a-good-key"}) as model,
        running_cluster(server, tmp_path, CLOSED, periods=QUICKLY) as running,
    ):
        await server.put("agents", agent("helper", **with_key(model.url)))
        await running.serves("helper")
        server.refuse = lambda request: (500, "trouble") if "/secrets/" in request.path else None
        reads = len(secret_reads(server))

        async def read_again() -> bool:
            return len(secret_reads(server)) >= reads + 2

        await eventually(read_again)
        assert (await running.post("helper")).status_code == 200


def secret_reads(server: ApiServer) -> list[str]:
    return [path for method, path in server.requests if method == "GET"]


async def test_a_change_that_waits_for_its_key_is_served_as_before_until_then(
    server: ApiServer, tmp_path: Path
) -> None:
    server.secrets["default", "first"] = {"api-key": "first-key"}
    server.secrets["default", "second"] = {"api-key": "second-key"}
    async with (
        model_server() as model,
        running_cluster(server, tmp_path, CLOSED, periods=QUICKLY) as running,
    ):
        await server.put("agents", agent("helper", **with_key(model.url, "first")))
        await running.serves("helper")
        server.refuse = lambda request: (500, "trouble") if request.path.endswith("/second") else None
        await server.put("agents", agent("helper", systemPrompt="New.", **with_key(model.url, "second")))
        await running.status("helper", ModelAnswers="KeyNotRead")
        before = await running.post("helper")
        server.refuse = lambda _: None
        await running.serves("helper", system="New.")

    assert before.status_code == 200
    assert [sent.headers["authorization"] for sent in model.requests][-1] == "Bearer second-key"


@pytest.mark.parametrize(
    ("settings", "name", "verdict", "said"),
    [
        ({}, "m", ("True", "Answers"), ""),
        ({}, "", ("True", "Answers"), ""),
        ({"models": ["m:latest"]}, "m", ("True", "Answers"), ""),
        ({"models": ["models/m"]}, "m", ("True", "Answers"), ""),
        ({}, "hidden", ("True", "Answers"), ""),
        ({}, "missing", ("False", "NoSuchModel"), "no model 'missing'; it has m, other"),
        ({"keys": {"other-key"}}, "m", ("False", "Unauthorized"), "does not accept the key"),
        ({"has_list": False}, "m", ("Unknown", "NoModelList"), "answers 404"),
        ({"models": []}, "", ("Unknown", "NoModelList"), "lists no model"),
        ({"models": []}, "m", ("Unknown", "NoModelList"), "lists no model"),
    ],
    ids=["listed", "any", "tag", "folder", "hidden", "missing", "key", "no-list", "empty-any", "empty"],
)
async def test_a_probe_says_whether_the_model_answers(
    settings: dict[str, object], name: str, verdict: tuple[str, str], said: str
) -> None:
    async with model_server(**settings) as model, ModelClient(model.url, KEY, name, patience=QUICK) as client:
        found = await read_verdict(client, name)

    assert (found.status, found.reason) == verdict
    assert said in found.detail
    assert KEY not in found.detail


async def test_a_probe_of_a_server_that_is_not_there_or_ill_says_so() -> None:
    async with ModelClient(CLOSED, KEY, "m", patience=QUICK) as client:
        gone = await read_verdict(client, "m")
    async with (
        model_server() as model,
        ModelClient(f"{model.url}/../broken", KEY, "m", patience=QUICK) as client,
    ):
        wrong = await read_verdict(client, "m")

    assert (gone.status, gone.reason) == ("False", "Unreachable")
    assert wrong.reason == "NoModelList"


def spec(url: str, key: str = KEY) -> ModelSpec:
    return ModelSpec(url, "m", "native", key)


async def test_equal_references_share_one_client_that_closes_after_the_last_is_let_go() -> None:
    pool = ModelPool(lambda: None, grace=0)
    first, second, other = (
        pool.take_model(spec(CLOSED)),
        pool.take_model(spec(CLOSED)),
        pool.take_model(spec(CLOSED, "k" * 20)),
    )
    first.release_model()
    with second.hold_open():
        second.release_model()
        await asyncio.sleep(0)
        during = pool.open_models()
    closed = asyncio.create_task(gone(pool, 1))
    await asyncio.wait_for(closed, PATIENCE)
    again = pool.take_model(spec(CLOSED))
    await pool.close()

    assert first is second
    assert other is not first
    assert list(during) == [first, other]
    assert again is not first


async def gone(pool: ModelPool, left: int) -> None:
    async def closed() -> bool:
        return len(pool._models) == left

    await eventually(closed)


async def test_a_model_that_is_taken_again_in_time_stays_open() -> None:
    pool = ModelPool(lambda: None, grace=30)
    first = pool.take_model(spec(CLOSED))
    first.release_model()
    again = pool.take_model(spec(CLOSED))
    await pool.close()

    assert first is again


async def test_a_refused_key_is_reported_at_once() -> None:
    denied: list[str] = []
    async with model_server(keys={"another"}) as model:
        pool = ModelPool(lambda: denied.append("denied"), grace=0)
        shared = pool.take_model(spec(model.url))
        async with aclosing(shared.stream([user("hi")], [], Options())) as items:
            with pytest.raises(ModelAuthError):
                await anext(items)
        await pool.close()

    assert denied == ["denied"]


async def test_no_key_shows_in_the_text_of_what_holds_it() -> None:
    assert "hush-hush" not in repr(spec(CLOSED, "hush-hush")) + repr(Key("hush-hush"))


async def test_keys_that_no_one_wants_any_more_are_forgotten_and_one_failure_stops_no_other() -> None:
    here, there = (SecretEntry("default", SecretKey(name, "api-key")) for name in ("here", "there"))
    wanted = {here, there}
    read: list[str] = []

    async def reading(one: SecretEntry) -> dict[str, bytes]:
        read.append(one.secret.name)
        if one == here:
            raise NoSecret("SecretForbidden", "no")
        return {"api-key": b"v"}

    ring = KeyRing(reading, lambda: wanted, lambda _: None, 0.01)
    task = asyncio.create_task(ring.read_periodically())
    try:

        async def both_read() -> bool:
            return len(read) >= 2

        await eventually(both_read)
        found = ring.find_key(here), ring.find_key(there)
        wanted.clear()

        async def forgotten() -> bool:
            return ring.find_key(there) is None

        await eventually(forgotten)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert isinstance(found[0], NoModel)
    assert found[1] == Key("v")


async def test_two_agents_with_one_reference_use_the_same_connections(
    server: ApiServer, tmp_path: Path
) -> None:
    async with (
        model_server() as model,
        running_cluster(server, tmp_path, CLOSED, periods=Periods(models=60)) as running,
    ):
        for name in ("one", "two"):
            await server.put("agents", agent(name, **places_of_model(model.url)))
            await running.serves(name)
        order = ("one", "two", "two", "one", "one", "two")
        for name in order:
            await running.ask(name)

    # A busy client may open another connection, and take turns with both.
    peers = list(zip(order, (sent.headers["x-peer"] for sent in model.requests[-6:]), strict=True))
    one, two = ({peer for name, peer in peers if name == wanted} for wanted in ("one", "two"))
    assert one & two
