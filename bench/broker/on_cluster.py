"""The class Beckon beside Knative's in-memory Broker, in one cluster: two Brokers, one shim, one tool."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.catalog.sync import all_ready, until
from bench.cluster import beckon
from bench.cluster.api import reach
from bench.cluster.beckon import Manifest, listed
from bench.cluster.table import show
from bench.cluster.target import ready_pods, service_address
from bench.cluster.tool_pod import start_tool
from bench.cluster.usage import Pods
from bench.requestreply.measure import Measured, Meter, Rounds
from bench.requestreply.topology import BROKER_PODS, Side, Topology, wait_for_answer
from tests.cluster.kube import Kube

NAMESPACE = "t-bench-broker"
_CLASSES = {"Beckon": "Beckon", "Knative": "MTChannelBasedBroker"}
_CLASS_PODS = ("broker-ingress", "broker-dispatcher", "nats")
_TRIGGERS = "eventing.knative.dev/v1"
_TRIGGERS_OF_CALLS = 3  # of a Broker: the tool's, and the operator's two
_AT_ONCE = 250  # objects that kubectl creates with one command
_COLUMNS = ("Broker", "calls/s", "p50 ms", "p99 ms", "shim + Broker CPU s/1000", "path CPU s/1000", "wrong")
_FIGURES = (("p50", 1), ("p99", 1), ("own_cpu", 2), ("path_cpu", 2))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; levels are (calls at once, calls in all)."""

    rounds: int
    levels: tuple[tuple[int, int], ...]
    triggers: tuple[int, ...]
    """How many Triggers the Broker of the class has, one number after the other."""

    beside: int
    """Up to how many Triggers Knative's Broker is measured beside it: each takes it seconds to make Ready."""


FULL = Plan(5, ((1, 400), (16, 2000), (64, 3000), (256, 4000)), (10, 100, 1000, 5000), 100)
QUICK = Plan(1, ((1, 50), (16, 200)), (10, 20), 10)


async def measure(kube: Kube, plan: Plan) -> int:
    """Set everything up, measure and print; return how many answers were wrong or missing."""
    components = beckon.CALLS | beckon.BROKER_CLASS
    beckon.install(kube, components, {"BECKON_SHIM_OPEN_CALLS": "true"})
    start_tool(kube)
    beckon.wait_until_available(kube, components)
    kube.apply(listed([found for name in _CLASSES for found in _broker(name, beckon.replies_url(kube))]))
    kube.wait("broker", "--all", timeout=180)
    await _wait_until_ready(kube, _TRIGGERS_OF_CALLS * len(_CLASSES))
    topology = _topology(kube)
    for side in topology.sides:
        await asyncio.to_thread(wait_for_answer, side, side.shared)
    meter = Meter(topology)
    paths = {side.name: side.shared for side in topology.sides}
    measured = await meter.compare(plan.levels, plan.rounds, paths)
    for at_once, _ in plan.levels:
        _print_level(f"{at_once} calls at once", [measured[name, at_once] for name in _CLASSES])
    rows = [(name, f"{memory.before:.0f}", f"{memory.most:.0f}") for name, memory in meter.memory.items()]
    show("Memory of shim and Broker, RSS in MB", ("", "before", "most under load"), rows)
    wrong = _count_wrong(measured)
    return wrong + await _measure_triggers(kube, topology, plan)


async def _measure_triggers(kube: Kube, topology: Topology, plan: Plan) -> int:
    """Measure 16 calls at once with more and more Triggers of other types."""
    existing, wrong, rows = dict.fromkeys(_CLASSES, _TRIGGERS_OF_CALLS), 0, []
    level = (16, 500) if plan.rounds > 1 else (16, 200)
    for count in plan.triggers:
        sides = topology.sides if count <= plan.beside else topology.sides[:1]
        began = time.monotonic()
        for side in sides:
            await _create_triggers(kube, side.name, range(existing[side.name], count))
            existing[side.name] = count
        await _wait_until_ready(kube, sum(existing.values()))
        ready = time.monotonic() - began
        meter = Meter(Topology(sides, topology.broker, topology.tool))
        paths = {side.name: side.shared for side in sides}
        measured = await meter.compare((level,), plan.rounds, paths)
        wrong += _count_wrong(measured)
        for side in sides:
            memory = f"{meter.memory[side.name].most:.0f}"
            rows.append((f"{count:,}", side.name, *_figures(measured[side.name, level[0]]), memory))
        sys.stderr.write(f"{count} Triggers: Ready after {ready:.0f} s\n")
    show(
        "With more Triggers of other types on the Broker, 16 calls at once",
        ("Triggers", *_COLUMNS, "shim + Broker RSS MB"),
        rows,
    )
    return wrong


