"""Prometheus metrics of a tool: calls by outcome, run times, running calls."""

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.registry import Collector

from beckon_contract.failures import Reason
from beckon_tools.later import NO_ANSWER_YET

CONTENT_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_FAILURE = re.compile(rb'\{"error":\{"reason":"(' + "|".join(Reason).encode() + rb')"')


class Counted:
    """One call and its outcome, a crash if no other is set."""

    def __init__(self) -> None:
        self.outcome = "tool_crashed"

    def refused(self, slug: str) -> None:
        """Set the outcome to the kind of problem of a refusal."""
        self.outcome = slug.replace("-", "_")

    def answered(self, data: bytes) -> None:
        """Set the outcome by the data of the reply."""
        failed = _FAILURE.match(data)
        self.outcome = "accepted" if data == NO_ANSWER_YET else failed[1].decode() if failed else "replied"


class Metrics:
    """The metrics of one tool, in a registry of its own."""

    def __init__(self, running: Callable[[], float], collectors: Iterable[Collector] = ()) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "beckon_tool_calls",
            "Calls that ended, repetitions too, by how.",
            ["outcome"],
            registry=self._registry,
        )
        self._runs = Histogram(
            "beckon_tool_run_seconds",
            "How long the function ran, in seconds.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        Gauge("beckon_tool_running", "Calls that run now.", registry=self._registry).set_function(running)
        for collector in collectors:
            self._registry.register(collector)

    @contextmanager
    def counted(self) -> Iterator[Counted]:
        """Count a call by the outcome set in the block."""
        call = Counted()
        try:
            yield call
        finally:
            self._calls.labels(call.outcome).inc()

    async def timed(self, run: Awaitable[bytes]) -> bytes:
        """Measure one run of the function."""
        began = time.monotonic()
        try:
            return await run
        finally:
            self._runs.observe(time.monotonic() - began)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
