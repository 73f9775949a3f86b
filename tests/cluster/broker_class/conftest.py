"""The class on a cluster: operator and broker are processes of this machine, with the installed rights.

Pods reach the broker by a Service, whose EndpointSlice names the node.
"""

import asyncio
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.broker.subscribers import Answerer, Subscriber, subscriber
from tests.cluster.broker_class.objects import becomes, broker
from tests.cluster.kube import Kube, until
from tests.cluster.machine.places import NODE_ADDRESS
from tests.cluster.operator.account import Account, free_port, lend, take_back
from tests.cluster.operator.conftest import _alone as stand_aside
from tests.cluster.operator.objects import apply
from tests.cluster.operator.process import operator

INGRESS = "beckon-broker-ingress"

alone = stand_aside


@dataclass(frozen=True)
class ServedClass:
    """The class as it runs: the operator's home, and the URL of the broker on this machine."""

    home: Kube
    url: str

    def post(self, kube: Kube, event_type: str, name: str = "default", event_id: str = "1") -> httpx.Response:
        """Send an event to a Broker of a namespace."""
        headers = {"ce-specversion": "1.0", "ce-id": event_id, "ce-type": event_type, "ce-source": "/test"}
        return self.request(kube, {**headers, "content-type": "application/json"}, b"{}", name)

    def request(
        self, kube: Kube, headers: Mapping[str, str], body: bytes, name: str = "default", method: str = "POST"
    ) -> httpx.Response:
        """Send any request to a Broker of a namespace."""
        url = f"{self.url}/{kube.namespace}/{name}"
        return httpx.request(method, url, headers=dict(headers), content=body, timeout=30)


@pytest.fixture(scope="package")
def served(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedClass]:
    """Run an operator that leads and a broker that is ready."""
    folder: Path = tmp_path_factory.mktemp("class")
    (folder / "broker").mkdir()
    (folder / "operator").mkdir()
    name = f"t-class-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    home = kube.within(name)
    try:
        broker_account = lend(home, folder / "broker", "broker")
        account = lend(home, folder / "operator")
        with _broker(broker_account, folder) as url, operator(account) as running:
            until(running.leads, what="an operator that leads")
            yield ServedClass(home, url)
    finally:
        take_back(home)
        take_back(home, "broker")
        kube.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def ours(served: ServedClass, namespace: Kube) -> Kube:
    """A namespace with a ready Broker `default` of the class."""
    apply(namespace, broker())
    becomes(namespace, "broker", "default", "True")
    return namespace


@pytest.fixture
def subscribers() -> Iterator[Callable[..., Subscriber]]:
    """Start subscribers on this machine that pods and the broker reach; each may get an answerer."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started: list[AbstractAsyncContextManager[Subscriber]] = []

    def start(answer: Answerer | None = None) -> Subscriber:
        started.append(subscriber(answer))
        return asyncio.run_coroutine_threadsafe(started[-1].__aenter__(), loop).result(30)

    try:
        yield start
    finally:
        for one in started:
            asyncio.run_coroutine_threadsafe(one.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@pytest.fixture
def tool(subscribers: Callable[..., Subscriber]) -> Subscriber:
    """A subscriber that accepts every event."""
    return subscribers()


@contextmanager
def _broker(account: Account, folder: Path) -> Iterator[str]:
    """Run the broker with its account, publish it as the ingress, and yield its URL."""
    port = free_port()
    environment = {
        **os.environ,
        "KUBECONFIG": str(account.kubeconfig),
        "BECKON_BROKER_SOURCE": "cluster",
        "BECKON_HOST": NODE_ADDRESS,
        "BECKON_PORT": str(port),
    }
    url, log = f"http://{NODE_ADDRESS}:{port}", folder / "broker.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "beckon_broker"]
        with subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:

            def is_ready() -> bool:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                try:
                    return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
                except httpx.TransportError:
                    return False

            try:
                until(is_ready, within=90, what="a broker that is ready")
                account.home.apply(yaml.safe_dump_all(_published(port)))
                yield url
            finally:
                process.terminate()
                process.wait(30)


def _published(port: int) -> list[dict[str, Any]]:
    """Return the Service of the ingress, with this machine as its only endpoint."""
    spec = {"ports": [{"name": "http", "port": 80, "targetPort": port}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": INGRESS}, "spec": spec}
    labels = {"kubernetes.io/service-name": INGRESS}
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{INGRESS}-1", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }
    return [service, slices]
