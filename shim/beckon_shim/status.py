"""Health, readiness and metrics: the same on both ports."""

from beckon_shim import responses
from beckon_shim.brokers import Brokers
from beckon_shim.messages import Answer, Request
from beckon_shim.metrics import Metrics

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
