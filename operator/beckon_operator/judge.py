"""Judges every changed namespace, and determines the content of each Tool."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from beckon_contract.catalogue.builder import Memory, Router, by_key
from beckon_contract.knative.routes import BrokenTrigger, Listener, read_trigger, route_table
from beckon_contract.kubernetes_objects import Resource
from beckon_operator.cluster import Cluster, Touched
from beckon_operator.conditions.last_ready import LastReady
from beckon_operator.conditions.namespace_view import JudgingRules, NamespaceView, view_broker
from beckon_operator.conditions.verdicts import NamespaceJudge, Verdict
from beckon_operator.desired_state import DesiredState
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, EVENT_TYPES, SERVICES, TRIGGERS, Kind
from beckon_operator.tools import ToolWanted, wanted_tool

logger = logging.getLogger(__name__)

_GATHER_SECONDS = 0.02  # seconds; what is applied together is judged together
_REST = 2.0  # times as long as judging took: at most a third of the time is spent on it
_LONGEST_REST = 1.0


def read_controlled(resource: Resource) -> Listener | BrokenTrigger:
    """Read a Trigger judged by Knative's controller: it must be Ready."""
    return read_trigger(resource, controlled=True)


@dataclass(slots=True)
class _Namespace:
    judge: NamespaceJudge = field(default_factory=NamespaceJudge)
    triggers: Memory[Listener | BrokenTrigger] = field(default_factory=lambda: Memory(read_controlled))
    last_ready: LastReady = field(default_factory=LastReady)
    # The results of the last probes by Broker.
    replies_arrive: dict[str, bool] = field(default_factory=dict)
    view: NamespaceView | None = None
    # The types whose Triggers have changed since `view` was made, `None` for everything.
    touched: Touched = None
    wanted: dict[str, ToolWanted] = field(default_factory=dict)
    # The types of what is not reached: Triggers of other namespaces are part of the explanation.
    unrouted: frozenset[str] = frozenset()


