"""Writes the Triggers for replies and reports of each Broker that carries calls, and its time limit.

A Broker is considered after each change of itself, of one of its Triggers to the shim, and of the tools that
are called through it. A failed write is an Event of the Broker, and the reason in the condition Answerable of
its tools.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from beckon_contract.knative.reply_triggers import is_managed
from beckon_contract.knative.triggers import broker_of
from beckon_operator.cluster import Cluster
from beckon_operator.conditions.namespace_view import JudgingRules, UnwrittenTriggers
from beckon_operator.conditions.verdicts import Verdict
from beckon_operator.k8s_events import EventNote, EventRecorder
from beckon_operator.keyed_queue import STALE, KeyedQueue
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, TRIGGERS, BrokerKey, Kind, ObservedObject
from beckon_operator.reply_path.wanted import (
    BrokerUse,
    Change,
    Problem,
    leads_to_shim,
    plan_timeout,
    plan_triggers,
)
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, Refused, object_path

logger = logging.getLogger(__name__)

_AT_ONCE = 4  # Brokers
# Between two patches of one Trigger, so that two programs that disagree do not write without a pause.
_PATCH_SECONDS = 2.0
NOT_WRITTEN = "ReplyTriggerNotWritten"
NO_TIMEOUT = "DeliveryTimeoutNotWritten"


def uses_of(verdicts: Iterable[Verdict]) -> dict[str, BrokerUse]:
    """Return the use of each Broker of a namespace, by the Broker's name."""
    uses: dict[str, BrokerUse] = {}
    for verdict in verdicts:
        spec = verdict.spec
        name = spec.get("broker")
        if not name or spec.get("dispatch") == "direct":
            continue
        known, attribute = uses.get(name, BrokerUse()), spec.get("replyAttribute")
        attributes = known.attributes | {attribute} if attribute else known.attributes
        uses[name] = BrokerUse(attributes, max(known.seconds, spec.get("timeoutSeconds") or 0.0))
    return uses


