"""The metrics of the broker, and its spans: one per delivery attempt, below the sender's span."""

from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from beckon_broker.envelope import BrokerName
from beckon_broker.sender import Answer, Headers, NoAnswer, Post
from beckon_contract.kubernetes_objects import Key
from beckon_runtime.tracing import MEMBERS, carried_by, continued

LaneLoad = tuple[Key, int]


class Metrics:
    """The counters of one broker process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._accepted = self._counter(
            "events_accepted", "Events and replies taken in.", "namespace", "broker"
        )
        self._refused = self._counter("events_refused", "Events and replies not taken in.", "reason")
        self._unrouted = self._counter(
            "events_unrouted", "Events taken in that no Trigger passes.", "namespace", "broker"
        )
        self._delivered = self._counter("deliveries", "Deliveries that succeeded.", "namespace", "trigger")
        self._retried = self._counter("retries", "Attempts that were made again.", "namespace", "trigger")
        self._dead_lettered = self._counter(
            "dead_letters", "Events that went to a dead-letter sink.", "namespace", "trigger"
        )
        self._dropped = self._counter(
            "events_dropped", "Deliveries given up for good.", "namespace", "trigger", "reason"
        )

    def accepted(self, broker: BrokerName, triggers: int) -> None:
        """Count an accepted event, and as unrouted if no Trigger matches."""
        self._accepted.labels(*broker).inc()
        if not triggers:
            self._unrouted.labels(*broker).inc()

    def refused(self, reason: str) -> None:
        """Count a refused event by the slug of its problem."""
        self._refused.labels(reason).inc()

    def delivered(self, trigger: Key) -> None:
        """Count a successful delivery."""
        self._delivered.labels(trigger.namespace, trigger.name).inc()

    def retried(self, trigger: Key) -> None:
        """Count a repeated attempt."""
        self._retried.labels(trigger.namespace, trigger.name).inc()

    def dead_lettered(self, trigger: Key) -> None:
        """Count an event accepted by its dead-letter sink."""
        self._dead_lettered.labels(trigger.namespace, trigger.name).inc()

    def dropped(self, trigger: Key, reason: str) -> None:
        """Count a delivery dropped for good."""
        self._dropped.labels(trigger.namespace, trigger.name, reason).inc()

    def watch_queues(self, loads: Callable[[], Iterable[LaneLoad]]) -> None:
        """Report the open deliveries of every Trigger whenever the metrics are read."""
        self.registry.register(_QueueLengths(loads))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"beckon_broker_{name}", text, labels, registry=self.registry)


class _QueueLengths(Collector):
    def __init__(self, loads: Callable[[], Iterable[LaneLoad]]) -> None:
        self._loads = loads

    def collect(self) -> Iterator[Metric]:
        """Return one gauge with a sample a Trigger."""
        gauge = GaugeMetricFamily(
            "beckon_broker_queue_length",
            "Deliveries waiting or under way.",
            labels=["namespace", "trigger"],
        )
        for trigger, load in self._loads():
            gauge.add_metric([trigger.namespace, trigger.name], load)
        yield gauge


_EVENT = {"ce-id": "event_id", "ce-source": "event_source", "ce-type": "event_type"}

_tracer = trace.get_tracer("beckon_broker")


class TracedPost:
    """Posts as another one does, each in a span."""

    def __init__(self, post: Post) -> None:
        self._post = post

    async def __call__(self, url: str, headers: Headers, body: bytes, timeout: float) -> Answer:
        """POST these bytes. Raises `NoAnswer`."""
        given = dict(headers)
        event_type = given.get("ce-type")  # which an event in structured mode does not show
        name = f"deliver {event_type}" if event_type else "deliver"
        span = _tracer.start_span(name, _parent(given), SpanKind.CLIENT, _attributes(url, given))
        own = [(key, value) for key, value in headers if key not in MEMBERS] + list(carried_by(span).items())
        try:
            answer = await self._post(url, own, body, timeout)
        except NoAnswer:
            _failed(span, "no_answer")
            raise
        else:
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= 400:
                _failed(span, str(answer.status))
            return answer
        finally:
            span.end()


def _failed(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def _attributes(url: str, headers: dict[str, str]) -> dict[str, str | int]:
    address = urlsplit(url)
    attributes = {
        f"cloudevents.{name}": headers[header] for header, name in _EVENT.items() if header in headers
    }
    return {
        "http.request.method": "POST",
        "server.address": address.hostname or "",
        "server.port": address.port or (443 if address.scheme == "https" else 80),
        "messaging.system": "cloudevents",
        **attributes,
    }


def _parent(headers: dict[str, str]) -> Context | None:
    """Return the trace of the event, or else of its request."""
    of_event = {name: headers[f"ce-{name}"] for name in MEMBERS if f"ce-{name}" in headers}
    return continued(of_event) or continued(headers)
