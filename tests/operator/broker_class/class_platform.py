"""The class as a whole: the operator's part and pods of the broker, over real HTTP.

The API server is the one of `tests/sources`; operator and pods follow it by their own watches. A pod is the
broker's source with its route, on a port of its own, and named in an EndpointSlice.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from beckon_broker.cluster import ClusterSource
from beckon_broker.topology import Topology
from beckon_contract.knative.broker_class import IN_FORCE_PATH, LogReport
from beckon_operator.broker_class.assembly import BrokerClass
from beckon_operator.cluster import Cluster
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.k8s_events import EventRecorder
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, EVENT_TYPES, TOOLS, TRIGGERS, Kind
from beckon_operator.settings import Settings
from beckon_operator.writer import Writer
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection, Document
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact
from tests import patience
from tests.operator.documents import RULES
from tests.sources.api_server import ApiServer, api_server

NAMESPACE, HOME = "team", "beckon"
INGRESS, DISPATCHER = "beckon-broker-ingress", "beckon-broker-dispatcher"
KINDS = {
    "v1": {"services": "Service", "configmaps": "ConfigMap"},
    "serving.knative.dev/v1": {"services": "Service", "services/status": "Service"},
    "eventing.knative.dev/v1": {"brokers": "Broker", "triggers": "Trigger"},
    "eventing.knative.dev/v1alpha1": {"eventpolicies": "EventPolicy"},
    "sources.knative.dev/v1": {"pingsources": "PingSource"},
}
NATS = LogReport("nats.beckon.svc:4222", "", "file", 1)


class Mirror:
    """Puts the objects of one kind into the operator's cluster, as kopf does."""

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._kind = kind

    def put(self, document: Document) -> None:
        whole = {**document, "apiVersion": self._kind.api_version, "kind": self._kind.name}
        self._cluster.observe_object(self._kind, whole)

    def drop(self, namespace: str, name: str) -> None:
        known = self._cluster.store_of(self._kind).find_object(namespace, name)
        assert known is not None
        metadata = {"namespace": namespace, "name": name, "uid": known.uid}
        self._cluster.observe_deletion(self._kind, metadata)


@dataclass
class BrokerPod:
    """A pod of the broker: what it routes by, its log, and the requests that it got."""

    topology: Topology = field(default_factory=Topology)
    log: LogReport = NATS
    requests: int = 0
    service: str = INGRESS
    url: str = ""

    def subscribers(self) -> list[str]:
        """Return the addresses that it routes to."""
        return sorted(one.subscriber for one in self.topology.subscriptions())

    def set_topology(self, topology: Topology) -> None:
        self.topology = topology


