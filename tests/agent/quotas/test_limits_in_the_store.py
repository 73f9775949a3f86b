"""The same limits in a real database, with two replicas in front of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from beckon_agent.auth.quotas import LimitReached, Quotas
from beckon_agent.core.run_types import Agent
from beckon_agent.core.run_types import Limits as RunLimits
from beckon_agent.store.sql.open import open_store
from beckon_contract.resources.tools import Tool
from tests.agent.auth.closed_service import terms
from tests.agent.store.raw import count, execute

PAY = Tool("pay", "default", "pay", "pay", None, "", {"type": "object"}, "p")


@pytest_asyncio.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[tuple[Quotas, Quotas]]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    one, two = await open_store(url), await open_store(url)
    yield Quotas(one.counters), Quotas(two.counters)
    await one.aclose()
    await two.aclose()


def agent(**shown: object) -> Agent:
    return Agent("a", "default", "", RunLimits(), terms(**shown))


async def test_all_replicas_share_one_quota(replicas: tuple[Quotas, Quotas]) -> None:
    held = agent(quotas=[{"of": "requests", "per": "user", "limit": 10, "seconds": 3600}])

    sent = [limits.admit_run(held, "oidc:" + "u" * 255, "run") for limits in replicas * 15]
    ended = await asyncio.gather(*sent, return_exceptions=True)

    assert sum(one is None for one in ended) == 10
    refused = [one for one in ended if one is not None]
    assert all(isinstance(one, LimitReached) and 3500 < one.retry_after <= 3600 for one in refused)


async def test_tokens_that_one_replica_used_stop_the_other(replicas: tuple[Quotas, Quotas]) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 1000, "seconds": 3600}])
    one, two = replicas
    await one.settle_tokens(held, "u", "1", 999)
    await two.reserve_tokens(held, "v", "2", 10)
    await two.settle_tokens(held, "v", "2", 5_000_000_000)

    for limits in replicas:
        with pytest.raises(LimitReached):
            await limits.reserve_tokens(held, "w", "3", 10)


async def test_a_place_that_one_replica_holds_is_taken_for_the_other(
    replicas: tuple[Quotas, Quotas],
) -> None:
    held = agent(toolPolicies=[{"concurrency": 1}])
    one, two = replicas
    async with one.reserve_call(held, "u", PAY, "first", patience=5):
        with pytest.raises(LimitReached):
            async with two.reserve_call(held, "u", PAY, "second", patience=0):
                pass
    async with two.reserve_call(held, "u", PAY, "third", patience=5):
        pass


async def test_requests_at_once_pass_a_quota_of_tokens_by_one_answer_each_that_was_admitted(
    replicas: tuple[Quotas, Quotas],
) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 150, "seconds": 3600}])
    used = 0

    async def request(limits: Quotas, number: int) -> None:
        nonlocal used
        await limits.admit_run(held, "u", f"run-{number}")
        await limits.reserve_tokens(held, "u", f"run-{number}", 40)
        await limits.settle_tokens(held, "u", f"run-{number}", 50)
        used += 50

    sent = [request(limits, number) for number, limits in enumerate(replicas * 30)]
    ended = await asyncio.gather(*sent, return_exceptions=True)

    refused = [one for one in ended if isinstance(one, LimitReached)]
    admitted = sum(one is None for one in ended)
    assert admitted + len(refused) == 60
    assert 1 <= admitted <= 4
    assert used <= 150 + 50 * admitted
    assert all(one.retry_after >= 1 for one in refused)


async def test_what_was_learned_of_an_answer_lets_as_many_in_as_there_is_room_for(
    replicas: tuple[Quotas, Quotas],
) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 150, "seconds": 3600}])
    limits, _ = replicas
    await limits.settle_tokens(held, "u", "before", 15)

    sent = [limits.admit_run(held, "u", f"run-{number}") for number in range(60)]
    ended = await asyncio.gather(*sent, return_exceptions=True)

    assert sum(one is None for one in ended) == 9


async def test_a_run_that_was_admitted_is_not_ended_by_what_others_reserve(
    replicas: tuple[Quotas, Quotas],
) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 100, "seconds": 3600}])
    one, two = replicas
    await one.admit_run(held, "u", "first")
    await one.settle_tokens(held, "u", "first", 10)
    await two.admit_run(held, "u", "second")

    await one.reserve_tokens(held, "u", "first", 10)
    with pytest.raises(LimitReached, match="used up or reserved") as refused:
        await one.admit_run(held, "u", "third")
    assert refused.value.retry_after == 2

    await one.settle_tokens(held, "u", "first", 10)
    await two.settle_tokens(held, "u", "second", 0)
    await one.admit_run(held, "u", "third")


async def test_what_a_dead_process_reserved_is_free_when_its_lease_is_over(
    replicas: tuple[Quotas, Quotas], tmp_path: Path
) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 100, "seconds": 3600}])
    dead, alive = replicas
    await dead.admit_run(held, "u", "lost")
    with pytest.raises(LimitReached):
        await alive.admit_run(held, "u", "next")

    await execute(
        f"sqlite:///{tmp_path / 'store.db'}", "UPDATE limit_reservations SET expires = expires - 61"
    )
    await alive.admit_run(held, "u", "next")


async def test_a_run_that_the_quota_of_requests_refuses_reserves_no_tokens(
    replicas: tuple[Quotas, Quotas], tmp_path: Path
) -> None:
    quotas = [{"of": of, "per": "agent", "limit": 1, "seconds": 3600} for of in ("requests", "tokens")]
    limits, _ = replicas
    await limits.admit_run(agent(quotas=quotas), "u", "first")
    await limits.settle_tokens(agent(quotas=quotas), "u", "first", 0)
    with pytest.raises(LimitReached, match="1 requests"):
        await limits.admit_run(agent(quotas=quotas), "u", "second")

    assert await count(f"sqlite:///{tmp_path / 'store.db'}", "limit_reservations") == 0
