"""The operator's part that writes the Triggers for replies, with its judge, over real HTTP.

The API server is the one of `tests/sources`. It has no controllers: a test publishes the statuses of
Knative's.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from beckon_operator.cluster import Cluster
from beckon_operator.conditions.namespace_view import JudgingRules, UnwrittenTriggers
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.k8s_events import EventRecorder
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, EVENT_TYPES, TRIGGERS
from beckon_operator.reply_path.writer import ReplyPath
from beckon_sources.api_types import Collection
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact
from tests.operator.broker_class.class_platform import Mirror, run_tasks, until
from tests.operator.documents import NAMESPACE, PARAMETERS, SHIM, Document, ready
from tests.sources.api_server import ApiServer, api_server

CLASS = "eventing.knative.dev/broker.class"
LEADS_TO_SHIM = {"delivery": {"deadLetterSink": {"uri": f"{SHIM}/dead-letters"}}}
_KINDS = {kind.plural: kind for kind in (EVENT_TYPES, TRIGGERS, BROKERS)}
REPLIES, PROGRESS = "default-beckon-replies", "default-beckon-progress"


@dataclass
class ReplyPlatform:
    """The API server, and what the operator holds in memory."""

    api: ApiServer
    cluster: Cluster
    desired: DesiredState
    leads: bool = True

    async def apply(
        self, plural: str, name: str, spec: Document, status: Document | None = None, **metadata: Any
    ) -> None:
        """Create or change an object of the namespace; its status and its metadata stay.

        Returns when the operator has seen it: the kinds are watched apart, and come in any order.
        """
        known = self.api.objects.get((plural, NAMESPACE, name), {"metadata": {}})
        identity = {**known["metadata"], "namespace": NAMESPACE, "name": name, **metadata}
        found = known.get("status", {}) if status is None else status
        await self.api.put(plural, {"metadata": identity, "spec": spec, "status": found})
        store, version = self.cluster.objects_of(_KINDS[plural]), self.api.version

        def is_seen() -> bool:
            seen = store.find_object(NAMESPACE, name)
            return seen is not None and seen.version >= version

        await self.wait_for(is_seen)

    async def apply_broker(
        self, name: str = "default", spec: Document | None = None, broker_class: str = "", **metadata: Any
    ) -> None:
        """Apply a ready Broker whose dead letters go to the shim."""
        annotations = {CLASS: broker_class} if broker_class else {}
        found = LEADS_TO_SHIM if spec is None else spec
        await self.apply("brokers", name, found, ready(), annotations=annotations, **metadata)

    async def apply_tool(self, broker: str = "default", **annotations: str) -> None:
        """Apply an EventType and the Trigger that routes its calls."""
        noted = {"beckon.dev/parameters": PARAMETERS, **annotations}
        spec = {"type": "get.weather", "description": "The weather."}
        await self.apply("eventtypes", "get.weather", spec, annotations=noted)
        subscriber = {"uri": "http://weather.team.svc"}
        filters = {"attributes": {"type": "get.weather"}}
        await self.apply(
            "triggers", "weather", {"broker": broker, "filter": filters, "subscriber": subscriber}, ready()
        )

    async def publish_ready(self, name: str, status: str = "True") -> None:
        """Write the status of a Trigger, as Knative's controller does."""
        await self.apply("triggers", name, self.trigger(name)["spec"], ready(status))

    def trigger(self, name: str) -> Document:
        """Return a Trigger; raise `KeyError` if there is none."""
        return self.api.objects["triggers", NAMESPACE, name]

    def triggers(self) -> set[str]:
        """Return the names of the Triggers of the namespace."""
        return {name for plural, _, name in self.api.objects if plural == "triggers"}

    def condition(self, name: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of the tool."""
        wanted = self.desired.wanted_tool(NAMESPACE, "get.weather")
        for one in wanted.verdict.conditions if wanted else ():
            if one.type == name:
                return one.status, one.reason, one.message
        return "", "", ""

    async def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        await until(is_so, lambda: f"{self.api.objects} after {self.api.requests[-10:]}")

    async def wait_for_triggers(self, *names: str) -> None:
        """Wait until the namespace has these Triggers and no others."""
        await self.wait_for(lambda: self.triggers() == set(names))

    async def settle(self) -> None:
        """Wait until the operator has considered everything that was applied before.

        A Broker of its own is applied, and its Triggers are the sign.
        """
        name = f"sign-{self.api.version}"
        await self.apply_broker(name)
        await self.wait_for(lambda: f"{name}-beckon-progress" in self.triggers())
        await self.api.delete("brokers", name, NAMESPACE)
        await self.wait_for(lambda: self.cluster.objects_of(BROKERS).find_object(NAMESPACE, name) is None)
        for made in (f"{name}-beckon-replies", f"{name}-beckon-progress"):
            await self.api.delete("triggers", made, NAMESPACE)

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The writes that were tried, by method and path."""
        return [(method, path) for method, path in self.api.requests if method in ("POST", "PATCH", "DELETE")]


@asynccontextmanager
async def reply_platform(server: ApiServer | None = None) -> AsyncIterator[ReplyPlatform]:
    """Run the operator's part beside an API server."""
    async with api_server(server) as api, api.client() as client:
        rules, metrics = JudgingRules(SHIM, unwritten=UnwrittenTriggers()), Metrics()
        desired = DesiredState()
        judge = Judge(desired, rules, metrics)
        assert rules.unwritten is not None
        rules.unwritten.changed = judge.judge_again
        recorder = EventRecorder(client, metrics, "test")
        path = ReplyPath(
            client, judge.cluster, rules, lambda: platform.leads, recorder=recorder, metrics=metrics
        )
        path.timeout_brokers = {(NAMESPACE, "default")}
        platform = ReplyPlatform(api, judge.cluster, desired)
        judge.add_observer(path.set_uses)
        mirrors = (
            Reflector(
                client,
                Collection(kind.api_version, kind.plural),
                Mirror(judge.cluster, kind),
                Contact({}),
                required=False,
            ).run()
            for kind in (EVENT_TYPES, TRIGGERS, BROKERS)
        )
        async with run_tasks(judge.judge_changes(), path.write_queued(), recorder.post_events(), *mirrors):
            yield platform