def _print_level(title: str, both: Sequence[Rounds]) -> None:
    rows = [(name, *_figures(rounds)) for name, rounds in zip(_CLASSES, both, strict=True)]
    ours, peer = both
    names = ("calls_per_second", *(name for name, _ in _FIGURES))
    ratios = (f"{ours.median(name) / peer.median(name):.2f}" for name in names)
    show(title, _COLUMNS, [*rows, (" / ".join(_CLASSES), *ratios, "")])


def _figures(rounds: Rounds) -> tuple[str, ...]:
    figures = (f"{rounds.median(name):.{digits}f}" for name, digits in _FIGURES)
    return (f"{rounds.median('calls_per_second'):.0f}", *figures, str(rounds.wrong))


def _count_wrong(measured: Measured) -> int:
    return sum(rounds.wrong for rounds in measured.values())


def _topology(kube: Kube) -> Topology:
    """Return both sides; the pods of each are the shim's and its Broker's."""
    shim = list(ready_pods(kube, "app.kubernetes.io/component=shim").values())
    eventing = kube.within("knative-eventing")
    pods = {
        "Beckon": [
            uid
            for name in _CLASS_PODS
            for uid in ready_pods(kube, f"app.kubernetes.io/component={name}").values()
        ],
        "Knative": [uid for labels in BROKER_PODS for uid in ready_pods(eventing, labels).values()],
    }
    address = service_address(kube, "beckon-shim")
    paths = {name: f"/{kube.namespace}/{name.lower()}" for name in _CLASSES}
    sides = tuple(Side(name, address, paths[name], paths[name], Pods(shim + pods[name])) for name in _CLASSES)
    return Topology(sides, Pods(()), Pods(ready_pods(kube, "app=tool").values()))


def _broker(name: str, replies_url: str) -> list[Manifest]:
    """Return a Broker with the Trigger of the tool; the operator writes those of replies and reports."""
    delivery = {
        "retry": 5,
        "backoffPolicy": "exponential",
        "backoffDelay": "PT0.2S",
        "deadLetterSink": {"uri": f"{replies_url}/dead-letters"},
    }
    broker = {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {
            "name": name.lower(),
            "annotations": {"eventing.knative.dev/broker.class": _CLASSES[name]},
        },
        "spec": {"delivery": delivery},
    }
    tool = {"ref": {"apiVersion": "v1", "kind": "Service", "name": "tool"}}
    return [
        broker,
        _trigger(name, "tool", {"type": "bench.echo"}, tool),
    ]


def _trigger(broker: str, name: str, attributes: dict[str, str], subscriber: Manifest) -> Manifest:
    spec = {"broker": broker.lower(), "filter": {"attributes": attributes}, "subscriber": subscriber}
    metadata = {"name": f"{broker.lower()}-{name}"}
    return {"apiVersion": _TRIGGERS, "kind": "Trigger", "metadata": metadata, "spec": spec}


async def _create_triggers(kube: Kube, broker: str, numbers: range) -> None:
    """Create Triggers of types that are never sent."""
    subscriber = {"uri": "http://tool.invalid/"}
    found = [_trigger(broker, f"other-{n:05}", {"type": f"bench.other.{n}"}, subscriber) for n in numbers]
    for start in range(0, len(found), _AT_ONCE):
        part = listed(found[start : start + _AT_ONCE])
        await asyncio.to_thread(kube.run, "create", "-f", "-", stdin=part, timeout=300)


async def _wait_until_ready(kube: Kube, triggers: int) -> None:
    async with reach(kube) as api:
        path = api.path(_TRIGGERS, "triggers")
        await until(lambda: all_ready(api, path, triggers), f"{triggers} Triggers are Ready")
