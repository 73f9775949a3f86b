"""Measure the agent beside others: `python -m bench.agent [--traces | --faces] [--quick]`; prints tables.

Each agent gets the same questions, over HTTP, in one run: Beckon's agent (broker, shim and agent as they run
on a laptop, with their defaults), Pydantic AI, the OpenAI Agents SDK, LangChain's agent, and a loop of httpx
alone. All have the same fake model and the same tool; a peer calls the tool over HTTP itself, Beckon sends it
an event through shim and Broker. Each peer is a bare ASGI application on uvicorn around the library, in an
environment without Beckon; Beckon is what is deployed.

A run has two turns: the model asks for the tool, gets its result, and answers in 32 words. Every answer is
checked, the tool's number in it included. CPU is that of the agent's process, user and system, from /proc;
`path` adds the tool and, with Beckon, shim and broker. Rounds are interleaved and the figures are medians.
Chat completions are not stored; a second row is the Responses face, which stores every step in a SQLite file.
Traces are off, as by default. In place of all this, `--traces` measures what they cost, and `--faces` what a
run costs at each protocol.
"""

import argparse
import asyncio
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import uvloop

from bench.agent import faces, measure
from bench.agent.contestants import Contestant, Field, open_field
from bench.agent.environments import BARE, ENVIRONMENT, Peer, peers
from bench.agent.measure import Amount
from bench.agent.traces import compare, traced
from bench.cluster.table import show
from bench.peer_environment import NoEnvironment
from bench.shim.processes import raise_file_limit

# The most that Beckon may cost, as multiples of the bare loop in the same run: a slower machine slows both.
_CPU, _IDLE_MEMORY, _FIRST_WORD = 2.25, 2.5, 2.5

