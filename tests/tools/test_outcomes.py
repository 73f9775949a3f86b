"""What replicas of a tool share in Redis or PostgreSQL: a call has one effect, wherever it is delivered."""

import asyncio
import itertools
import logging
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
import pytest
import pytest_asyncio
from pydantic import SecretStr

from beckon_contract.cloudevents.extensions import read_deliveries
from beckon_tools import Later, Retry, Ticket, ToolError, tool
from beckon_tools.app import app
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import UsageError
from beckon_tools.outcomes.ledger import CallKey, Claim, Ledger, SharedOutcomes, open_ledger
from tests.agent.store.postgres import Server
from tests.e2e.local_platform import clean_environment
from tests.patience import PATIENCE, until
from tests.tools.redis_server import redis_server
from tests.tools.serving import call, calling, configured

ROOT = Path(__file__).resolve().parents[2]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis for this session."""
    with redis_server() as url:
        yield url


@pytest_asyncio.fixture(params=["redis", "postgresql"])
async def url(request: pytest.FixtureRequest) -> str:
    """The address of a database: a Redis that others use too, or an empty PostgreSQL."""
    if request.param == "redis":
        address: str = request.getfixturevalue("redis_url")
        return address
    running: Server = request.getfixturevalue("postgres")
    return await running.copy(f"outcomes{next(_numbers)}")


@pytest_asyncio.fixture
async def ledger(url: str) -> AsyncIterator[Ledger]:
    """The ledger there."""
    opened = open_ledger(url)
    yield opened
    await opened.close()


class Gate:
    """A tool whose runs are counted, and wait until they may finish."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.name = f"gated-{uuid.uuid4().hex}"
        self.runs = 0
        self.may_finish = asyncio.Event()
        self.outcomes = list(outcomes)

    def tool(self) -> AnyTool:
        @tool(type=self.name)
        async def gated() -> str:
            """Wait at the gate."""
            self.runs += 1
            number = self.runs
            await self.may_finish.wait()
            outcome = self.outcomes.pop(0) if self.outcomes else f"run {number}"
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return gated


async def test_a_call_that_is_delivered_to_two_replicas_runs_once(url: str) -> None:
    gate = Gate()
    gate.may_finish.set()
    shared = {"remember_url": SecretStr(url)}
    async with calling(gate.tool(), **shared) as one, calling(gate.tool(), **shared) as other:
        first = await one.reply(call(gate.name, {}, correlationid="a"))
        second = await other.reply(call(gate.name, {}, correlationid="b"))
        third = await other.reply(call(gate.name, {}, id="another"))

    assert (first.json(), second.json(), third.json()) == ("run 1", "run 1", "run 2")
    assert (first.extensions["replyid"], second.extensions["replyid"]) == ("a", "b")
    assert gate.runs == 2


async def test_while_one_replica_runs_a_call_the_others_wait_for_its_outcome(url: str) -> None:
    gate = Gate()
    shared = {"remember_url": SecretStr(url)}
    async with calling(gate.tool(), **shared) as one, calling(gate.tool(), **shared) as other:
        replicas = [one, other, one, other]
        replies = [asyncio.create_task(each.result(call(gate.name, {}))) for each in replicas]
        await until(lambda: gate.runs == 1)
        gate.may_finish.set()

        assert await asyncio.gather(*replies) == ["run 1"] * 4
    assert gate.runs == 1


@pytest.mark.parametrize("error", [ToolError("RuntimeError: no"), RuntimeError("no")], ids=repr)
async def test_a_failure_is_shared_and_a_run_that_wants_another_delivery_is_not(
    url: str, error: Exception
) -> None:
    gate = Gate(Retry("once"), error)
    gate.may_finish.set()
    shared = {"remember_url": SecretStr(url)}
    async with calling(gate.tool(), **shared) as one, calling(gate.tool(), **shared) as other:
        assert (await one.post(call(gate.name, {}))).status_code == 503
        failure = {"error": {"reason": "tool_failed", "message": "RuntimeError: no"}}
        assert await other.result(call(gate.name, {})) == failure
        assert await one.result(call(gate.name, {})) == failure
    assert gate.runs == 2


