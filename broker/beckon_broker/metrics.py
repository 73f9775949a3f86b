"""The broker's metrics for Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from beckon_broker.envelope import BrokerName
from beckon_contract.kubernetes_objects import Key


class Metrics:
    """The counters of one broker process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[Counter, tuple[str, ...]], Counter] = {}
        self._accepted = self._counter(
            "events_accepted", "Events and replies taken in.", "namespace", "broker"
        )
        self._refused = self._counter("events_refused", "Events and replies not taken in.", "reason")
        self._unrouted = self._counter(
            "events_unrouted", "Events taken in that no Trigger passes.", "namespace", "broker"
        )
        self._delivered = self._counter("deliveries", "Deliveries that succeeded.", "namespace", "trigger")
        self._handed_over = self._counter(
            "inbox_replies",
            "Replies for the shim's inboxes; all but the taken ones go by Triggers.",
            "outcome",
        )
        self._retried = self._counter("retries", "Attempts that were made again.", "namespace", "trigger")
        self._dead_lettered = self._counter(
            "dead_letters", "Events that went to a dead-letter sink.", "namespace", "trigger"
        )
        self._dropped = self._counter(
            "events_dropped", "Deliveries given up for good.", "namespace", "trigger", "reason"
        )
        self._redelivered = self._counter(
            "redeliveries", "Deliveries that came again after the lease of a process that held them."
        )
        self._oldest = Gauge(
            "beckon_broker_oldest_delivery_seconds",
            "Age of the oldest delivery that waits or is in progress; 0 without one.",
            registry=self.registry,
        )
        self._queues = Gauge(
            "beckon_broker_queue_length",
            "Deliveries waiting or in progress.",
            ("namespace", "trigger"),
            registry=self.registry,
        )

    def accepted(self, broker: BrokerName, triggers: int) -> None:
        """Count an accepted event, and as unrouted if no Trigger matches."""
        self._count(self._accepted, *broker)
        if not triggers:
            self._count(self._unrouted, *broker)

    def refused(self, reason: str) -> None:
        """Count a refused event by the slug of its problem."""
        self._count(self._refused, reason)

    def delivered(self, trigger: Key) -> None:
        """Count a successful delivery."""
        self._count(self._delivered, trigger.namespace, trigger.name)

    def handed_over(self, outcome: str) -> None:
        """Count a reply for an inbox of the shim."""
        self._count(self._handed_over, outcome)

    def retried(self, trigger: Key) -> None:
        """Count a repeated attempt."""
        self._count(self._retried, trigger.namespace, trigger.name)

    def dead_lettered(self, trigger: Key) -> None:
        """Count an event accepted by its dead-letter sink."""
        self._count(self._dead_lettered, trigger.namespace, trigger.name)

    def dropped(self, trigger: Key, reason: str) -> None:
        """Count a delivery dropped for good."""
        self._count(self._dropped, trigger.namespace, trigger.name, reason)

    def redelivered(self) -> None:
        """Count a delivery that another process, or this one, held before without an end."""
        self._redelivered.inc()

    def set_load(self, lengths: Mapping[Key, int], oldest_seconds: float) -> None:
        """Report the stored deliveries of each of these Triggers, and the age of the oldest of all."""
        self._oldest.set(oldest_seconds)
        self._queues.clear()
        for trigger, length in lengths.items():
            self._queues.labels(trigger.namespace, trigger.name).set(length)

    def _count(self, family: Counter, *labels: str) -> None:
        # Looking a child up by its labels costs more than counting.
        child = self._children.get((family, labels))
        if child is None:
            child = self._children[family, labels] = family.labels(*labels)
        child.inc()

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"beckon_broker_{name}", text, labels, registry=self.registry)
