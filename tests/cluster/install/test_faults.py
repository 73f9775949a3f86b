"""SIGKILL of a pod's process of each part under 20 calls a second, with Brokers of the class Beckon.

The load, the tools, the model and the table are those of `python -m tests.faults`. They run on this machine,
as the database of the runs does, so the cluster must be here as well.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from beckon_tools.manifests import Placement, event_type
from tests.broker.broker_process import trigger
from tests.cluster.chart.cases import BECKON
from tests.cluster.install.releases import SMALL, Helm
from tests.cluster.journey.shared_store import Database, database
from tests.cluster.kube import Kube, until
from tests.cluster.machine.places import NODE_ADDRESS
from tests.cluster.platform import NAMESPACE, first_key
from tests.faults.__main__ import Plan, play
from tests.faults.load import CALLS_OF_RUN, RUNS_PER_SECOND, Client, open_session
from tests.faults.outside import TOOLS, make_tools
from tests.faults.report import Row, rows_of, table
from tests.faults.site import CALL_SECONDS, JETSTREAM, VICTIMS, Outside, Site, running_outside

__all__ = ["database"]

pytestmark = pytest.mark.timeout(900)

Manifest = dict[str, Any]
NOTHING = "nothing"
SECONDS = float(os.environ.get("FAULTS_SECONDS", "8"))  # for each part
COMPONENTS = ("broker-ingress", "broker-dispatcher", "shim", "agent", "nats")


class PodOf:
    """One pod of a component; the kubelet starts again what is killed in it."""

    def __init__(self, kube: Kube, component: str) -> None:
        self._kube = kube
        self._component = component
        self._killed = ("", 0)

    async def kill(self) -> None:
        """End the processes of the first pod's container with SIGKILL; its network stays."""
        await asyncio.to_thread(self._kill)

    async def start(self) -> None:
        """Wait until the pod has started again, and is ready."""
        await asyncio.to_thread(until, self._is_back, within=90, what=f"the return of {self._killed[0]}")

    def _kill(self) -> None:
        pod = self._pods()[0]
        (container,) = pod["status"]["containerStatuses"]
        self._killed = pod["metadata"]["name"], container["restartCount"]
        running = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        found = [pid for pid in running if _is_in(pid, container["containerID"].rpartition("/")[2])]
        assert found, f"no process of {self._killed[0]} runs on this machine"
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    def _pods(self) -> list[Manifest]:
        listed = self._kube.list_objects("pods", f"app.kubernetes.io/component={self._component}")
        assert listed, self._component
        return listed

    def _is_back(self) -> bool:
        name, restarts = self._killed
        (container,) = self._kube.get("pod", name)["status"]["containerStatuses"]
        return bool(container["ready"] and container["restartCount"] > restarts)


def _is_in(pid: int, container: str) -> bool:
    """Return True if a process is one of a container's."""
    with contextlib.suppress(OSError):
        return container in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    return False


@contextlib.contextmanager
def released(helm: Helm, store: Database, outside: Outside) -> Iterator[Site]:
    """Install the chart with the class, this model and this store, and the tools; remove all of it."""
    kube = helm.kube
    home = kube.within(NAMESPACE)
    documents = list(_described(outside))
    kube.run("create", "namespace", NAMESPACE)
    try:
        home.run("create", "secret", "generic", "runs", f"--from-literal=url={store.url}")
        helm.install(
            {
                "brokers": [BECKON],
                "nats": {"embedded": {"size": ""}},
                "model": {"baseURL": f"{outside.model}/v1", "name": "m", "dialect": "native"},
                "store": {"existingSecret": "runs"},
                **SMALL,
                "shim": {"replicas": 2},
            }
        )
        for document in documents:
            kube.apply(json.dumps(document))
        service = home.get("service", "beckon-agent")["spec"]
        site = Site(JETSTREAM, f"http://{service['clusterIP']}")
        site.victims |= {name: PodOf(home, each) for name, each in zip(VICTIMS, COMPONENTS, strict=True)}
        until(lambda: _offers(site.agent, first_key(kube)), within=120, what="both tools at the agent")
        yield site
    finally:
        for document in documents:
            kube.attempt("delete", "--ignore-not-found", "-f", "-", stdin=json.dumps(document))
        helm.remove()


def _described(outside: Outside) -> Iterator[Manifest]:
    for each, url in zip(make_tools(outside.effects), outside.tools, strict=True):
        yield event_type(each, Placement(reference=each.name))
        yield trigger(each.service, url, filter={"attributes": {"type": each.type}})


def _offers(agent: str, key: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"{agent}/tools", headers={"authorization": f"Bearer {key}"}, timeout=30)
        names = {each["name"] for each in answer.json()["tools"] if not each.get("unavailable")}
        return {f"faults_{name}" for name in TOOLS} <= names
    return False


def _replies(kube: Kube, outcome: str) -> float:
    """Return how many replies the replicas of the shim took with this outcome."""
    pods = kube.within(NAMESPACE).list_objects("pods", "app.kubernetes.io/component=shim")
    urls = [f"http://{pod['status']['podIP']}:8083/metrics" for pod in pods]
    lines = [line for url in urls for line in httpx.get(url, timeout=30).text.splitlines()]
    sample = f'beckon_shim_replies_total{{outcome="{outcome}"}} '
    return sum(float(line.removeprefix(sample)) for line in lines if line.startswith(sample))


async def measured(helm: Helm, store: Database, folder: Path) -> list[Row]:
    """Make calls, then kill one part after another; return the rows of the table.

    While nothing is killed, no reply makes a hop from one replica of the shim to another.
    """
    async with running_outside(folder, NODE_ADDRESS) as outside:
        with released(helm, store, outside) as site:
            headers = {"authorization": f"Bearer {first_key(helm.kube)}"}
            async with open_session(headers) as http:
                plan = Plan(SECONDS)
                client = Client(site.agent, http, CALL_SECONDS)
                # A probe of the operator may come while the shim has one pod of two, and make a hop.
                before = _replies(helm.kube, "forwarded")
                await client.load((NOTHING, site.log), SECONDS)
                await client.end()
                answered, forwarded = (_replies(helm.kube, outcome) for outcome in ("answered", "forwarded"))
                await play(site, client, plan)
        assert answered >= round(SECONDS * RUNS_PER_SECOND) * CALLS_OF_RUN
        assert forwarded - before == 0
        return rows_of(client.runs, outside.effects.count())


def test_no_call_is_lost_and_no_effect_happens_twice(helm: Helm, database: Database, tmp_path: Path) -> None:
    rows = asyncio.run(measured(helm, database, tmp_path))

    sys.stdout.write(table(rows))
    assert [row.killed for row in rows] == [NOTHING, *VICTIMS]
    assert [text for row in rows for text in row.broken_promises()] == []