async def test_all_replicas_count_the_deliveries_of_a_call(url: str) -> None:
    gate = Gate(Retry("once"))
    gate.may_finish.set()
    shared = {"remember_url": SecretStr(url)}
    async with calling(gate.tool(), **shared) as one, calling(gate.tool(), **shared) as other:
        assert (await one.post(call(gate.name, {}))).status_code == 503
        second = await other.reply(call(gate.name, {}))
        third = await one.reply(call(gate.name, {}))
        another = await one.reply(call(gate.name, {}, id="another"))

    assert [read_deliveries(reply.extensions) for reply in (second, third, another)] == [2, 3, None]


async def test_a_count_begins_anew_after_its_time(ledger: Ledger) -> None:
    key = uuid.uuid4().hex
    assert [await ledger.count(key, 60) for _ in range(3)] == [1, 2, 3]

    await ledger.count(key, 0.001)
    for _ in range(1000):
        if await ledger.count(key, 0.001) == 1:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the count does not begin anew")


async def test_a_call_that_is_answered_later_is_taken_once(url: str) -> None:
    taken: list[str] = []

    @tool(type=f"later-{uuid.uuid4().hex}")
    def later(ticket: Ticket) -> Later:
        """Answer later."""
        taken.append(ticket.call)
        return Later()

    for _ in range(2):
        async with calling(later, remember_url=SecretStr(url)) as caller:
            reply = await caller.reply(call(later.type, {}))
            assert reply.extensions["beckonstate"] == "accepted"
    assert taken == ["call-1"]


async def test_tools_that_share_a_database_do_not_answer_for_each_other(url: str) -> None:
    one, other = Gate("one"), Gate("other")
    for gate in (one, other):
        gate.may_finish.set()
        async with calling(gate.tool(), remember_url=SecretStr(url)) as caller:
            assert await caller.result(call(gate.name, {})) in ("one", "other")
    assert (one.runs, other.runs) == (1, 1)


