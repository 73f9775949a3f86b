"""The names of streams, subjects and consumers in JetStream.

A Trigger's deliveries are in one partition. Most go by the shared consumer of the partition (`now`). A
Trigger whose deliveries pile up has a queue with a consumer of its own (`slow`), and so has an ordered one
(`ordered`).
"""

from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key

PARTITIONS = 4
SHARED_CONSUMER = "dispatchers"
QueueKind = Literal["slow", "ordered"]


@dataclass(frozen=True, slots=True)
class Queue:
    """A Trigger's own queue."""

    kind: QueueKind
    trigger: Key

    @property
    def consumer(self) -> str:
        """The name of its consumer."""
        return f"{self.kind}_{self.trigger.namespace}_{_token(self.trigger.name)}"


@dataclass(frozen=True, slots=True)
class Subjects:
    """The names of one installation; all begin with its prefix."""

    prefix: str

    @property
    def opened(self) -> str:
        """The subject of announcements that a queue has messages. It is not stored."""
        return f"{self.prefix}-opened"

    def stream(self, partition: int) -> str:
        """Return the name of a partition's stream."""
        return f"{self.prefix}-{partition}"

    def stored(self, partition: int) -> str:
        """Return the pattern of all subjects of a partition."""
        return f"{self.prefix}.{partition}.>"

    def shared(self, partition: int) -> str:
        """Return the pattern of the subjects that the shared consumer reads."""
        return f"{self.prefix}.{partition}.now.>"

    def of_trigger(self, trigger: Key) -> str:
        """Return the subject of a Trigger's deliveries by the shared consumer."""
        return self._subject("now", trigger)

    def of_queue(self, queue: Queue) -> str:
        """Return the subject of a queue."""
        return self._subject(queue.kind, queue.trigger)

    def _subject(self, kind: str, trigger: Key) -> str:
        name = _token(trigger.name)
        return f"{self.prefix}.{partition_of(trigger)}.{kind}.{trigger.namespace}.{name}"


def partition_of(trigger: Key) -> int:
    """Return the partition of a Trigger, by a hash of its name."""
    return crc32(f"{trigger.namespace}/{trigger.name}".encode()) % PARTITIONS


def trigger_of(subject: str) -> Key:
    """Return the Trigger in a subject."""
    _, namespace, token = subject.rsplit(".", 2)
    return Key(GROUP, "Trigger", namespace, token.replace("_", "."))


def queue_of(subject: str) -> Queue | None:
    """Return the queue of a subject, `None` for one that the shared consumer reads."""
    kind = subject.rsplit(".", 3)[1]
    trigger = trigger_of(subject)
    if kind == "slow":
        return Queue("slow", trigger)
    return Queue("ordered", trigger) if kind == "ordered" else None


def _token(name: str) -> str:
    """Return a name as one token of a subject: a dot becomes `_`, which no name has."""
    return name.replace(".", "_")
