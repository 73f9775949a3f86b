"""The broker's log: deliveries are stored in it when an event is accepted, and removed when they are over.

A delivery is one event to one Trigger. `memory_log` keeps them in the process; `jetstream` keeps them in NATS
JetStream, where they outlive it and where several processes share them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from beckon_broker.envelope import BrokerName, Envelope, Refused
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.knative.broker_class import LogReport
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key
from beckon_runtime.problem import Problem

RETRY_AFTER = 1  # seconds
UNAVAILABLE, UNCERTAIN = "log-unavailable", "log-uncertain"
LOG_AWAY = frozenset((UNAVAILABLE, UNCERTAIN))
"""The slugs of refusals by a log that cannot be reached."""

_CORE = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class QueuedDelivery:
    """One event for one Trigger.

    `ordered` is true if the Trigger gets one event after the other. `answers` is true if the Trigger's
    subscriber is the one whose answer is the reply to a call, and `observes` if that is another Trigger's.
    `attempts` counts the attempts of earlier processes, and `begun` is true if one of these may have begun
    the subscriber's work. Of two deliveries appended with the same `deduplication_id`, a log that
    has no other sign of a repetition stores one.
    """

    trigger: Key
    envelope: Envelope
    answers: bool = False
    attempts: int = 0
    begun: bool = False
    ordered: bool = False
    deduplication_id: str = ""
    observes: bool = False


class HeldDelivery(Protocol):
    """A delivery that this process carries out at the moment.

    `lost_before` is true if another process held it and ended without a word: the subscriber may have got
    the event.
    """

    queued: QueuedDelivery
    lost_before: bool

    async def settle(self) -> None:
        """Remove the delivery from the log: it is over."""
        ...

    async def release(self, attempts: int, *, begun: bool) -> None:
        """Put the delivery back for another process, with the attempts made so far."""
        ...


Take = Callable[[HeldDelivery], None]


@dataclass(frozen=True, slots=True)
class LogLoad:
    """What is stored: deliveries of each Trigger that has some, and the age of the oldest one in seconds."""

    lengths: Mapping[Key, int] = field(default_factory=dict)
    oldest_seconds: float = 0.0


class Log(Protocol):
    """Stores deliveries, and hands them out to be carried out.

    `durability` says in one sentence what happens to the stored events when this process ends. Within
    `deduplication_seconds`, a second delivery with the same id is not stored; 0 if it is.
    """

    durability: str
    deduplication_seconds: int

    @property
    def problem(self) -> str:
        """Why no event can be stored at the moment, with the cure; empty if it can."""
        ...

    async def append(self, deliveries: Sequence[QueuedDelivery], *, is_reply: bool) -> None:
        """Store the deliveries of one event, all or none.

        Raises `Refused` (503): the log is full, or cannot be reached.
        """
        ...

    async def run(self, take: Take | None, ready: Callable[[], None]) -> None:
        """Hand out deliveries until cancelled; call `ready` once the first can come.

        Without `take` this process only stores them.
        """
        ...

    async def pause(self) -> None:
        """Hand out no more deliveries of other processes; those that this one accepts may still come."""
        ...

    async def read_load(self) -> LogLoad:
        """Return what is stored, in all processes that share the log."""
        ...

    def report(self) -> LogReport:
        """Return where the log is and why it takes no events, for the operator."""
        ...

    def describe(self) -> Document:
        """Return the load and the limits, for the status page."""
        ...

    async def close(self) -> int:
        """Give up the log, and return how many accepted events are lost with this process."""
        ...


def refuse(slug: str, title: str, detail: str) -> Refused:
    """Return the refusal of an event that may be sent again soon (503 with Retry-After)."""
    return Refused(Problem(503, slug, title, detail), RETRY_AFTER)


def encode(queued: QueuedDelivery) -> bytes:
    """Return a delivery as bytes: one line of JSON for all but the event's data, then the data."""
    envelope, event = queued.envelope, queued.envelope.event
    head = {
        "trigger": [queued.trigger.namespace, queued.trigger.name],
        "broker": list(envelope.broker),
        "event": event.attributes(),
        "ttl": envelope.ttl,
        "headers": envelope.headers,
        "answers": queued.answers,
        "observes": queued.observes,
        "attempts": queued.attempts,
        "begun": queued.begun,
        "ordered": queued.ordered,
        "hasData": event.data is not None,
    }
    return orjson.dumps(head) + b"\n" + (event.data or b"")


def decode(stored: bytes) -> QueuedDelivery:
    """Return the delivery in bytes of `encode`. Raises `ValueError` for others."""
    line, _, data = stored.partition(b"\n")
    try:
        head = orjson.loads(line)
        attributes = head["event"]
        core = {name: attributes.pop(name) for name in _CORE if name in attributes}
        event = CloudEvent(**core, data=data if head["hasData"] else None, extensions=attributes)
        headers = tuple((name, value) for name, value in head["headers"])
        return QueuedDelivery(
            Key(GROUP, "Trigger", *head["trigger"]),
            Envelope(BrokerName(*head["broker"]), event, head["ttl"], headers),
            head["answers"],
            head["attempts"],
            head["begun"],
            head["ordered"],
            observes=head["observes"],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a stored delivery lacks a part of its head: {error!r}") from None
