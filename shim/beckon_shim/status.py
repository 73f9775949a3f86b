"""Health, readiness and metrics of the shim: the same on both ports."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from beckon_runtime.http_messages import Answer, Request
from beckon_shim import responses
from beckon_shim.brokers import Brokers

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)


class Metrics:
    """The metrics of one shim, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "beckon_shim_calls", "Calls that ended, by outcome.", ["outcome"], registry=self.registry
        )
        self._replies = Counter(
            "beckon_shim_replies",
            "Replies that came in, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self._dead_letters = Counter(
            "beckon_shim_dead_letters",
            "Dead letters that came in, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self._reports = Counter(
            "beckon_shim_reports",
            "Reports of progress that came in, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        histogram = Histogram(
            "beckon_shim_call_seconds",
            "How long calls that were replied to took, in seconds.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.observe_seconds: Callable[[float], None] = histogram.observe
        self._children: dict[tuple[str, str], Counter] = {}

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge with a value read at each scrape."""
        Gauge(f"beckon_shim_{name}", text, registry=self.registry).set_function(read)

    def call(self, outcome: str) -> None:
        """Count an ended call."""
        self._count("call", outcome, self._calls)

    def reply(self, outcome: str) -> None:
        """Count a reply."""
        self._count("reply", outcome, self._replies)

    def dead_letter(self, outcome: str) -> None:
        """Count a dead letter."""
        self._count("dead_letter", outcome, self._dead_letters)

    def report(self, outcome: str) -> None:
        """Count a report of progress."""
        self._count("report", outcome, self._reports)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def _count(self, kind: str, label: str, family: Counter) -> None:
        # Looking a child up by its labels costs more than counting; the labels are few.
        child = self._children.get((kind, label))
        if child is None:
            child = self._children[kind, label] = family.labels(label)
        child.inc()


_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_PROMETHEUS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class Status:
    """Answers `/healthz` (alive), `/readyz` (may calls come) and `/metrics`.

    While `leaving`, a shim is not ready, but still takes calls; while `draining`, it takes none.
    """

    def __init__(self, metrics: Metrics, brokers: Brokers) -> None:
        self._metrics = metrics
        self._brokers = brokers
        self.leaving = False
        self.draining = False

    def answer(self, request: Request) -> Answer | None:
        """Return the answer for these paths, `None` for another path."""
        if request.path not in ("/healthz", "/readyz", "/metrics"):
            return None
        if request.method not in ("GET", "HEAD"):
            return responses.wrong_method(b"GET, HEAD")
        if request.path == "/metrics":
            return Answer(200, [_PROMETHEUS], self._metrics.text(), "")
        if request.path == "/readyz" and (self.leaving or self.draining):
            return responses.draining()
        if request.path == "/readyz" and self._brokers.why_unready:
            return responses.starting(self._brokers.why_unready)
        return Answer(200, [_TEXT], b"ok\n", "")
