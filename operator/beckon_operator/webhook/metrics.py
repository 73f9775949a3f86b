"""The metrics of the webhook for Prometheus.

They cover reviews, the expiry of its certificates, and failures.
"""

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from beckon_operator.webhook.reviews import Outcome


class WebhookMetrics:
    """The metrics of one webhook, in a registry of its own."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._reviews = Counter(
            "beckon_webhook_reviews",
            "Reviews that were answered, by what happened to spec.schemaData.",
            ["outcome"],
            registry=registry,
        )
        self._ends = Gauge(
            "beckon_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate ends that is served, and the authority that signed it.",
            ["certificate"],
            registry=registry,
        )
        self._trusted = Gauge(
            "beckon_webhook_trusted", "1 while the API server trusts what is served.", registry=registry
        )
        self._steps = Counter(
            "beckon_webhook_rotations", "Steps taken with the certificates.", ["step"], registry=registry
        )
        self._failures = Counter(
            "beckon_webhook_upkeep_failures",
            "Times that the Secret or the caBundle could not be looked after.",
            registry=registry,
        )
        for outcome in (*Outcome, "malformed"):
            self._reviews.labels(str(outcome))  # a series that is there before its first event

    def count_review(self, outcome: str) -> None:
        """Count an answered review."""
        self._reviews.labels(outcome).inc()

    def count_step(self, name: str) -> None:
        """Count a rotation step of this replica."""
        self._steps.labels(name).inc()

    def count_upkeep_failure(self) -> None:
        """Count a failure to look after the certificates."""
        self._failures.inc()

    def set_expiry(self, certificate: x509.Certificate, authority: x509.Certificate) -> None:
        """Set the expiry times of the certificate in use and its authority."""
        for label, each in (("serving", certificate), ("authority", authority)):
            self._ends.labels(label).set(each.not_valid_after_utc.timestamp())

    def set_trusted(self, *, trusted: bool) -> None:
        """Set the gauge for the API server's trust in the certificate."""
        self._trusted.set(trusted)

    def to_text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
