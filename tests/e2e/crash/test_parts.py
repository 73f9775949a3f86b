"""SIGKILL of the shim and of the broker during calls: an answer or a typed failure, no effect twice."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.agent.responses.running_face import Event
from tests.e2e.crash.agents import SECONDS, AgentProcess
from tests.e2e.crash.gates import GATES
from tests.e2e.crash.parts import Part, no_call_waits
from tests.e2e.crash.site import POSTGRESQL, SQLITE, Site
from tests.e2e.crash.tools import CALLED, DONE, EFFECTS, PLACES, mark
from tests.e2e.crash.walk import WITHIN, Walked, comes_right
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.patience import PATIENCE, eventually

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(4 * SECONDS)]

CALL_SECONDS = 8.0  # longer than a part takes to start again, on a busy machine, too
WAITED_FOR = 5.0  # seconds for which an agent waits at least for a shim that is gone


@asynccontextmanager
async def calling(agent: AgentProcess, name: str, place: str) -> AsyncIterator[None]:
    """Ask, and hold both calls at a place to the end of the block; then wait for the end of the answer."""
    gate = GATES.put(place, name, len(PLACES))
    asking = asyncio.create_task(agent.ask(name))
    await asyncio.wait_for(gate.arrived.wait(), SECONDS)
    try:
        yield
    finally:
        gate.open()
    await asking


async def restarted(part: Part) -> float:
    """Kill a part and start it again; return the seconds until it answered."""
    begun = time.monotonic()
    await part.kill()
    await part.start()
    return time.monotonic() - begun


def reasons(agent: AgentProcess) -> list[str]:
    """Return why the calls of the agent's last answer failed; the run itself is at its good end."""
    ended: Event = agent.shown[-1]["response"]
    assert ended["status"] == "completed", ended
    calls = [item for item in ended["output"] if item["type"] == "mcp_call"]
    return [call["error"]["content"]["reason"] for call in calls if call["status"] == "failed"]


def effects(name: str) -> list[int]:
    return [EFFECTS[name, place] for place in PLACES]


async def come_true(name: str) -> bool:
    """Wait until the tools, which were held up, have done it; return whether each has done it once."""
    await eventually(lambda: asyncio.sleep(0, all(effects(name))), SECONDS)
    return effects(name) == [1, 1]


@pytest.mark.parametrize("place", [CALLED, DONE])
async def test_a_shim_that_is_killed_and_comes_back_takes_the_calls_again(site: Site, place: str) -> None:
    name = f"the shim comes back, {place}"
    store = await site.databases.new(POSTGRESQL)
    agent = await site.agent(store)
    async with calling(agent, name, place):
        seconds = await restarted(site.parts.shim)

    if reasons(agent):  # which only a shim that took too long may be answered with
        assert seconds > WAITED_FOR
        assert set(reasons(agent)) == {"outcome_unknown"}
        assert await come_true(name)
    else:
        await comes_right(Walked(name, store, agent, time.monotonic()), agent)


async def test_a_shim_that_stays_away_is_shown_to_the_model(site: Site) -> None:
    name = "the shim stays away"
    agent = await site.agent(await site.databases.new(SQLITE), BECKON_CALL_TIMEOUT=str(CALL_SECONDS))
    try:
        async with calling(agent, name, CALLED):
            await site.parts.shim.kill()

        assert reasons(agent) == ["outcome_unknown", "outcome_unknown"]
        assert await come_true(name)
    finally:
        await site.parts.shim.start()


@pytest.mark.parametrize("place", [CALLED, DONE])
async def test_a_broker_that_is_killed_with_the_calls_in_it_is_reported_as_no_answer(
    site: Site, place: str
) -> None:
    name = f"the broker forgets, {place}"
    agent = await site.agent(await site.databases.new(SQLITE), BECKON_CALL_TIMEOUT=str(CALL_SECONDS))
    async with calling(agent, name, place):
        await restarted(site.parts.broker)

    assert reasons(agent) == ["timeout", "timeout"]
    assert await come_true(name)


async def test_a_broker_that_is_away_is_reported_as_such_and_nothing_happens(site: Site) -> None:
    name = "the broker is away"
    agent = await site.agent(await site.databases.new(SQLITE), BECKON_CALL_TIMEOUT="2")
    await site.parts.broker.kill()
    try:
        await agent.ask(name)

        assert reasons(agent) == ["undeliverable", "undeliverable"]
        assert effects(name) == [0, 0]
    finally:
        await site.parts.broker.start()


@asynccontextmanager
async def local_platform(site: Site, folder: Path) -> AsyncIterator[tuple[LocalPlatform, AgentProcess]]:
    """Run the local platform with the tool of the walk, whose EventType says nothing of repeated calls."""
    parameters = {place: {"type": "string"} for place in ("run", "place")}
    (folder / "mark.yaml").write_text(
        tool_manifests("crash-mark", str(mark.description), parameters, url=site.tool)
    )
    settings = {"OPENAI_BASE_URL": site.model, "BECKON_MODEL": "m", "BECKON_STORE": store_in(folder)}
    platform = await asyncio.to_thread(LocalPlatform, folder, folder, settings)
    try:
        await asyncio.to_thread(platform.wait_until_ready)
        async with httpx.AsyncClient(base_url=platform.url, timeout=PATIENCE) as http:
            yield platform, AgentProcess(platform.pid_of("beckon_agent"), http)
    finally:
        await asyncio.to_thread(platform.stop)


def store_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'store.db'}"


async def test_the_agent_of_the_local_platform_goes_on_with_its_runs(site: Site, tmp_path: Path) -> None:
    name = "the local platform"
    async with local_platform(site, tmp_path) as (_, agent):
        async with calling(agent, name, CALLED):
            agent.kill()
            await agent.ended()
        walked = Walked(name, store_in(tmp_path), agent, time.monotonic())
        await eventually(agent.answers, SECONDS)

        assert await comes_right(walked, agent) < 2 * WITHIN  # the process starts from nothing


async def test_replies_that_an_agent_was_sent_and_never_stored_are_not_lost(
    site: Site, tmp_path: Path
) -> None:
    name = "the replies in its hands"
    async with local_platform(site, tmp_path) as (platform, agent):
        gate = GATES.put(DONE, name, len(PLACES))
        asking = asyncio.create_task(agent.ask(name))
        await asyncio.wait_for(gate.arrived.wait(), SECONDS)
        os.kill(agent.pid, signal.SIGSTOP)
        gate.open()
        await eventually(lambda: no_call_waits(platform.shim_url), SECONDS)  # both replies are sent

        agent.kill()
        await agent.ended()
        await asking
        walked = Walked(name, store_in(tmp_path), agent, time.monotonic())
        await eventually(agent.answers, SECONDS)

        assert await comes_right(walked, agent) < 2 * WITHIN
