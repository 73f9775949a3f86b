"""Anyone who goes on with a stored run does so for the one who began it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from beckon_agent.core.context import Principal, acting_as
from beckon_agent.core.records import FINAL, NewRun, StoredRun
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask
from beckon_agent.durable.engine import RunEngine
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import QUICK
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import user
from tests.agent.scripted_model import says
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALICE = Principal("oidc:alice", frozenset({"ops"}), "oidc")
ECHO_FOR_OPS = {"toolRules": [{"groups": ["ops"], "tools": {"names": ["test.echo"]}}]}


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """A service with an agent whose tools are not the same for all."""
    async with aiohttp.ClientSession() as session:
        door = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"ruled": terms(access=ECHO_FOR_OPS)}, door) as made:
            yield made


@asynccontextmanager
async def serving(service: ClosedService) -> AsyncIterator[None]:
    """Let another process go on with what is left."""
    engine = RunEngine(service.store, service.service, "alive", QUICK)
    task = asyncio.create_task(engine.serve())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def a_run(who: Principal) -> NewRun:
    """Return a new run of a principal, as a face starts it."""
    return NewRun(
        id="run_1",
        owner=who.id,
        agent="ruled",
        face="test",
        input=[user("go")],
        previous=None,
        background=True,
    )


async def left_by_a_dead_process(service: ClosedService, who: Principal) -> str:
    """Begin a principal's run in a process that dies before it stores the first turn; return its id."""
    with acting_as(who):
        found = service.registry.find("ruled")
        assert isinstance(found, AgentHandle)
        run = a_run(who)
        dying = RunEngine(Crashing(service.store, 0, lands=False), service.service, "dying", QUICK)
        await dying.start(Ask(run, found, Options()))
    await eventually(lambda: asyncio.sleep(0, service.model.requests))
    return run.id


async def ended(service: ClosedService, run_id: str) -> StoredRun:
    found: list[StoredRun] = []

    async def over() -> bool:
        run = await service.store.runs.get(run_id)
        found[:] = [] if run is None else [run]
        return run is not None and run.status in FINAL

    await eventually(over)
    return found[0]


async def test_a_run_that_is_taken_over_has_the_tools_of_its_owner(service: ClosedService) -> None:
    service.model.script[:] = [says("hello"), says("hello")]
    run_id = await left_by_a_dead_process(service, ALICE)

    async with serving(service):
        run = await ended(service, run_id)

    assert run.status == "completed"
    offered = [
        [tool["function"]["name"] for tool in request.body["tools"]] for request in service.model.requests
    ]
    assert offered == [["test_echo"], ["test_echo"]]


async def test_a_run_of_whom_no_one_knows_is_not_gone_on_with(service: ClosedService) -> None:
    await service.store.runs.create(a_run(ALICE), holder="dead", seconds=0)

    async with serving(service):
        run = await ended(service, "run_1")

    assert (run.status, (run.error or {})["code"]) == ("failed", "agent_gone")
    assert service.model.requests == []