class ReplyPath:
    """Writes the Triggers of all Brokers while this replica leads."""

    def __init__(
        self,
        api: ApiClient,
        cluster: Cluster,
        rules: JudgingRules,
        leads: Callable[[], bool],
        *,
        recorder: EventRecorder,
        metrics: Metrics,
    ) -> None:
        self.timeout_brokers: Collection[BrokerKey] = ()
        "The Brokers whose `spec.delivery.timeout` may be written."
        self._api = api
        self._cluster = cluster
        self._rules = rules
        self._leads = leads
        self._recorder = recorder
        self._metrics = metrics
        self._unwritten = rules.unwritten or UnwrittenTriggers()
        self._queue: KeyedQueue[BrokerKey] = KeyedQueue()
        self._uses: dict[str, Mapping[str, BrokerUse]] = {}
        # The Triggers to the shim, and the managed ones, by Broker: all others are never looked through.
        self._triggers: dict[BrokerKey, set[str]] = {}
        self._patched: dict[tuple[str, str], float] = {}
        cluster.add_observer(self._observe)

    def set_uses(self, namespace: str, verdicts: Iterable[Verdict]) -> None:
        """Take the verdicts on all tools of a namespace."""
        before, now = self._uses.pop(namespace, {}), uses_of(verdicts)
        if now:
            self._uses[namespace] = now
        for name in before.keys() | now.keys():
            if before.get(name) != now.get(name):
                self._queue.put((namespace, name))

    def put_all(self) -> None:
        """Queue every Broker."""
        for one in list(self._cluster.objects_of(BROKERS)):
            self._queue.put((one.namespace, one.name))

    async def write_queued(self) -> None:
        """Write what differs for the queued Brokers, until cancelled."""
        await self._queue.write_items(
            self._update_triggers,
            at_once=_AT_ONCE,
            leads=self._leads,
            what="a Trigger of Broker",
            failures=self._metrics.failures.labels("trigger"),
        )

    async def _update_triggers(self, key: BrokerKey) -> None:
        namespace, name = key
        broker = self._cluster.objects_of(BROKERS).find_object(namespace, name)
        if broker is None or broker.leaving:
            self._report(key, broker, [])
            return
        triggers = self._cluster.objects_of(TRIGGERS).objects_within(namespace)
        changes, problems = plan_triggers(
            broker.resource,
            self._uses.get(namespace, {}).get(name),
            [triggers[one] for one in sorted(self._triggers.get(key, ())) if one in triggers],
            triggers,
            self._rules,
        )
        failure: ApiError | None = None
        for change in changes:
            if change.action == "patch" and (pause := self._pause_of(namespace, change)):
                self._queue.put_later(key, pause)
                continue
            try:
                await self._write_change(namespace, change)
            except ApiError as error:
                failure = failure or error
                if not (isinstance(error, Refused) and error.status in STALE):
                    problems.append(Problem(change.name, str(error)))
        self._report(key, broker, problems)
        if key in self.timeout_brokers:
            await self._update_timeout(broker)
        if failure is not None:
            raise failure

    async def _update_timeout(self, broker: ObservedObject) -> None:
        """Write the time limit of a Broker, if its class needs one and its owner has set none."""
        use = self._uses.get(broker.namespace, {}).get(broker.name, BrokerUse())
        change = plan_timeout(broker.resource, use.seconds)
        if change is None:
            return
        path = object_path(BROKERS.api_version, BROKERS.plural, broker.namespace, broker.name)
        identity = {"uid": broker.uid, "resourceVersion": str(broker.version)}
        try:
            stored = await self._api.patch(path, {**change, "metadata": {**change["metadata"], **identity}})
        except ApiError as error:
            if isinstance(error, Refused) and error.status in STALE:
                raise
            self._metrics.failures.labels("timeout").inc()
            text = f"spec.delivery.timeout was not written, so slow calls may hold up others: {error}"
            logger.warning("Broker %s/%s: %s", broker.namespace, broker.name, text)
            self._post_event(broker, NO_TIMEOUT, text)
            return
        logger.info("Broker %s/%s: spec.delivery.timeout is set", broker.namespace, broker.name)
        self._cluster.observe_object(BROKERS, stored)

    def _post_event(self, broker: ObservedObject, reason: str, message: str) -> None:
        note = EventNote(
            *(broker.namespace, broker.name, broker.uid, "Warning", reason, message),
            api_version=BROKERS.api_version,
            kind=BROKERS.name,
        )
        self._recorder.queue_events([note])

    def _pause_of(self, namespace: str, change: Change) -> float:
        """Return the seconds until a Trigger may be patched again, 0.0 if it may be now."""
        now, key = asyncio.get_running_loop().time(), (namespace, change.name)
        due = self._patched.get(key, 0.0) + _PATCH_SECONDS
        if now < due:
            return due - now
        self._patched[key] = now
        return 0.0

    async def _write_change(self, namespace: str, change: Change) -> None:
        await self._send_change(namespace, change)
        self._metrics.trigger_writes.labels(change.action).inc()
        logger.info("%s of Trigger %s/%s", change.action, namespace, change.name)

    async def _send_change(self, namespace: str, change: Change) -> None:
        if change.stored is None:
            path = object_path(TRIGGERS.api_version, TRIGGERS.plural, namespace)
            self._see(await self._api.create(path, change.document))
            return
        uid, version = change.stored.uid, str(change.stored.version)
        path = object_path(TRIGGERS.api_version, TRIGGERS.plural, namespace, change.name)
        if change.action == "delete":
            await self._api.delete(path, uid, version)
            return
        identity = {"uid": uid, "resourceVersion": version}
        metadata = {**change.document.get("metadata", {}), **identity}
        self._see(await self._api.patch(path, {**change.document, "metadata": metadata}))

    def _see(self, document: Mapping[str, Any]) -> None:
        self._cluster.observe_object(TRIGGERS, document)

    def _report(self, key: BrokerKey, broker: ObservedObject | None, problems: list[Problem]) -> None:
        """Show the problems of a Broker in an Event, and in the condition of its tools."""
        text = "; ".join(f"Trigger {one.name}: {one.message}" for one in problems)
        if self._unwritten.set_reason(*key, text) and text and broker is not None:
            self._post_event(broker, NOT_WRITTEN, f"calls through this Broker are not answered: {text}")

    def _observe(self, kind: Kind, old: ObservedObject | None, new: ObservedObject | None) -> None:
        if kind.name == BROKERS.name and (broker := new or old):
            self._queue.put((broker.namespace, broker.name))
        elif kind.name == TRIGGERS.name:
            for key in self._index(old, new):
                self._queue.put(key)

    def _index(self, old: ObservedObject | None, new: ObservedObject | None) -> Iterator[BrokerKey]:
        """Index a Trigger by its Broker; yield the Brokers whose Triggers to the shim differ."""
        for observed, present in ((old, False), (new, True)):
            if observed is None or not self._is_relevant(observed):
                continue
            key = observed.namespace, broker_of(observed.resource)
            names = self._triggers.setdefault(key, set())
            if present:
                names.add(observed.name)
            else:
                names.discard(observed.name)
                if not names:
                    del self._triggers[key]
            yield key

    def _is_relevant(self, observed: ObservedObject) -> bool:
        return is_managed(observed.resource) or leads_to_shim(observed.resource, self._rules)
