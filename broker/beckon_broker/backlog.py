"""The limit of the events in memory, in deliveries and in bytes."""

from dataclasses import dataclass

# Replies may fill the backlog further than new events: the call they answer has been carried
# out, and senders waiting for room must not lock out the replies that would make it.
_REPLY_RESERVE = 1.25


@dataclass(slots=True)
class Ticket:
    """The room one event holds until the last of its deliveries is over."""

    backlog: "Backlog"
    size: int
    open: int

    def close_one(self) -> None:
        """Note the end of one delivery; the last frees the event's bytes."""
        self.open -= 1
        self.backlog.deliveries -= 1
        if self.open == 0:
            self.backlog.events -= 1
            self.backlog.bytes -= self.size


class Backlog:
    """Counts the open deliveries (one event to one Trigger), their events, and the events' bytes."""

    def __init__(self, max_deliveries: int, max_bytes: int) -> None:
        self.max_deliveries = max_deliveries
        self.max_bytes = max_bytes
        self.deliveries = 0
        self.events = 0
        self.bytes = 0

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
        return Ticket(self, size, deliveries)