class Judge:
    """Updates the desired state of wanted Tools after changes in the cluster."""

    def __init__(
        self,
        desired: DesiredState,
        rules: JudgingRules,
        metrics: Metrics,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = Cluster(desired, self._mark_changed)
        self._observers: list[Callable[[str, Iterable[Verdict]], None]] = []
        self._desired = desired
        self._rules = rules
        self._metrics = metrics
        self._now = now
        self._namespaces: dict[str, _Namespace] = {}
        self._waiting: set[str] = set()
        # When the next Trigger of a namespace will have been Ready for long enough to count.
        self._due: dict[str, float] = {}
        self._news = asyncio.Event()

    def add_observer(self, observe: Callable[[str, Iterable[Verdict]], None]) -> None:
        """Call a function with each judged namespace and the verdicts on all of its tools."""
        self._observers.append(observe)

    def judge_again(self, namespace: str) -> None:
        """Judge everything in a namespace again."""
        self._mark_changed(namespace, None, frozenset())

    async def judge_changes(self) -> None:
        """Judge every changed namespace, until cancelled."""
        while True:
            await self._wait_for_news()
            await asyncio.sleep(_GATHER_SECONDS)
            started = time.monotonic()
            self.judge_all()
            spent = time.monotonic() - started
            await asyncio.sleep(min(_REST * spent, _LONGEST_REST))

    async def _wait_for_news(self) -> None:
        """Wait for a change, or for the time at which a Trigger has been Ready for long enough."""
        due = min(self._due.values(), default=None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else due - self._now()):
                await self._news.wait()

    def judge_all(self) -> None:
        """Judge all waiting namespaces; a failure in one does not stop the others."""
        self._news.clear()
        for namespace in [name for name, due in self._due.items() if due <= self._now()]:
            del self._due[namespace]
            self._wait_for(namespace, None)
        namespaces, self._waiting = sorted(self._waiting), set()
        self._metrics.waiting.set(0)
        for namespace in namespaces:
            with self._metrics.judging.time():
                try:
                    self._judge_namespace(namespace)
                except Exception:
                    logger.exception(
                        "namespace %s could not be judged; its Tools stay as they are", namespace
                    )
                    self._metrics.failures.labels("judge").inc()

    def set_replies_arrive(self, broker: tuple[str, str], arrive: bool) -> None:
        """Take the result of a probe of a Broker, given by its namespace and name."""
        namespace, name = broker
        known = self._namespaces.get(namespace)
        if known is not None and known.replies_arrive.get(name) is not arrive:
            known.replies_arrive[name] = arrive
            self._mark_changed(namespace, None, frozenset())

    def _mark_changed(self, namespace: str, touched: Touched, requested: frozenset[str]) -> None:
        self._wait_for(namespace, touched)
        for other, known in self._namespaces.items() if requested else ():
            if other != namespace and known.unrouted & requested:
                self._wait_for(other, requested)
        self._metrics.waiting.set(len(self._waiting))
        self._news.set()

    def _wait_for(self, namespace: str, touched: Touched) -> None:
        self._waiting.add(namespace)
        known = self._namespaces.get(namespace)
        if known is not None and known.touched is not None:
            known.touched = None if touched is None else known.touched | touched

    def _judge_namespace(self, namespace: str) -> None:
        if namespace not in self._namespaces:
            self._namespaces[namespace] = self._begin_namespace(namespace)
        known = self._namespaces[namespace]
        view, touched = known.view, known.touched
        if view is None or touched is None or touched:
            view = self._make_view(namespace, known)
        known.view, known.touched = view, frozenset()
        event_types = self.cluster.objects_of(EVENT_TYPES).objects_within(namespace).values()
        present = [one for one in event_types if not one.leaving]
        verdicts = known.judge.judge_event_types(present, view, touched)
        before, known.wanted = known.wanted, {}
        for name, verdict in verdicts.items():
            old = before.get(name)
            known.wanted[name] = old if old and old.verdict is verdict else wanted_tool(verdict)
        known.unrouted = frozenset(
            str(verdict.spec.get("type"))
            for verdict in verdicts.values()
            if verdict.conditions[1].status == "False"
        )
        if not known.wanted:
            del self._namespaces[namespace]
            self._due.pop(namespace, None)
        self._desired.set_wanted(namespace, known.wanted, known.judge.undescribed)
        for observe in self._observers:
            observe(namespace, [one.verdict for one in known.wanted.values()])

    def _begin_namespace(self, namespace: str) -> _Namespace:
        known = _Namespace()
        for tool in self._desired.tools.objects_within(namespace).values():
            known.last_ready.restore_versions(tool.last_ready)
            if tool.probed is not None:
                known.replies_arrive.setdefault(*tool.probed)
        return known

    def _make_view(self, namespace: str, known: _Namespace) -> NamespaceView:
        triggers = by_key(self._resources_of(TRIGGERS, namespace))
        brokers = self._resources_of(BROKERS, namespace)
        due = known.last_ready.observe_objects(brokers, triggers.values(), self._now())
        if due is not None:
            self._due[namespace] = due
        read = (
            known.last_ready.judge_listener(one) if isinstance(one, Listener) else one
            for one in known.triggers.read(triggers)
        )
        return NamespaceView(
            namespace,
            Router(route_table(read), elsewhere=self.cluster.listeners_for),
            (
                view_broker(
                    one, known.last_ready.broker_version(one.name), known.replies_arrive.get(one.name)
                )
                for one in brokers
            ),
            self._resources_of(SERVICES, namespace),
            self._rules,
            last_ready=known.last_ready,
        )

    def _resources_of(self, kind: Kind, namespace: str) -> list[Resource]:
        observed = self.cluster.objects_of(kind).objects_within(namespace).values()
        return [one.resource for one in observed if not one.leaving]
