"""Measuring: closed loops over both sides in turns, with what each used meanwhile."""

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.requestreply.calls import echoes
from bench.requestreply.topology import Side, Topology
from bench.shim.load import Result, closed
from bench.shim.wire import Pool

_SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Round:
    """One closed loop over one side; CPU in seconds per 1,000 calls."""

    calls_per_second: float
    p50: float
    p99: float
    own_cpu: float
    broker_cpu: float
    tool_cpu: float
    loader_cpu: float
    wrong: int

    @property
    def path_cpu(self) -> float:
        """The whole path without the loader: the side itself, the Broker, the tool."""
        return self.own_cpu + self.broker_cpu + self.tool_cpu


@dataclass(slots=True)
class Rounds:
    """What all rounds of one side and level saw; each figure is the median."""

    rounds: list[Round] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the median of a field or property of `Round`."""
        return float(statistics.median(getattr(one, name) for one in self.rounds))

    @property
    def wrong(self) -> int:
        """How many answers were wrong or missing."""
        return sum(one.wrong for one in self.rounds)


@dataclass(slots=True)
class Memory:
    """Resident memory of one side in megabytes: before any load, and the most during it."""

    before: float
    most: float


Measured = dict[tuple[str, int], Rounds]


class Meter:
    """The sides under load."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.memory: dict[str, Memory] = {}
        for side in topology.sides:
            now = side.pods.rss_megabytes()
            self.memory[side.name] = Memory(now, now)

    async def compare(
        self, levels: Sequence[tuple[int, int]], rounds: int, paths: dict[str, str]
    ) -> Measured:
        """Run every level (calls at once, calls in all) so many times, the sides in turns."""
        measured: Measured = {}
        for number in range(rounds):
            sys.stderr.write(f"round {number + 1} of {rounds}\n")
            for at_once, total in levels:
                # Who goes first changes, for what the machine does meanwhile has no preference.
                order = self._topology.sides if number % 2 == 0 else self._topology.sides[::-1]
                for side in order:
                    one = await self._round(side, paths[side.name], at_once, total)
                    measured.setdefault((side.name, at_once), Rounds()).rounds.append(one)
        return measured

    async def _round(self, side: Side, path: str, at_once: int, total: int) -> Round:
        pool = Pool(side.address, 80, at_once)
        await pool.open(at_once)
        unit = echoes(pool, path)
        await closed(unit, max(2 * at_once, total // 10), at_once)  # opens connections, fills caches
        async with self._watched(side):
            before = self._used(side)
            began = time.perf_counter()
            result = await closed(unit, total, at_once)
            seconds = time.perf_counter() - began
            after = self._used(side)
        pool.close()
        costs = [1000 * (now - then) / total for now, then in zip(after, before, strict=True)]
        return _round_of(result, total / seconds, costs)

    def _used(self, side: Side) -> list[float]:
        pods = (side.pods, self._topology.broker, self._topology.tool)
        return [*(one.cpu_seconds() for one in pods), time.process_time()]

    @asynccontextmanager
    async def _watched(self, side: Side) -> AsyncIterator[None]:
        """Note the memory of a side's pods while they work."""
        watching = asyncio.create_task(self._watch(side))
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, side: Side) -> None:
        memory = self.memory[side.name]
        while True:
            memory.most = max(memory.most, side.pods.rss_megabytes())
            await asyncio.sleep(_SAMPLE_SECONDS)


def _round_of(result: Result, rate: float, costs: Sequence[float]) -> Round:
    return Round(
        calls_per_second=rate,
        p50=result.milliseconds(0.50),
        p99=result.milliseconds(0.99),
        own_cpu=costs[0],
        broker_cpu=costs[1],
        tool_cpu=costs[2],
        loader_cpu=costs[3],
        wrong=result.wrong,
    )
