"""The metrics of the operator for Prometheus."""

from collections import Counter as Count
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from beckon_operator.conditions.verdicts import Verdict

_PREFIX = "beckon_operator_"
_SECONDS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one process; `verdicts` are read at each scrape."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.judging = self._new_histogram("judging_seconds", "Seconds that judging one namespace takes.")
        self.writing = self._new_histogram(
            "write_seconds", "Seconds that writing one Tool takes, retries included."
        )
        self.statuses = Histogram(
            f"{_PREFIX}status_write_seconds",
            "Seconds that writing the status of a Broker or Trigger of the class takes.",
            ["kind"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.writes = self._new_counter("writes", "Tools written.", "action")
        self.trigger_writes = self._new_counter(
            "trigger_writes", "Triggers for replies and reports written.", "action"
        )
        self.failures = self._new_counter("failures", "Failures that are retried later.", "what")
        self.missed = self._new_counter(
            "missed", "Changes that no watch reported, found by comparing.", "kind"
        )
        self.events = self._new_counter("events", "Kubernetes Events about Tools.", "outcome")
        self.waiting = self._new_gauge(
            "waiting_namespaces", "Namespaces with changes that are not judged yet."
        )
        self.queued = self._new_gauge("queued_writes", "Tools that wait to be written.")
        self.replies_arrive = Gauge(
            f"{_PREFIX}replies_arrive",
            "1 if the last probe of a Broker (namespace/name) came back to the shim, 0 if it was lost.",
            ["broker"],
            registry=self._registry,
        )
        self.leader = self._new_gauge("leader", "1 in the replica that writes, 0 in the others.")

    def to_text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def export_tools(self, verdicts: Callable[[], Iterator[Verdict]]) -> None:
        """Export the number of Tools by status and reason of Ready."""
        self._registry.register(_Tools(verdicts))

    def _new_counter(self, name: str, text: str, label: str) -> Counter:
        return Counter(_PREFIX + name, text, [label], registry=self._registry)

    def _new_gauge(self, name: str, text: str) -> Gauge:
        return Gauge(_PREFIX + name, text, registry=self._registry)

    def _new_histogram(self, name: str, text: str) -> Histogram:
        return Histogram(_PREFIX + name, text, buckets=_SECONDS, registry=self._registry)


class _Tools(Collector):
    def __init__(self, verdicts: Callable[[], Iterator[Verdict]]) -> None:
        self._verdicts = verdicts

    def collect(self) -> Iterator[GaugeMetricFamily]:
        text = "Tools by the status and the reason of their Ready condition."
        family = GaugeMetricFamily(f"{_PREFIX}tools", text, labels=["ready", "reason"])
        for (status, reason), number in sorted(
            Count((one.ready.status, one.ready.reason) for one in self._verdicts()).items()
        ):
            family.add_metric([status, reason], number)
        yield family
