"""The log in memory: deliveries are carried out at once, and are lost with the process."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from beckon_broker.log import Document, LogLoad, QueuedDelivery, Take, refuse
from beckon_contract.knative.broker_class import LogReport
from beckon_contract.kubernetes_objects import Key

# Replies may fill the backlog further than new events: the call they answer has been carried
# out, and senders waiting for room must not lock out the replies that would make it.
_REPLY_RESERVE = 1.25


@dataclass(slots=True)
class Ticket:
    """The room one event holds until the last of its deliveries is over."""

    backlog: "Backlog"
    size: int
    open: int
    since: float = field(default_factory=time.monotonic)

    def close_one(self) -> None:
        """Note the end of one delivery; the last frees the event's bytes."""
        self.open -= 1
        self.backlog.deliveries -= 1
        if self.open == 0:
            self.backlog.forget(self)


class Backlog:
    """Counts the open deliveries (one event to one Trigger), their events, and the events' bytes."""

    def __init__(self, max_deliveries: int, max_bytes: int) -> None:
        self.max_deliveries = max_deliveries
        self.max_bytes = max_bytes
        self.deliveries = 0
        self.events = 0
        self.bytes = 0
        self._tickets: dict[int, Ticket] = {}  # of open events, in the order of their arrival

    @property
    def oldest_seconds(self) -> float:
        """The age of the oldest open event, 0 without one."""
        oldest = next(iter(self._tickets.values()), None)
        return time.monotonic() - oldest.since if oldest else 0.0

    def admit(self, deliveries: int, size: int, *, is_reply: bool) -> Ticket | None:
        """Return room for an event and its deliveries, or `None` if full.

        An empty backlog takes any event: one with more Triggers than the limit would never fit.
        """
        stretch = _REPLY_RESERVE if is_reply else 1.0
        fits = (
            self.deliveries + deliveries <= self.max_deliveries * stretch
            and self.bytes + size <= self.max_bytes * stretch
        )
        if not fits and self.deliveries:
            return None
        self.deliveries += deliveries
        self.events += 1
        self.bytes += size
        ticket = Ticket(self, size, deliveries)
        self._tickets[id(ticket)] = ticket
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Free the room of an event."""
        del self._tickets[id(ticket)]
        self.events -= 1
        self.bytes -= ticket.size


class OpenDelivery:
    """A delivery in memory; no other process can have held it."""

    lost_before = False

    def __init__(self, queued: QueuedDelivery, ticket: Ticket, depths: Counter[Key]) -> None:
        self.queued = queued
        self._ticket = ticket
        self._depths = depths

    async def settle(self) -> None:
        """Free the delivery's room."""
        self._ticket.close_one()
        self._depths[self.queued.trigger] -= 1

    async def release(self, attempts: int, *, begun: bool) -> None:
        """Do nothing: the delivery stays counted, as one that is lost with the process."""


class MemoryLog:
    """Deliveries in memory, up to the limits of the backlog."""

    durability = "in memory: events that are queued when this process ends are lost"
    deduplication_seconds = 0
    problem = ""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self._depths: Counter[Key] = Counter()
        self._take: Take | None = None

    async def append(self, deliveries: Sequence[QueuedDelivery], *, is_reply: bool) -> None:
        """Start the deliveries of one event, or raise `Refused` if there is no room for all of them."""
        size = deliveries[0].envelope.size
        ticket = self.backlog.admit(len(deliveries), size, is_reply=is_reply)
        if ticket is None or self._take is None:
            detail = f"{self.backlog.deliveries} deliveries are open; send the event again later"
            raise refuse("queue-full", "The broker's queue is full", detail)
        for queued in deliveries:
            self._depths[queued.trigger] += 1
            self._take(OpenDelivery(queued, ticket, self._depths))

    async def run(self, take: Take | None, ready: Callable[[], None]) -> None:
        """Hand each delivery to `take` from now on, at the moment when its event is accepted."""
        self._take = take
        ready()
        await asyncio.Event().wait()

    async def pause(self) -> None:
        """Do nothing: the log has only deliveries of this process."""

    async def read_load(self) -> LogLoad:
        """Return what is open; an event is as old as its place in the backlog."""
        return LogLoad(+self._depths, self.backlog.oldest_seconds)

    def report(self) -> LogReport:
        """Return the report of a log in memory."""
        return LogReport(problem=self.problem, storage="memory")

    def describe(self) -> Document:
        """Return the load of the backlog, and its limits."""
        return {
            "deliveries": self.backlog.deliveries,
            "maxDeliveries": self.backlog.max_deliveries,
            "events": self.backlog.events,
            "bytes": self.backlog.bytes,
            "maxBytes": self.backlog.max_bytes,
        }

    async def close(self) -> int:
        """Return the number of events with open deliveries: they are lost."""
        return self.backlog.events
