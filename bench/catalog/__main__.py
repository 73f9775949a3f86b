"""Measure the catalogue: `python -m bench.catalog [--quick] [--tools N]`, tables on standard output.

Needs the cluster of `make cluster` with Knative Eventing and the images of Beckon, and runs
on its node. Beckon is installed into a namespace of its own from `deploy/`, with one real
service behind N EventTypes, each with a Trigger of its own, fifty on a Broker.

First the initial sync: from the start of the operator's pod until every Tool is Ready, and
of the agent's until all are in its catalogue. Then single changes: `kubectl apply` of a new
EventType and Trigger, while a client chats with the agent all the time; the clock stops
when the model is first sent the new declaration. The parts of the path are distinguished by
watches: a Tool waits for its Trigger, and how long that takes is Knative's affair. The same
is measured for a new EventType whose calls an existing Trigger passes.

With `--broker-class Beckon` the Brokers have Beckon's own class: its pods and NATS are installed, too, and
the operator makes Brokers and Triggers Ready, in the time of the first row.

With `--shared` the fifty tools of a Broker share one Trigger, as those of one service would:
Knative itself takes more than half an hour to make 5,000 Triggers ready on two cores.

An agent sends a model 64 tools at most, those that fit the conversation: the chats name the
tool that is new, as people would who ask for it.
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass

import httpx

from bench.catalog import manifests
from bench.catalog.latency import Latency, Series, middle, quantile
from bench.catalog.model import model_server
from bench.catalog.sync import (
    Sync,
    agent_url,
    all_ready,
    missed_changes,
    pods_of,
    sync_agent,
    sync_operator,
    sync_operator_again,
    until,
)
from bench.cluster import beckon
from bench.cluster.api import Api, reach
from bench.cluster.machine import describe
from bench.cluster.table import show
from bench.cluster.target import NoCluster, find_cluster, namespace
from bench.cluster.tool_pod import start_tool
from bench.cluster.usage import NotOnThisNode
from tests.cluster.kube import Kube, KubectlFailed

NAMESPACE = "t-bench-catalog"
_AT_ONCE = 250


@dataclass(frozen=True, slots=True)
class Plan:
    """How many tools there are, and how many changes are measured."""

    tools: int
    changes: int
    shared: bool = False
    broker_class: str = ""

    @property
    def has_own_class(self) -> bool:
        """Whether Beckon is the controller of the Brokers."""
        return self.broker_class == "Beckon"

    @property
    def controller(self) -> str:
        """The controller that makes Triggers Ready."""
        return "operator" if self.has_own_class else "Knative"

    @property
    def triggers_word(self) -> str:
        """The Triggers, as the table's title names them."""
        return "a Trigger for each fifty" if self.shared else "as many Triggers"


async def measure(kube: Kube, plan: Plan) -> None:
    """Set everything up, measure, and print."""
    node = kube.list_objects("nodes")[0]["status"]["addresses"]
    address = next(one["address"] for one in node if one["type"] == "InternalIP")
    async with model_server(address) as (model, model_url), reach(kube) as api:
        components = beckon.CALLS | {"agent"} | (beckon.BROKER_CLASS if plan.has_own_class else set())
        settings = {"OPENAI_BASE_URL": model_url, "BECKON_ANONYMOUS": "true"}
        beckon.install(kube, components, settings, stopped={"operator", "agent"})
        if plan.has_own_class:
            beckon.wait_until_available(kube, beckon.BROKER_CLASS)
        await _fill(kube, api, plan)
        syncs = [await sync_operator(kube, api, plan.tools)]
        beckon.scale(kube, "operator", 0)
        syncs.append(await sync_operator_again(kube, api))
        syncs.append(await sync_agent(kube, api, plan.tools))
        _print_syncs(plan, syncs)
        latency = Latency(kube, model)
        url = agent_url(kube)
        async with latency.under_chats(api, url):
            own = await latency.series(manifests.new_tool, plan.changes)
            await _prepare_trigger(kube, api)
            shared = await latency.series(manifests.new_event_type, plan.changes)
        _print_changes(plan, own, shared)
        rows = [(name, f"{pods_of(kube, name).rss_megabytes():.0f}") for name in ("operator", "agent")]
        show("Memory after all of it, RSS in MB", ("", "MB"), rows)
        print(f"{model.requests} requests to the model, {model.declared} tools in the last; ", end="")
        print(f"{await missed_changes(kube)} changes that the operator's watches did not bring\n")
        await _call(url, manifests.declared_name(manifests.name_of(plan.tools - 1)))


