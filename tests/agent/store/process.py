"""What other processes do with the store: each line of the standard input is `VERB URL ARGUMENT…`.

The process opens the store, says that it is ready, waits for a line, and then does its work as fast as it
can; its result is one line of JSON.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable

from beckon_agent.core.records import Ended
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.store.examples import ME, begun, call, turn

Work = Callable[..., Awaitable[object]]


async def claim(store: Store, holder: str) -> list[str]:
    """Claim runs, two at a time, until there are none."""
    claimed: list[str] = []
    while found := await store.runs.claim_runs(holder, seconds=60, most=2):
        claimed += [run.id for run in found]
    return claimed


async def take(store: Store, limit: str, window: str, seconds: str) -> list[tuple[float, float]]:
    """Take of one limit for so long, by four tasks; return the time before and after each success."""
    taken: list[tuple[float, float]] = []
    end = time.time() + float(seconds)

    async def work() -> None:
        while (begin := time.time()) < end:
            answer = await store.counters.take_amount("k", 1, limit=int(limit), window=float(window))
            if answer.allowed:
                taken.append((begin, time.time()))

    await asyncio.gather(*(work() for _ in range(4)))
    return taken


async def enter(store: Store, name: str, limit: str) -> int:
    """Ask for twenty places side by side; return how many were given."""
    request = [store.counters.take_place("k", f"{name}-{n}", limit=int(limit), seconds=60) for n in range(20)]
    return sum(answer.allowed for answer in await asyncio.gather(*request))


async def decide(store: Store, name: str) -> list[bool]:
    """Decide on thirty calls and finish thirty others, all side by side."""
    decided = [store.journal.store_decision(f"asked-{n}", "approved", by=name) for n in range(30)]
    finished = [
        store.journal.finish_call(f"sent-{n}", result=name, failed=False, seconds=1) for n in range(30)
    ]
    return list(await asyncio.gather(*decided, *finished))


async def write(store: Store, first: str) -> None:
    """Store whole runs without end, and tell of each step once it is stored."""
    previous = None
    for number in itertools.count(int(first)):
        run_id = f"w{number}"
        await begun(store, run_id, previous=previous)
        previous = run_id
        report("created", number)
        made = [call(f"e{number}-{n}", n) for n in range(3)]
        await store.journal.add_turn(run_id, ME, turn(), made)
        report("turn", number)
        await store.journal.finish_call(f"e{number}-0", result=number, failed=False, seconds=1)
        report("finished", number)
        await store.runs.end_run(run_id, ME, Ended("completed", "stop", added=[{"role": "assistant"}]))
        report("ended", number)


async def look(store: Store) -> bool:
    """Only use the store."""
    return await store.runs.get("none") is None


def report(*words: object) -> None:
    """Write a line at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def obey(order: str) -> object:
    """Do one work; begin at the same moment as all others, `look` even with opening the store."""
    verb, url, *arguments = order.split()
    works: dict[str, Work] = {f.__name__: f for f in (claim, take, enter, decide, write, look)}
    if verb == "look":
        report("ready")
        sys.stdin.readline()
    store = await open_store(url)
    if verb != "look":
        report("ready")
        sys.stdin.readline()
    try:
        return await works[verb](store, *arguments)
    finally:
        await store.aclose()


if __name__ == "__main__":
    for line in sys.stdin:
        report(json.dumps(asyncio.run(obey(line))))