@tool(type="process.stuck")
async def stuck() -> None:
    """Never end."""
    sys.stdout.write("running\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def test_a_call_whose_replica_was_killed_is_run_by_another_one_after_the_lease(url: str) -> None:
    settings = {"BECKON_TOOLS_REMEMBER_URL": url, "BECKON_TOOLS_REMEMBER_LEASE": "1", "PORT": "0"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.tools.stuck_replica"),
        env=clean_environment(settings),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"running\n"
    process.kill()
    await process.wait()

    @tool(type="process.stuck")
    async def healthy() -> str:
        """End at once."""
        return "done"

    async with calling(healthy, remember_url=SecretStr(url), remember_lease=1) as caller:
        assert await caller.result(call("process.stuck", {})) == "done"


class Watched:
    """A ledger whose renewals are counted, and which another replica may take over."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.renewals = 0
        self.taken_over = False

    async def claim(self, key: str, owner: str, lease: float) -> Claim:
        return await self.ledger.claim(key, owner, lease)

    async def renew(self, key: str, owner: str, lease: float) -> bool:
        if self.taken_over:  # as by a replica that found the lease over, and has answered
            await self.ledger.release(key, owner)
            assert (await self.ledger.claim(key, "other", 60)).mine
            await self.ledger.store_outcome(key, "other", b"other", 60)
        self.renewals += 1
        return await self.ledger.renew(key, owner, lease)

    async def store_outcome(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        await self.ledger.store_outcome(key, owner, data, ttl)

    async def release(self, key: str, owner: str) -> None:
        await self.ledger.release(key, owner)

    async def count(self, key: str, ttl: float) -> int:
        return await self.ledger.count(key, ttl)

    async def close(self) -> None:
        await self.ledger.close()


def a_call() -> CallKey:
    return CallKey(uuid.uuid4().hex, "/a", "1")


class Runs:
    """Runs of a call that end when they may."""

    def __init__(self) -> None:
        self.begun = 0
        self.stopped = 0
        self.may_finish = asyncio.Event()

    async def __call__(self) -> bytes:
        self.begun += 1
        try:
            await self.may_finish.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return b"ours"


async def test_a_run_that_takes_longer_than_its_lease_is_not_run_twice(ledger: Ledger) -> None:
    watched, runs, call_key = Watched(ledger), Runs(), a_call()
    replicas = [SharedOutcomes(watched, lease=1.5, ttl=60) for _ in range(2)]
    outcomes = [asyncio.create_task(each.find_outcome(call_key, runs)) for each in replicas]
    await until(lambda: watched.renewals >= 4)
    runs.may_finish.set()

    assert await asyncio.gather(*outcomes) == [b"ours", b"ours"]
    assert runs.begun == 1


async def test_a_replica_that_has_lost_its_lease_stops_and_answers_what_the_other_found(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    watched, runs = Watched(ledger), Runs()
    watched.taken_over = True

    shared = SharedOutcomes(watched, lease=0.3, ttl=60)
    assert await shared.find_outcome(a_call(), runs) == b"other"
    assert (runs.begun, runs.stopped) == (1, 1)
    assert "taken over" in caplog.text


async def test_an_outcome_is_stored_for_its_time_and_no_other_owner_can_change_it(ledger: Ledger) -> None:
    key = uuid.uuid4().hex
    assert await ledger.claim(key, "one", 60) == Claim(mine=True)
    assert await ledger.claim(key, "two", 60) == Claim(mine=False)
    await ledger.store_outcome(key, "two", b"wrong", 60)
    await ledger.release(key, "two")
    assert not await ledger.renew(key, "two", 60)
    assert await ledger.renew(key, "one", 60)
    await ledger.store_outcome(key, "one", b"\x00right", 60)
    assert await ledger.claim(key, "two", 60) == Claim(mine=False, data=b"\x00right")
    assert not await ledger.renew(key, "one", 60)


async def wait_until_mine(ledger: Ledger, key: str) -> None:
    for _ in range(500):
        if (await ledger.claim(key, "two", 60)).mine:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("what has ended is still held")


async def test_what_has_ended_can_be_claimed_anew(ledger: Ledger) -> None:
    held, done = uuid.uuid4().hex, uuid.uuid4().hex
    assert (await ledger.claim(held, "one", 0.001)).mine
    assert (await ledger.claim(done, "one", 60)).mine
    await ledger.store_outcome(done, "one", b"old", 0.001)

    for key in (held, done):
        await wait_until_mine(ledger, key)


async def test_many_claims_at_once_have_one_winner(url: str) -> None:
    key = uuid.uuid4().hex
    ledgers = [open_ledger(url) for _ in range(5)]
    try:
        claims = await asyncio.gather(
            *(each.claim(key, f"owner-{number}", 60) for number, each in enumerate(ledgers * 4))
        )
    finally:
        await asyncio.gather(*(each.close() for each in ledgers))

    assert [claim.mine for claim in claims].count(True) == 1


@pytest.mark.parametrize(
    "address", ["redis://:sesame@127.0.0.1:9/0", "postgresql://ann:sesame@127.0.0.1:9/db"]
)
async def test_without_its_database_a_call_is_not_run_and_comes_again(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    async with calling(gate.tool(), remember_url=SecretStr(address)) as caller:
        with caplog.at_level(logging.INFO):
            refused = await caller.post(call(gate.name, {}))

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert gate.runs == 0
    assert "was not run" in caplog.text
    assert "sesame" not in refused.text + caplog.text


async def test_rows_that_no_one_asks_for_any_more_are_removed(postgres: Server) -> None:

    address = await postgres.copy(f"outcomes{next(_numbers)}")
    for number in range(3):  # a ledger sweeps when it is used first
        opened = open_ledger(address)
        assert (await opened.claim(f"key-{number}", "one", 60)).mine
        await opened.store_outcome(f"key-{number}", "one", b"old", 0.0)
        await opened.close()

    connection = await asyncpg.connect(address)
    try:
        assert await connection.fetchval("SELECT count(*) FROM beckon_tool_calls") <= 2
    finally:
        await connection.close()


@pytest.mark.parametrize("address", ["mysql://ann:sesame@host/db", "sesame", "redis://[sesame"])
def test_an_address_that_is_none_is_reported_without_showing_it(address: str) -> None:
    with pytest.raises(UsageError, match="BECKON_TOOLS_REMEMBER_URL") as refused:
        app(Gate().tool(), configured(remember_url=SecretStr(address)))

    assert "sesame" not in str(refused.value)
