"""Measure the path of one call with either log: `python -m bench.broker`, a table on standard output.

This process is the loader. A call goes through a real shim, a real broker and a tool that answers with an
event; the broker keeps its events in memory, or in a real NATS server. CPU is per call, from /proc. The
contestants take turns in every round, since a shared machine changes while one measures.

With `--cluster` the class Beckon is measured beside Knative's in-memory Broker on the cluster of
`make cluster`, whose node this process must run on, as root: CPU comes from the control groups of the pods.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import uvloop

from bench.broker import on_cluster
from bench.broker.path import CallPath, call_path
from bench.cluster import beckon
from bench.cluster.machine import describe
from bench.cluster.target import NoCluster, find_cluster, namespace
from bench.cluster.usage import NotOnThisNode
from bench.shim import load
from bench.shim.processes import Watched, start
from bench.shim.wire import Pool
from tests.cluster.kube import KubectlFailed
from tests.nats_server import NatsServer

_LEVELS = ((1, 300), (16, 2000), (64, 3000), (256, 4000))
_QUICK = ((1, 50), (16, 200))


async def measure(path: CallPath, at_once: int, calls: int) -> int:
    """Make the calls, and print a row; return how many answers were wrong or missing."""
    pool = Pool("127.0.0.1", path.port, 256)
    await pool.open(min(at_once, 64))
    unit = load.calls(pool, "/default/bench")
    wrong = (await load.closed(unit, 100, min(at_once, 16))).wrong
    before = {name: child.cpu_seconds() for name, child in path.processes.items()}
    begun = time.perf_counter()
    result = await load.closed(unit, calls, at_once)
    seconds = time.perf_counter() - begun
    costs = {
        name: (child.cpu_seconds() - before[name]) / calls * 1e6 for name, child in path.processes.items()
    }
    cells = [f"{name} {cost:.0f} us" for name, cost in costs.items()]
    figures = [f"{calls / seconds:.0f}/s", *(f"p{q} {result.milliseconds(q / 100):.1f} ms" for q in (50, 99))]
    print(f"{path.name:<12}{at_once:>4} at once  " + "  ".join([*figures, *cells]), flush=True)
    pool.close()
    return wrong + result.wrong


async def run(levels: tuple[tuple[int, int], ...], rounds: int) -> int:
    """Start everything, measure, stop everything; return how many answers were wrong or missing."""
    wrong = 0
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nats = NatsServer(folder / "nats").start()
        stack.callback(nats.stop)
        tool = await start("bench.shim.echo", "event")
        stack.push_async_callback(tool.stop)
        port = int(await tool.first_line())
        paths = []
        for name, server in (("memory", None), ("jetstream", nats)):
            manifests = folder / name
            manifests.mkdir()
            paths.append(await stack.enter_async_context(call_path(name, manifests, port, server)))
        for path in paths:
            path.processes["tool"] = tool
        paths[1].processes["nats"] = Watched(nats.pid)
        for _ in range(rounds):
            for at_once, calls in levels:
                for path in paths:
                    wrong += await measure(path, at_once, calls)
    print(f"wrong or missing answers: {wrong}")
    return wrong


def measure_on_cluster(plan: on_cluster.Plan) -> int:
    """Install, measure, and leave nothing behind but the CRDs; return the exit status."""
    try:
        cluster = find_cluster()
        print(describe(cluster))
        beckon.refuse_another_operator(cluster.within(on_cluster.NAMESPACE))
        with namespace(cluster, on_cluster.NAMESPACE) as kube:
            try:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    return 1 if runner.run(on_cluster.measure(kube, plan)) else 0
            finally:
                beckon.uninstall(kube)
    except (beckon.AnotherOperator, NoCluster, NotOnThisNode, KubectlFailed, TimeoutError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.broker", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds: does it work at all")
    parser.add_argument("--cluster", action="store_true", help="the class beside Knative's Broker")
    parser.add_argument("--rounds", type=int, default=0, help="how often everything is measured")
    arguments = parser.parse_args()
    if arguments.cluster:
        plan = on_cluster.QUICK if arguments.quick else on_cluster.FULL
        return measure_on_cluster(replace(plan, rounds=arguments.rounds or plan.rounds))
    levels, rounds = (_QUICK, 1) if arguments.quick else (_LEVELS, arguments.rounds or 3)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return 1 if runner.run(run(levels, rounds)) else 0


if __name__ == "__main__":
    sys.exit(main())
