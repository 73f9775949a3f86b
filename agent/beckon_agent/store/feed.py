"""The feed: the latest events of the Brokers, stored for clients that read them later."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_contract.cloudevents.events import CloudEvent


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One stored event.

    `event` is the CloudEvent in its JSON format. `came_at` is in seconds since the epoch, by the clock of
    the database.
    """

    position: int
    namespace: str
    type: str
    event: str
    came_at: float


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Stored events in the order of their positions.

    `last` is the position of the newest event when the page was read. Events up to `start` are deleted.
    """

    entries: Sequence[FeedEntry]
    last: int
    start: int


class Feed(Protocol):
    """The stored events of all namespaces. Every method may raise `StoreUnavailable`.

    A position is larger than all earlier ones, and becomes visible after them: a reader that has read up to
    a position has missed none before it. A new database has larger positions than the one it replaces.
    """

    async def append(self, namespace: str, event: CloudEvent, *, keep: int) -> bool:
        """Store an event; return False for one that is stored already.

        The oldest are deleted beyond `keep` events.
        """
        ...

    async def read(
        self, after: int, *, most: int, namespace: str | None = None, event_type: str | None = None
    ) -> FeedPage:
        """Return the events after a position, at most `most`: of a namespace and a type, or all."""
        ...
