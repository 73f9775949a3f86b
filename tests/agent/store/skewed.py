"""A replica whose clock is wrong: `SECONDS VERB URL`, and then does as much of its work as the test needs."""

import asyncio
import sys
import time
from collections.abc import Sequence

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.late_replies import LateReplies
from beckon_agent.durable.event_log import Housekeeping
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store

_true_time = time.time


class NoAgents:
    """A registry without agents, so that calls have the usual time for a late answer."""

    complete = True
    default = ""
    tools = 0

    def find(self, name: str) -> None:
        """Find none."""

    def hosted(self) -> Sequence[AgentHandle]:
        return []

    async def watch(self) -> None:
        await asyncio.Event().wait()


async def accept(store: Store) -> None:
    """Take note that a tool has the call, as `POST /late-replies` does."""
    await LateReplies(store, NoAgents(), lambda: None).store_acceptance("e1")


async def keep_house(store: Store) -> None:
    """End the waiting for what is overdue."""
    await Housekeeping(store, 3600).run_once()


async def purge(store: Store) -> None:
    """Delete the runs that ended an hour ago."""
    await Housekeeping(store, 3600).purge_runs()


async def main(seconds: float, verb: str, url: str) -> None:
    time.time = lambda: _true_time() + seconds
    store = await open_store(url)
    try:
        await {"accept": accept, "keep-house": keep_house, "purge": purge}[verb](store)
    finally:
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), sys.argv[2], sys.argv[3]))