async def _fill(kube: Kube, api: Api, plan: Plan) -> None:
    """Make the service and all the objects, and wait until Knative has made its part of them Ready."""
    start_tool(kube)
    routes = manifests.brokers(
        plan.tools, beckon.replies_url(kube), shared=plan.shared, broker_class=plan.broker_class
    )
    brokers = sum(found["kind"] == "Broker" for found in routes)
    await _create(kube, routes)
    if not plan.has_own_class:
        await until(
            lambda: all_ready(api, api.path("eventing.knative.dev/v1", "brokers"), brokers),
            "all Brokers are Ready",
        )
    made = manifests.event_type if plan.shared else manifests.tool
    tools = [found for number in range(plan.tools) for found in made(number)]
    await _create(kube, tools)
    if plan.has_own_class:
        return
    triggers = sum(found["kind"] == "Trigger" for found in routes + tools)
    await until(
        lambda: all_ready(api, api.path("eventing.knative.dev/v1", "triggers"), triggers),
        "all Triggers are Ready",
    )


async def _create(kube: Kube, found: list[beckon.Manifest]) -> None:
    """Create objects; kubectl keeps to fifty requests a second."""
    for start in range(0, len(found), _AT_ONCE):
        part = beckon.listed(found[start : start + _AT_ONCE])
        await asyncio.to_thread(kube.run, "create", "-f", "-", stdin=part, timeout=300)
        sys.stderr.write(f"{min(start + _AT_ONCE, len(found))} of {len(found)} objects\r")
    sys.stderr.write("\n")


async def _prepare_trigger(kube: Kube, api: Api) -> None:
    kube.apply(beckon.listed([manifests.trigger_for_new()]))
    kube.wait("trigger/for-new-tools")


async def _call(url: str, tool: str) -> None:
    """Prove that the path works: call a tool through shim, Broker and Trigger."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.post(f"/tools/{tool}", json={"city": "Ulm"})
    print(f"a call of {tool} by hand: {answer.status_code} {answer.text[:300]}")


def _print_syncs(plan: Plan, syncs: list[Sync]) -> None:
    columns = ("from `kubectl scale` to", "s", "CPU s", "RSS MB", "API requests", "most in a second")
    rows = [
        (
            sync.what,
            f"{sync.seconds:.1f}",
            f"{sync.cpu_seconds:.1f}",
            f"{sync.rss_megabytes:.0f}",
            sync.requests.words(),
            f"{sync.requests.most_in_a_second:.0f}",
        )
        for sync in syncs
    ]
    show(f"Initial sync, {plan.tools:,} EventTypes and {plan.triggers_word}", columns, rows)


def _print_changes(plan: Plan, own: Series, shared: Series) -> None:
    rows = []
    for title, series in (("EventType and Trigger", own), ("EventType, Trigger there already", shared)):
        spans = {
            "apply begun → in a model request": series.from_start,
            "apply ended → in a model request": series.from_end,
            f"… apply ended → Trigger Ready ({plan.controller})": series.trigger,
            "… → Tool Ready (operator)": series.operator,
            "… → in a model request (agent)": series.agent,
            "delete begun → in no model request": series.gone,
        }
        for name, values in spans.items():
            figures = [middle(values), quantile(values, 0.99), max(values, default=0.0)]
            rows.append((title, name, *(f"{1000 * value:.0f}" for value in figures)))
    title = f"{plan.changes} changes of each kind with {plan.tools:,} EventTypes present, milliseconds"
    show(title, ("applied", "from → to", "p50", "p99", "longest"), rows)


def main() -> int:
    """Read the arguments, measure, and leave nothing behind but the CRDs."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.catalog", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="50 tools, 5 changes: does it work at all")
    parser.add_argument("--tools", type=int, default=1000, help="how many EventTypes are present")
    parser.add_argument("--changes", type=int, default=200, help="how many changes of each kind")
    parser.add_argument("--broker-class", default="", help="the class of the Brokers; else the default")
    parser.add_argument("--shared", action="store_true", help="fifty EventTypes share a Trigger")
    arguments = parser.parse_args()
    tools, changes = (50, 5) if arguments.quick else (arguments.tools, arguments.changes)
    plan = Plan(tools, changes, arguments.shared, arguments.broker_class)
    try:
        cluster = find_cluster()
        print(describe(cluster))
        beckon.refuse_another_operator(cluster.within(NAMESPACE))
        with namespace(cluster, NAMESPACE) as kube:
            try:
                asyncio.run(measure(kube, plan))
            finally:
                beckon.uninstall(kube)
    except (beckon.AnotherOperator, NoCluster, NotOnThisNode, KubectlFailed, TimeoutError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
