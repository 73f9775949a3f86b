"""The same limits in a real database, with two replicas in front of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from beckon_agent.policy.limits import LimitReached, Limits
from beckon_agent.runs import Agent
from beckon_agent.runs import Limits as RunLimits
from beckon_agent.store.sql.opening import open_store
from beckon_contract.tools import Tool
from tests.agent.access.closed_service import terms

PAY = Tool("pay", "default", "pay", "pay", None, "", {"type": "object"}, "p")


@pytest_asyncio.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[tuple[Limits, Limits]]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    one, two = await open_store(url), await open_store(url)
    yield Limits(one.counters), Limits(two.counters)
    await one.aclose()
    await two.aclose()


def agent(**told: object) -> Agent:
    return Agent("a", "default", "", RunLimits(), terms(**told))


async def test_replicas_admit_no_more_together_than_a_quota_says(replicas: tuple[Limits, Limits]) -> None:
    held = agent(quotas=[{"of": "requests", "per": "user", "limit": 10, "seconds": 3600}])

    asked = [limits.admit_run(held, "oidc:" + "u" * 255) for limits in replicas * 15]
    ended = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(one is None for one in ended) == 10
    refused = [one for one in ended if one is not None]
    assert all(isinstance(one, LimitReached) and 3500 < one.retry_after <= 3600 for one in refused)


async def test_tokens_that_one_replica_used_stop_the_other(replicas: tuple[Limits, Limits]) -> None:
    held = agent(quotas=[{"of": "tokens", "per": "agent", "limit": 1000, "seconds": 3600}])
    one, two = replicas
    await one.count_tokens(held, "u", 999)
    await two.admit_turn(held, "v")
    await two.count_tokens(held, "v", 5_000_000_000)

    for limits in replicas:
        with pytest.raises(LimitReached):
            await limits.admit_turn(held, "w")


async def test_a_place_that_one_replica_holds_is_taken_for_the_other(
    replicas: tuple[Limits, Limits],
) -> None:
    held = agent(toolPolicies=[{"concurrency": 1}])
    one, two = replicas
    async with one.call(held, "u", PAY, "first", patience=5):
        with pytest.raises(LimitReached):
            async with two.call(held, "u", PAY, "second", patience=0):
                pass
    async with two.call(held, "u", PAY, "third", patience=5):
        pass
