"""The broker without its HTTP: accepts events for the Triggers' lanes."""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from beckon_broker.courier import Courier, Lane
from beckon_broker.envelope import BrokerName, Envelope, Refused
from beckon_broker.metrics import Metrics
from beckon_broker.sender import Post
from beckon_broker.topology import Subscription, Topology
from beckon_contract.kubernetes_objects import Key
from beckon_runtime.problem import Problem

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


logger = logging.getLogger(__name__)

_RETRY_AFTER = 1  # seconds


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of delivery: concurrent attempts per Trigger, and seconds per attempt.

    The time-out applies to Triggers without `delivery.timeout`.
    """

    concurrency: int
    timeout: float


class Dispatcher:
    """Accepts at once and delivers in the background, in memory.

    Knative's Kafka broker does the same, but not in memory. A delivery waiting for its next attempt does not
    count as a concurrent attempt, so one failing event does not hold up a Trigger's other events.
    """

    def __init__(self, post: Post, backlog: Backlog, metrics: Metrics, pace: Pace, base_url: str) -> None:
        self.backlog = backlog
        self.topology = Topology()
        self.draining = False
        self._metrics = metrics
        self._concurrency = pace.concurrency
        self._courier = Courier(post, partial(self.accept, is_reply=True), metrics, pace.timeout, base_url)
        self._ready: dict[Key, Subscription] = {}
        self._lanes: dict[Key, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        metrics.watch_queues(self.loads)

    def apply(self, topology: Topology) -> None:
        """Route by these Brokers and Triggers; queued deliveries stay queued."""
        self.topology = topology
        self._ready = {subscription.key: subscription for subscription in topology.subscriptions()}
        for key, subscription in self._ready.items():
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = Lane(subscription, asyncio.Semaphore(self._concurrency))
            else:
                lane.subscription = subscription
        for key in list(self._lanes):
            self._retire(key)

    def knows(self, broker: BrokerName) -> bool:
        """Return True if the Broker exists."""
        return broker in self.topology.brokers

    def passing(self, envelope: Envelope) -> list[Subscription]:
        """Return the ready Triggers matching an event.

        The list is empty if the Broker is unknown.
        """
        attributes = envelope.event.attributes()
        triggers = self.topology.brokers.get(envelope.broker, ())
        return [each for each in triggers if each.filter(attributes)]

    def check(self, broker: BrokerName) -> None:
        """Raise `Refused` if the broker cannot accept new events.

        The ingress calls it before it reads the data of an event.
        """
        if self.draining:
            raise _refused(503, "draining", "The broker is stopping", "send the event again later")
        if not self.knows(broker):
            detail = f"no manifest describes the Broker {broker}, and no Trigger names it; see /status"
            raise _refused(404, "unknown-broker", "There is no such Broker", detail)

    def accept(self, envelope: Envelope, *, is_reply: bool = False) -> None:
        """Accept an event for all matching Triggers, or raise `Refused`.

        It is accepted for all of them or for none.
        """
        if not is_reply or not self.knows(envelope.broker):
            self.check(envelope.broker)
        passing = self.passing(envelope)
        if passing:
            ticket = self.backlog.admit(len(passing), envelope.size, is_reply=is_reply)
            if ticket is None:
                detail = f"{self.backlog.deliveries} deliveries are open; send the event again later"
                raise _refused(503, "queue-full", "The broker's queue is full", detail)
            for subscription in passing:
                self._start(envelope, self._lanes[subscription.key], ticket)
        self._metrics.accepted(envelope.broker, len(passing))

    def loads(self) -> list[tuple[Key, int]]:
        """Return the number of open deliveries of each Trigger.

        These are the ready Triggers, and others with deliveries still open.
        """
        return [(key, lane.open) for key, lane in self._lanes.items()]

    async def drain(self, seconds: float) -> None:
        """Accept no new events; wait up to `seconds` for open deliveries."""
        self.draining = True
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            logger.info("deliveries are still open after %g s", seconds)

    async def stop(self) -> int:
        """Cancel the open deliveries; return the number of lost events."""
        self.draining = True
        lost = self.backlog.events
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return lost

    def _start(self, envelope: Envelope, lane: Lane, ticket: Ticket) -> None:
        lane.open += 1
        self._idle.clear()
        task = asyncio.create_task(self._carry(envelope, lane, ticket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, envelope: Envelope, lane: Lane, ticket: Ticket) -> None:
        key = lane.subscription.key
        try:
            await self._courier.deliver(envelope, lane)
        except Exception:
            logger.exception("event %s for %s is lost to a fault in the broker", envelope.event.id, key)
            self._metrics.dropped(key, "internal-error")
        finally:
            lane.open -= 1
            ticket.close_one()
            self._retire(key)
            if not self.backlog.deliveries:
                self._idle.set()

    def _retire(self, key: Key) -> None:
        """Remove the lane of a Trigger no longer ready, once it is empty."""
        if key not in self._ready and not self._lanes[key].open:
            del self._lanes[key]


def _refused(status: int, slug: str, title: str, detail: str) -> Refused:
    return Refused(Problem(status, slug, title, detail), _RETRY_AFTER if status == 503 else None)
