"""Answers that come while the agents or their database are away: the Broker has them until they are stored.

Brokers and Triggers are those of `beckon up`, with a tenth of their pauses.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from beckon_agent.store.base import Store, StoreUnavailable
from beckon_cli.local.plan import manifests
from tests.agent.long.rig import LongAgent, Rig, running_rig
from tests.agent.scripted_model import asks_for, says
from tests.agent.store.between import Between
from tests.agent.store.postgres import Server
from tests.patience import eventually

REPORT = asks_for(("report", {}))
ANSWERS = 20
AWAY = 6.0
"""A tenth of a minute, as the pauses are."""

TRIES = 13
"""One more than a reply had within the retries of the Broker and of its dead-letter sink, 12 s in all."""


class Away(Between):
    """A store that can be made to answer nothing."""

    away = False

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Make a call of the real store unless it is away."""
        if self.away:
            raise StoreUnavailable("the database does not answer")
        return await call()


def deliver_as_beckon_up_does(rig: Rig) -> None:
    """Put the Broker and the Triggers of the local platform in the place of the rig's."""
    broker = rig.tool.broker
    text = manifests(
        addresses={},
        brokers={("default", "default"): None},
        broker_url=broker.url,
        reply_url=rig.shim.replies,
        reply_attribute="replyid",
    )
    text = re.sub(r"PT([\d.]+)S", lambda found: f"PT{float(found[1]) / 10:g}S", text)
    others = json.loads((broker.folder / "all.json").read_text())["items"]
    replaced = ("Broker", "replies", "progress")
    rest = [one for one in others if not {one["kind"], one["metadata"]["name"]} & set(replaced)]
    broker.write(*rest, *yaml.safe_load_all(text))


async def routed(rig: Rig) -> bool:
    """Whether the Broker knows the Triggers of the local platform."""
    return bool((await rig.tool.broker.trigger_status("default-beckon-progress")).get("ready"))


async def all_are_refused(rig: Rig) -> bool:
    """Whether each answer was refused more often than it was tried before."""
    refused = await rig.shim.metric('beckon_shim_replies_total{outcome="late_refused"}')
    return refused >= ANSWERS * TRIES


async def waiting_runs(agent: LongAgent) -> list[str]:
    """Begin runs whose tool answers later; return their ids once all of them wait for it."""
    posted = [await asyncio.gather(*(agent.post() for _ in range(5))) for _ in range(ANSWERS // 5)]
    begun = [each["id"] for batch in posted for each in batch]
    for run_id in begun:
        await agent.waits(run_id)
    return begun


@pytest_asyncio.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """A platform with a long tool, on one database: what happens at the Broker is the same for all."""
    (tmp_path / "manifests").mkdir()
    async with running_rig(tmp_path / "manifests", f"sqlite:///{tmp_path / 'store.db'}") as running:
        yield running


@pytest.mark.timeout(60)
async def test_every_answer_outlives_an_outage_of_the_agents(rig: Rig) -> None:
    deliver_as_beckon_up_does(rig)
    await eventually(lambda: routed(rig))
    async with rig.agent(*[REPORT] * (2 * ANSWERS)) as agent:  # a busy machine may ask twice
        begun = await waiting_runs(agent)
    for number, call in enumerate(list(rig.tool.calls)):
        assert await rig.tool.answer(call, number) == 202
    await eventually(lambda: all_are_refused(rig))

    async with rig.agent(*[says("Thank you.")] * (2 * ANSWERS)) as agent:
        ended = [await agent.until(run_id, "completed") for run_id in begun]

    assert sorted(int(each["output"][0]["output"]) for each in ended) == list(range(ANSWERS))
    assert len(rig.tool.calls) == ANSWERS


@pytest.mark.timeout(60)
async def test_every_answer_outlives_an_outage_of_the_database(rig: Rig) -> None:
    deliver_as_beckon_up_does(rig)
    await eventually(lambda: routed(rig))
    stores: list[Away] = []

    def through(store: Store) -> Store:
        stores.append(Away(store))
        return stores[0]

    script = [*[REPORT] * ANSWERS, *[says("Thank you.")] * (2 * ANSWERS)]
    async with rig.agent(*script, through=through) as agent:
        begun = await waiting_runs(agent)
        stores[0].away = True
        for number, call in enumerate(list(rig.tool.calls)):
            assert await rig.tool.answer(call, number) == 202
        await eventually(lambda: all_are_refused(rig))
        stores[0].away = False
        ended = [await agent.until(run_id, "completed") for run_id in begun]

    assert sorted(int(each["output"][0]["output"]) for each in ended) == list(range(ANSWERS))
    assert len(rig.tool.calls) == ANSWERS


@pytest.mark.timeout(120)
async def test_every_answer_outlives_a_database_server_that_is_stopped(
    tmp_path: Path, postgres: Server, template: str
) -> None:
    (tmp_path / "manifests").mkdir()
    url = await postgres.copy("outage", template)
    script = [*[REPORT] * ANSWERS, *[says("Thank you.")] * (2 * ANSWERS)]
    async with running_rig(tmp_path / "manifests", url) as rig, rig.agent(*script) as agent:
        deliver_as_beckon_up_does(rig)
        await eventually(lambda: routed(rig))
        begun = await waiting_runs(agent)
        async with postgres.stopped():
            outage = asyncio.create_task(asyncio.sleep(AWAY))
            for number, call in enumerate(list(rig.tool.calls)):
                assert await rig.tool.answer(call, number) == 202
            await eventually(lambda: all_are_refused(rig))
            await outage
        ended = [await agent.until(run_id, "completed") for run_id in begun]

    assert sorted(int(each["output"][0]["output"]) for each in ended) == list(range(ANSWERS))
    assert len(rig.tool.calls) == ANSWERS