_ONCE = "starting all once, to be stopped again: a first start compiles, and keeps the memory of that"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; `every` are the milliseconds between two chunks of a stream."""

    rounds: int
    alone: int
    at_once: int
    batch: int
    first_words: int
    streams: int
    words: int
    every: int
    idle_seconds: float
    judged: bool
    traced: Amount
    faces: Amount


FULL = Plan(
    rounds=5,
    alone=50,
    at_once=16,
    batch=96,
    first_words=50,
    streams=500,
    words=60,
    every=50,
    idle_seconds=5,
    judged=True,
    traced=Amount(rounds=12, runs=256, at_once=16),
    faces=Amount(rounds=9, runs=160, at_once=16),
)
QUICK = Plan(
    rounds=1,
    alone=10,
    at_once=4,
    batch=20,
    first_words=10,
    streams=20,
    words=10,
    every=20,
    idle_seconds=0.5,
    judged=False,
    traced=Amount(rounds=1, runs=40, at_once=4),
    faces=Amount(rounds=1, runs=20, at_once=4),
)


class Bench:
    """The agents under measurement, and what was found; `missed` are the aims that were not reached."""

    def __init__(self, field: Field, contestants: Sequence[Contestant], plan: Plan) -> None:
        self._field = field
        self._all = contestants
        self._plan = plan
        self._beckon = contestants[0]
        self._bare = next(one.name for one in contestants if one.name == BARE.title)
        self._idle: dict[str, float] = {}
        self.wrong = 0
        self.missed: list[str] = []

    async def idle(self) -> None:
        """Read the memory before the first question."""
        await asyncio.sleep(self._plan.idle_seconds)
        self._idle = {one.name: one.own.rss_megabytes() for one in self._all}

    async def cost(self) -> None:
        """Measure the CPU of a run of two turns: one at a time, several at once, and streamed."""
        plan = self._plan
        for one in self._all:
            _note(f"warming up: {one.name}")
            await measure.runs(one, 2 * plan.at_once, plan.at_once, measure.Runs())
            await measure.runs(one, 2 * plan.at_once, plan.at_once, measure.Runs(), stream=True)
        found = {one.name: (measure.Runs(), measure.Runs(), measure.Runs()) for one in self._all}
        for number in range(plan.rounds):
            for one in self._all:
                _note(f"runs, round {number + 1} of {plan.rounds}: {one.name}")
                alone, batch, streamed = found[one.name]
                await measure.runs(one, plan.alone, 1, alone)
                await measure.runs(one, plan.batch, plan.at_once, batch)
                await measure.runs(one, plan.batch, plan.at_once, streamed, stream=True)
        rows = [_cost_row(name, *kinds) for name, kinds in found.items()]
        self.wrong += sum(runs.wrong for kinds in found.values() for runs in kinds)
        at_once = f"{plan.at_once} at once"
        columns = [
            "one run alone: own",
            "path",
            "p50 ms",
            f"{at_once}: own",
            "path",
            "streamed: own",
            "wrong",
        ]
        show("CPU of a run of two turns with one tool call, in milliseconds", ["agent", *columns], rows)
        pairs = zip(found[self._beckon.name], found[self._bare], strict=True)
        for what, (ours, bare) in zip(("alone", at_once, "streamed"), pairs, strict=True):
            self._judge(f"CPU of a run, {what}, to the bare loop's", ours.median.own / bare.median.own, _CPU)

    async def first_word(self) -> None:
        """Measure what an agent adds to the time to the first word."""
        model: list[float] = []
        found: dict[str, list[float]] = {one.name: [] for one in self._all}
        for number in range(self._plan.rounds):
            model += await measure.direct(self._field, self._plan.first_words)
            for one in self._all:
                _note(f"first words, round {number + 1} of {self._plan.rounds}: {one.name}")
                found[one.name] += await measure.first_words(one.port, one.wire, self._plan.first_words)
        p50, p99 = (measure.quantile(model, part) for part in (0.5, 0.99))
        rows = [["the model itself", f"{p50:.2f}", f"{p99:.2f}", "", ""]]
        for name, times in found.items():
            own = [measure.quantile(times, part) for part in (0.5, 0.99)]
            added = [own[0] - p50, own[1] - p99]
            rows.append([name, *(f"{value:.2f}" for value in own + added)])
        columns = ["p50", "p99", "added, p50", "added, p99"]
        show(
            "Milliseconds to the first word of a streamed answer, one at a time", ["through", *columns], rows
        )
        more = {
            name: statistics.median(found[name]) - statistics.median(model)
            for name in (self._beckon.name, self._bare)
        }
        ratio = more[self._beckon.name] / more[self._bare]
        self._judge("added to the first word at p50, to the bare loop's", ratio, _FIRST_WORD)

    async def streams(self) -> None:
        """Let many streams be open at once, with the agent on one core."""
        plan, rows = self._plan, []
        for one in self._all:
            _note(f"{plan.streams} streams: {one.name}")
            found = await measure.streams(one, self._field, plan.streams, plan.words, plan.every)
            lost = found.sent - found.arrived
            self.wrong += plan.streams - found.whole
            rows.append(
                [
                    one.name,
                    str(found.open_at_once),
                    f"{found.sent:,}",
                    f"{lost:,}",
                    str(found.whole),
                    f"{found.seconds:.1f}",
                    f"{1e6 * found.cpu_seconds / max(found.arrived, 1):.0f}",
                    f"{self._idle[one.name]:.0f}",
                    f"{found.rss:.0f}",
                ]
            )
            if one is self._beckon:
                self._judge(f"chunks lost of {plan.streams} streams", lost, 0)
        title = (
            f"{plan.streams} streams at once on one core: {plan.words} chunks each, one every "
            f"{plan.every} ms, so {plan.words * plan.every / 1000:g} s"
        )
        columns = [
            "open at once",
            "chunks",
            "lost",
            "whole answers",
            "s",
            "CPU µs/chunk",
            "MB idle",
            "MB under load",
        ]
        show(title, ["agent", *columns], rows)
        ratio = self._idle[self._beckon.name] / self._idle[self._bare]
        self._judge("idle memory, to the bare loop's", ratio, _IDLE_MEMORY)

    def _judge(self, what: str, found: float, aim: float) -> None:
        if not self._plan.judged:  # so few runs are no more than some ticks of the kernel's clock
            return
        met = found <= aim
        print(f"{what}: {found:.2f}, the aim is at most {aim:g}: {'met' if met else 'MISSED'}", flush=True)
        if not met:
            self.missed.append(what)


async def run(plan: Plan, with_libraries: Sequence[Peer]) -> int:
    """Start everything, measure, stop everything; return 0 where all aims were met."""
    _note(_ONCE)
    async with open_field() as field:
        await _contestants(field, with_libraries)
    async with open_field() as field:
        _note("starting all")
        bench = Bench(field, await _contestants(field, with_libraries), plan)
        await bench.idle()
        await bench.cost()
        await bench.first_word()
        await bench.streams()
    missed = f"aims missed: {'; '.join(bench.missed) or 'none'}" if plan.judged else "not judged"
    print(f"\nwrong answers: {bench.wrong}; {missed}")
    return 1 if bench.wrong or (plan.judged and bench.missed) else 0


async def _contestants(field: Field, with_libraries: Sequence[Peer]) -> list[Contestant]:
    """Start all agents; Beckon is the first."""
    starting = [asyncio.create_task(field.peer(peer)) for peer in (BARE, *with_libraries)]
    return [*await field.beckon(), *[await one for one in starting]]


async def run_traces(plan: Plan) -> int:
    """Measure what traces cost; return 0 where every answer was right."""
    _note(_ONCE)
    async with open_field() as field:
        await traced(field)
    async with open_field() as field:
        wrong = await compare(await traced(field), plan.traced)
    return 1 if wrong else 0


async def run_faces(plan: Plan) -> int:
    """Measure a run at each protocol; return 0 where every answer was right."""
    async with open_field() as field:
        wrong = await faces.compare(field, plan.faces)
    return 1 if wrong else 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.agent", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="less than a minute, not judged, and the peers only if their environment is there already",
    )
    others = parser.add_mutually_exclusive_group()
    others.add_argument(
        "--traces", action="store_true", help="what traces cost: off, on and sampled out, and no peers"
    )
    others.add_argument(
        "--faces", action="store_true", help="what a run costs at each protocol, and no peers"
    )
    given = parser.parse_args()
    plan = QUICK if given.quick else FULL
    raise_file_limit()
    try:
        present = [] if given.traces or given.faces else _present(install=plan.judged)
    except NoEnvironment as error:
        sys.stderr.write(f"the environment of the peers cannot be made: {error}\n")
        return 2
    print(f"{platform.python_implementation()} {platform.python_version()}; Linux {platform.release()}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if given.faces:
            return runner.run(run_faces(plan))
        return runner.run(run_traces(plan) if given.traces else run(plan, present))


def _present(*, install: bool) -> list[Peer]:
    """Return the peers that can be measured; make what they need, or say which are left out."""
    known = peers()
    if install and not ENVIRONMENT.is_made():
        _note("making the environment of the peers")
        ENVIRONMENT.make()
    if ENVIRONMENT.is_made():
        return known
    titles = ", ".join(peer.title for peer in known)
    print(f"Left out, as their environment is not made: {titles}. Without --quick it is.")
    return []


def _cost_row(name: str, alone: measure.Runs, batch: measure.Runs, streamed: measure.Runs) -> list[str]:
    one, several, pieces = alone.median, batch.median, streamed.median
    figures = (one.own, one.path, one.p50, several.own, several.path, pieces.own)
    wrong = alone.wrong + batch.wrong + streamed.wrong
    return [name, *(f"{figure:.1f}" for figure in figures), str(wrong)]


def _note(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


if __name__ == "__main__":
    sys.exit(main())
