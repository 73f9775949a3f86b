"""Measure shim and RequestReply: `python -m bench.requestreply [--quick]`, tables on standard output.

Needs the cluster of `make cluster` with Knative Eventing, and runs on its node: a closed
loop from this process goes to either side's Service, one pod each. Both post to the same
Broker, which calls the same tool; the tool's reply comes back through the Broker. All
rounds are interleaved and every figure is the median of the rounds, because a shared
machine changes while one measures.

CPU comes from the control groups of the pods: `own` is the pod of the shim or of
request-reply alone; `path` adds the Broker's ingress, dispatcher and filter, and the tool.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import uvloop

from bench.cluster.machine import describe
from bench.cluster.table import show
from bench.cluster.target import NoCluster, find_cluster, namespace
from bench.cluster.tool_pod import IMAGE
from bench.cluster.usage import NotOnThisNode
from bench.requestreply.answers import CASES, ask
from bench.requestreply.measure import Measured, Meter
from bench.requestreply.topology import NAMESPACE, Images, Side, Topology, install
from tests.cluster.images.inputs import reference
from tests.cluster.kube import KubectlFailed


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; levels are (calls at once, calls in all)."""

    rounds: int
    shared: tuple[tuple[int, int], ...]
    alone: tuple[tuple[int, int], ...]


FULL = Plan(7, ((1, 400), (16, 2000), (64, 3000), (256, 4000)), ((1, 400), (64, 3000)))
QUICK = Plan(1, ((1, 50), (16, 200)), ((16, 200),))

_COLUMNS = (
    "calls at once",
    "through",
    "calls/s",
    "p50 ms",
    "p99 ms",
    "own CPU s/1000",
    "path CPU s/1000",
    "loader + tool, % of a core",
    "wrong",
)


async def measure(topology: Topology, plan: Plan) -> int:
    """Measure everything and print it; return how many answers were wrong or missing."""
    meter = Meter(topology)
    shared = await meter.compare(
        plan.shared, plan.rounds, {side.name: side.shared for side in topology.sides}
    )
    _print_levels("One Broker for both", topology.sides, plan.shared, shared)
    alone = await meter.compare(plan.alone, plan.rounds, {side.name: side.alone for side in topology.sides})
    _print_levels("A Broker for each", topology.sides, plan.alone, alone)
    rows = [(name, f"{memory.before:.0f}", f"{memory.most:.0f}") for name, memory in meter.memory.items()]
    show("Memory, RSS in MB", ("", "before", "most under load"), rows)
    await _print_answers(topology.sides)
    return sum(rounds.wrong for measured in (shared, alone) for rounds in measured.values())


def _print_levels(
    title: str, sides: tuple[Side, ...], levels: Sequence[tuple[int, int]], measured: Measured
) -> None:
    rows = []
    for at_once, _ in levels:
        for side in sides:
            rounds = measured[side.name, at_once]
            rate = rounds.median("calls_per_second")
            share = (rounds.median("loader_cpu") + rounds.median("tool_cpu")) * rate / 10
            figures = [f"{rounds.median(name):.1f}" for name in ("p50", "p99")]
            figures += [f"{rounds.median(name):.2f}" for name in ("own_cpu", "path_cpu")]
            rows.append((str(at_once), side.name, f"{rate:.0f}", *figures, f"{share:.0f}", str(rounds.wrong)))
        rows.append(_ratios(str(at_once), sides, measured))
    show(title, _COLUMNS, rows)


def _ratios(at_once: str, sides: tuple[Side, ...], measured: Measured) -> tuple[str, ...]:
    """Return the row shim / RequestReply."""
    shim, peer = (measured[side.name, int(at_once)] for side in sides)
    names = ("calls_per_second", "p50", "p99", "own_cpu", "path_cpu")
    return (
        at_once,
        "shim / RequestReply",
        *(f"{shim.median(n) / peer.median(n):.2f}" for n in names),
        "",
        "",
    )


async def _print_answers(sides: tuple[Side, ...]) -> None:
    pairs = [(case, side) for case in CASES for side in sides]
    answers = iter(await asyncio.gather(*(ask(side, case) for case, side in pairs)))
    rows = [(case.title, *(next(answers) for _ in sides)) for case in CASES]
    show("What the caller gets", ("", *(side.name for side in sides)), rows)


def main() -> int:
    """Read the arguments, set up, measure, and leave nothing behind."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.requestreply", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a minute or two: does it work at all")
    parser.add_argument("--rounds", type=int, default=FULL.rounds, help="how often everything is measured")
    parser.add_argument("--shim-image", default=reference("shim"))
    parser.add_argument("--tool-image", default=IMAGE, help="has Python and uvicorn")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else replace(FULL, rounds=arguments.rounds)
    images = Images(arguments.shim_image, arguments.tool_image)
    try:
        cluster = find_cluster()
        print(describe(cluster))
        with namespace(cluster, NAMESPACE) as kube:
            topology = install(kube, images)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                wrong = runner.run(measure(topology, plan))
    except (NoCluster, NotOnThisNode, KubectlFailed, TimeoutError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