@dataclass
class ClassPlatform:
    """The API server with an operator that leads, and the pods."""

    api: ApiServer
    stack: AsyncExitStack
    leads: bool = True
    pods: dict[str, BrokerPod] = field(default_factory=dict)

    async def start_pod(self, name: str, *, follows: bool = True, service: str = INGRESS) -> BrokerPod:
        """Start a pod, and name it among the endpoints; without `follows` it never reads the cluster."""
        pod = BrokerPod(service=service)
        client = await self.stack.enter_async_context(self.api.client())
        await self.stack.enter_async_context(_serve_pod(client, pod, follows=follows))
        self.pods[name] = pod
        await self.publish_pods()
        return pod

    async def stop_pod(self, name: str) -> None:
        """Take a pod from the endpoints."""
        del self.pods[name]
        await self.publish_pods()

    async def publish_pods(self) -> None:
        """Write the EndpointSlices of the pods, one for each."""
        for _, _, name in [key for key in self.api.objects if key[0] == "endpointslices"]:
            await self.api.delete("endpointslices", name, HOME)
        for name, pod in self.pods.items():
            host, port = pod.url.removeprefix("http://").split(":")
            endpoint = {"addresses": [host], "conditions": {"ready": True}, "targetRef": {"name": name}}
            metadata = {
                "name": name,
                "namespace": HOME,
                "labels": {"kubernetes.io/service-name": pod.service},
            }
            slices = {
                "metadata": metadata,
                "endpoints": [endpoint],
                "ports": [{"name": "http", "port": int(port)}],
            }
            await self.api.put("endpointslices", slices)

    async def apply(self, plural: str, name: str, spec: Document, **metadata: Any) -> None:
        """Create or change an object of the namespace; its status stays."""
        known = self.api.objects.get((plural, NAMESPACE, name), {})
        document = {"metadata": {"namespace": NAMESPACE, "name": name, **metadata}, "spec": spec}
        await self.api.put(plural, {**document, "status": known.get("status", {})})

    async def publish(self, plural: str, name: str, status: Document) -> None:
        """Write a status, as the controller of that kind does."""
        known = self.api.objects.get((plural, NAMESPACE, name), {})
        metadata = {"namespace": NAMESPACE, "name": name, **known.get("metadata", {})}
        await self.api.put(plural, {"metadata": metadata, "spec": known.get("spec", {}), "status": status})

    def status(self, plural: str, name: str) -> dict[str, Any]:
        """Return the status of an object."""
        found: dict[str, Any] = self.api.objects[plural, NAMESPACE, name].get("status", {})
        return found

    def condition(self, plural: str, name: str, condition: str = "Ready") -> tuple[str, str, str]:
        """Return status, reason and message of a condition, empty without it."""
        for found in self.status(plural, name).get("conditions", ()):
            if found["type"] == condition:
                return found["status"], found.get("reason", ""), found.get("message", "")
        return "", "", ""

    async def wait_for(
        self, plural: str, name: str, status: str, condition: str = "Ready"
    ) -> tuple[str, str]:
        """Wait for the status of a condition; return reason and message."""

        def has_status() -> bool:
            return self.condition(plural, name, condition)[0] == status

        await until(has_status, lambda: f"{condition} of {name}: {self.status(plural, name)}")
        return self.condition(plural, name, condition)[1:]

    async def wait_for_words(self, plural: str, name: str, words: tuple[str, str, str]) -> None:
        """Wait for status, reason and message of Ready."""
        await until(
            lambda: self.condition(plural, name) == words, lambda: f"{name}: {self.status(plural, name)}"
        )


@asynccontextmanager
async def class_platform(*, pods: int = 1) -> AsyncIterator[ClassPlatform]:
    """Run the class with so many pods of the ingress."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(api_server(ApiServer(kinds=dict(KINDS))))
        platform = ClassPlatform(api, stack)
        await stack.enter_async_context(_serve_operator(platform))
        for number in range(pods):
            await platform.start_pod(f"ingress-{number}")
        yield platform


async def until(is_so: Callable[[], bool], describe: Callable[[], str]) -> None:
    """Look until something is so, and fail with a description."""
    try:
        await patience.until(is_so)
    except TimeoutError:
        raise AssertionError(describe()) from None


@asynccontextmanager
async def _serve_operator(platform: ClassPlatform) -> AsyncIterator[None]:
    client = await platform.stack.enter_async_context(platform.api.client())
    metrics, desired = Metrics(), DesiredState()
    judge = Judge(desired, RULES, metrics)
    cluster = judge.cluster
    writer = Writer(
        client, cluster, desired, lambda: platform.leads, EventRecorder(client, metrics, "operator-0")
    )
    settings = Settings.model_validate({"BECKON_POD_NAMESPACE": HOME, "BECKON_NATS_SECRET": "nats"})
    served = BrokerClass(settings, client, cluster, lambda: platform.leads, metrics)
    contact = Contact({})
    async with run_tasks(
        served.serve_class(),
        judge.judge_changes(),
        writer.write_queued(16, metrics),
        *(
            Reflector(client, Collection(kind.api_version, kind.plural), Mirror(cluster, kind), contact).run()
            for kind in (BROKERS, TRIGGERS, EVENT_TYPES, TOOLS)
        ),
    ):
        yield


@asynccontextmanager
async def _serve_pod(client: ApiClient, pod: BrokerPod, *, follows: bool) -> AsyncIterator[None]:
    source = ClusterSource(client, (), pod.set_topology, lambda: pod.log)

    async def answer(request: web.Request) -> web.Response:
        pod.requests += 1
        return web.json_response(await source.answer_in_force(await request.read()))

    app = web.Application()
    app.router.add_post(IN_FORCE_PATH, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pod.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with run_tasks(*((source.run(),) if follows else ())):
            yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def run_tasks(*running: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in running]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for found in results:
            assert found is None or isinstance(found, asyncio.CancelledError), found
