"""Several processes on one database, as replicas are, and one that is killed."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from beckon_agent.store import migrations
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.store.examples import LONG, begun, call, called, new_run
from tests.agent.store.raw import execute

ROOT = Path(__file__).resolve().parents[3]
REPLICAS = 4
NAME = object()
"""Replaces the name of the process."""


class Replica:
    """Another process, which opens the store and does the works of the test."""

    def __init__(self) -> None:
        command = (sys.executable, "-m", "tests.agent.store.process")
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, cwd=ROOT, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin
        self._out = self._process.stdout

    def order(self, *words: object) -> None:
        """Give an order, and wait until the process is ready to begin with it."""
        self.write(*words)
        assert self.line() == "ready"

    def begin(self) -> None:
        """Let it begin."""
        self.write("go")

    def write(self, *words: object) -> None:
        """Write a line."""
        self._in.write(" ".join(map(str, words)) + "\n")
        self._in.flush()

    def line(self) -> str:
        """Wait for a line; the time limit of the test is that of the process."""
        return self._out.readline().rstrip("\n")

    def kill(self) -> list[str]:
        """End the process without warning; return the lines that it had written whole."""
        self._process.kill()
        with self._process:
            return [line.rstrip("\n") for line in self._out if line.endswith("\n")]


@pytest.fixture(scope="module")
def replicas() -> Iterator[list[Replica]]:
    """Four processes that work for one test after the other."""
    started = [Replica() for _ in range(REPLICAS)]
    yield started
    for replica in started:
        replica.kill()


async def side_by_side(replicas: list[Replica], verb: str, url: str, *arguments: object) -> list[Any]:
    """Let all do the same at once, each under a name of its own; return what each came to."""

    def work() -> list[Any]:
        named = [[n if word is NAME else word for word in arguments] for n, _ in enumerate(replicas)]
        for replica, words in zip(replicas, named, strict=True):
            replica.write(verb, url, *words)
        for replica in replicas:
            assert replica.line() == "ready"
        for replica in replicas:
            replica.begin()
        return [json.loads(replica.line()) for replica in replicas]

    return await asyncio.to_thread(work)


async def test_no_run_is_claimed_twice(store: Store, url: str, replicas: list[Replica]) -> None:
    ids = {f"r{number}" for number in range(100)}
    for number, run_id in enumerate(sorted(ids)):
        await store.runs.create(new_run(run_id), holder="dead" if number % 2 else None, seconds=-1)

    claimed = await side_by_side(replicas, "claim", url, NAME)

    assert sorted(run_id for part in claimed for run_id in part) == sorted(ids)


async def test_only_one_decision_and_one_result_counts(
    store: Store, url: str, replicas: list[Replica]
) -> None:
    for number in range(30):
        await called(
            store, f"r{number}", call(f"asked-{number}", 0, state="approval"), call(f"sent-{number}", 1)
        )

    answers = await side_by_side(replicas, "decide", url, NAME)

    assert [sum(column) for column in zip(*answers, strict=True)] == [1] * 60


async def test_no_window_holds_more_than_its_limit(store: Store, url: str, replicas: list[Replica]) -> None:
    limit, window = 15, 0.4

    parts = await side_by_side(replicas, "take", url, limit, window, 2.0)

    taken = sorted((begin, end) for part in parts for begin, end in part)
    assert len(taken) > 2 * limit
    for first, _ in taken:
        # All of these were counted for certain between `first` and a window later.
        assert sum(begin >= first and end < first + window for begin, end in taken) <= limit


async def test_no_more_places_are_given_than_there_are(
    store: Store, url: str, replicas: list[Replica]
) -> None:
    given = await side_by_side(replicas, "enter", url, NAME, 33)

    assert sum(given) == 33


async def test_replicas_that_start_at_once_find_one_schema(empty: str, replicas: list[Replica]) -> None:
    assert await side_by_side(replicas, "look", empty) == [True] * REPLICAS

    assert await execute(empty, "SELECT version_num FROM beckon_schema") == [(migrations.HEAD,)]


async def test_a_killed_process_leaves_all_that_it_said_was_stored(url: str) -> None:
    counts: dict[str, int] = {}
    for kill in range(3):
        writer = Replica()
        # The process before may have stored one run more than it could report.
        writer.order("write", url, counts["created"] + 2 if counts else 0)
        writer.begin()
        lines = [writer.line() for _ in range(21 + 9 * kill)]
        for line in lines + writer.kill():
            word, number = line.split()
            counts[word] = int(number)

        await _is_consistent(url, counts)


async def _is_consistent(url: str, counts: dict[str, int]) -> None:
    if url.startswith("sqlite"):
        assert await execute(url, "PRAGMA integrity_check") == [("ok",)]
    assert await execute(url, "SELECT run_id FROM calls GROUP BY run_id HAVING count(*) <> 3") == []
    store = await open_store(url)
    try:
        created = await store.runs.get(f"w{counts['created']}")
        assert created is not None
        assert (await store.runs.load_past(f"w{counts['turn']}")).turns
        finished = await store.journal.find_call(f"e{counts['finished']}-0")
        assert finished is not None
        assert finished[1].result == counts["finished"]
        last = await store.runs.get(f"w{counts['ended']}")
        assert last is not None
        assert (last.status, last.holder) == ("completed", None)
        await begun(store, f"after-{created.id}", previous=created.id)
        assert len(await store.runs.claim_runs("heir", seconds=LONG, most=99)) == 0
    finally:
        await store.aclose()
