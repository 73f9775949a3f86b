"""An accepted event inside the broker, and the attributes of the broker's own.

The rules of `knativebrokerttl` and `knativearrivaltime` are those of Knative's multi-tenant
broker (knative/eventing pkg/broker/ingress and pkg/broker/ttl.go): the TTL counts the passages
through a broker, is hidden from subscribers, and returns on their replies. Without it a reply
that matches the Trigger it came from would go round for ever.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from beckon_contract.cloudevents.events import CloudEvent, RawHeaders
from beckon_runtime.problem import Problem

TTL = "knativebrokerttl"
ARRIVAL_TIME = "knativearrivaltime"
MAX_TTL = 255

# The trace of the request, too: Knative's HTTP clients send it on.
_PASSED_NAMES = frozenset({b"x-request-id", b"traceparent", b"tracestate"})
_PASSED_PREFIXES = (b"x-b3-", b"knative-")


class BrokerName(NamedTuple):
    """The namespace and the name of a broker."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `NAMESPACE/NAME`, as in the ingress path."""
        return f"{self.namespace}/{self.name}"


class Refused(Exception):
    """The broker does not accept an event. `problem` has the reason, and the HTTP status for it."""

    def __init__(self, problem: Problem, retry_after: int | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Envelope:
    """An accepted event with its TTL and the headers to pass on.

    The TTL is a field here, and no attribute of the event.
    """

    broker: BrokerName
    event: CloudEvent
    ttl: int
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """The counted size in bytes: data, attributes and passed headers."""
        attributes = sum(len(name) + len(str(value)) for name, value in self.event.attributes().items())
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.event.data or b"") + attributes + headers


def seal(broker: BrokerName, event: CloudEvent, headers: tuple[tuple[str, str], ...] = ()) -> Envelope:
    """Accept an event: decrement its TTL and add its arrival time.

    An arrival time already there stays. Raises `Refused` (400) if the TTL is used up.
    """
    return _seal(broker, event, headers, event.extensions.get(TTL))


def seal_reply(cause: Envelope, reply: CloudEvent) -> Envelope:
    """Take in the reply to a delivered event; it inherits the event's TTL. A TTL of its own is ignored."""
    return _seal(cause.broker, reply, cause.headers, cause.ttl)


def _seal(
    broker: BrokerName, event: CloudEvent, headers: tuple[tuple[str, str], ...], before: str | int | None
) -> Envelope:
    ttl = _remaining(before)
    if ttl <= 0:
        raise Refused(
            Problem(
                400,
                "ttl-exhausted",
                "The event has passed through brokers too often",
                f"{TTL} of event {event.id!r} (type {event.type!r}) is used up: a subscriber probably "
                "replies with an event that its own Trigger matches; give the reply another type",
            )
        )
    event = event.without(TTL)
    if ARRIVAL_TIME not in event.extensions:
        event = event.extended(**{ARRIVAL_TIME: datetime.now(UTC).isoformat().replace("+00:00", "Z")})
    return Envelope(broker, event, ttl, headers)


def passed_headers(headers: RawHeaders) -> tuple[tuple[str, str], ...]:
    """Return the request headers to pass on with the event.

    As in Knative (knative/eventing pkg/utils/headers.go).
    """
    return tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in headers
        if name.lower() in _PASSED_NAMES or name.lower().startswith(_PASSED_PREFIXES)
    )


def _remaining(value: str | int | None) -> int:
    """Return the TTL after this passage. A value that is no integer counts as absent, as in Knative."""
    try:
        return min(int(value) - 1, MAX_TTL) if value is not None else MAX_TTL
    except ValueError:
        return MAX_TTL
