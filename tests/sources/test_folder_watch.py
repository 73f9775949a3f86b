"""Following folders: at their changes, and on request."""

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from beckon_sources.folders import Follower
from tests.patience import PATIENCE, until


@dataclass
class Numbers:
    """Something to read: each reading is at the gate, and then returns what was there before it."""

    there: int = 0
    begun: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    taken: list[int] = field(default_factory=list)

    def read(self) -> int | None:
        self.begun += 1
        found = self.there
        assert self.gate.wait(PATIENCE)
        if found < 0:
            raise ValueError("a fault")
        return found or None

    def follower(self, *folders: Path) -> Follower[int]:
        return Follower(folders, self.read, self.taken.append)


async def test_what_was_there_before_the_call_is_in_force_after_it_and_readings_are_shared() -> None:
    numbers = Numbers(there=1)
    follower = numbers.follower()
    first = asyncio.create_task(follower.refresh())
    await until(lambda: numbers.begun == 1)
    numbers.there = 2  # the reading that is in progress does not see it

    others = [asyncio.create_task(follower.refresh()) for _ in range(20)]
    await asyncio.sleep(0)
    numbers.gate.set()
    await asyncio.gather(first, *others)

    assert numbers.taken == [1, 2]
    assert numbers.begun == 2


async def test_nothing_is_taken_where_nothing_has_changed() -> None:
    numbers = Numbers()
    numbers.gate.set()

    await numbers.follower().refresh()

    assert (numbers.begun, numbers.taken) == (1, [])


async def test_a_reading_that_fails_is_logged_and_the_next_one_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    numbers = Numbers(there=-1)
    numbers.gate.set()
    follower = numbers.follower()

    await follower.refresh()
    numbers.there = 3
    await follower.refresh()

    assert numbers.taken == [3]
    assert "the last state stays in force" in caplog.text


async def test_it_goes_on_by_itself(tmp_path: Path) -> None:
    numbers = Numbers()
    numbers.gate.set()
    running = asyncio.create_task(numbers.follower(tmp_path).run())
    try:
        await until(lambda: numbers.begun)
        numbers.there = 4
        await until(lambda: numbers.taken)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert set(numbers.taken) == {4}
