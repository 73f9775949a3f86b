"""The broker without its HTTP: matches events, stores their deliveries, and carries these out."""

import asyncio
import hashlib
import logging

from beckon_broker.courier import Courier, Lane, Terms
from beckon_broker.envelope import BrokerName, Envelope, Refused
from beckon_broker.inbox import Inboxes
from beckon_broker.log import UNAVAILABLE, HeldDelivery, Log, QueuedDelivery, refuse
from beckon_broker.metrics import Metrics
from beckon_broker.sender import Post
from beckon_broker.topology import Routes, Subscription, Topology
from beckon_contract.kubernetes_objects import Key
from beckon_runtime.problem import Problem

logger = logging.getLogger(__name__)


class Dispatcher:
    """Accepts an event once its deliveries are in the log, and carries out what the log hands out.

    A delivery waiting for its next attempt does not count as a concurrent attempt, so one failing event does
    not hold up a Trigger's other events.
    """

    def __init__(
        self, post: Post, log: Log, metrics: Metrics, terms: Terms, inboxes: Inboxes | None = None
    ) -> None:
        self.log = log
        self.topology = Topology()
        self._has_topology = False
        self.draining = False
        self._metrics = metrics
        self._terms = terms
        self._courier = Courier(post, self._accept_reply, metrics, terms, inboxes)
        self._ready: dict[Key, Subscription] = {}
        self._routes: dict[BrokerName, Routes] = {}
        self._lanes: dict[Key, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._applied = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def apply(self, topology: Topology) -> None:
        """Route by these Brokers and Triggers; queued deliveries stay queued."""
        self.topology = topology
        self._has_topology = True
        self._routes = {broker: Routes(routes) for broker, routes in topology.brokers.items()}
        self._ready = {subscription.key: subscription for subscription in topology.subscriptions()}
        for key, subscription in self._ready.items():
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = Lane(subscription, asyncio.Semaphore(self._terms.concurrency))
            else:
                lane.subscription = subscription
        for key in list(self._lanes):
            self._retire(key)
        self._applied.set()

    def knows(self, broker: BrokerName) -> bool:
        """Return True if the Broker exists."""
        return broker in self.topology.brokers

    def passing(self, envelope: Envelope) -> list[Subscription]:
        """Return the ready Triggers matching an event. The list is empty if the Broker is unknown."""
        routes = self._routes.get(envelope.broker)
        return routes.passing(envelope.event.attributes()) if routes else []

    def check(self, broker: BrokerName) -> None:
        """Raise `Refused` if the broker cannot accept new events.

        The ingress calls it before it reads the data of an event.
        """
        if self.draining:
            raise refuse("draining", "The broker is stopping", "send the event again later")
        if not self.knows(broker):
            detail = f"no manifest describes the Broker {broker}, and no Trigger names it; see /status"
            raise Refused(Problem(404, "unknown-broker", "There is no such Broker", detail))
        if self.log.problem:
            raise refuse(UNAVAILABLE, "The broker cannot store events", self.log.problem)

    async def _accept_reply(self, envelope: Envelope, served: str) -> None:
        await self.accept(envelope, self.passing(envelope), is_reply=True, served=served)

    async def accept(
        self, envelope: Envelope, matching: list[Subscription], *, is_reply: bool = False, served: str = ""
    ) -> None:
        """Accept an event for the `matching` Triggers, or raise `Refused`.

        It is accepted for all of them or for none. The Triggers of the subscriber `served` do not count: it
        has the event already.
        """
        if not is_reply or not self.knows(envelope.broker):
            self.check(envelope.broker)
        passing = []
        for each in matching:
            if served and each.subscriber == served:
                self._metrics.delivered(each.key)
            else:
                passing.append(each)
        if passing:
            answering, call = self._answering(envelope, passing), self._identify_call(envelope)
            queued = [
                QueuedDelivery(
                    each.key,
                    envelope,
                    each.key in answering,
                    ordered=each.ordered,
                    deduplication_id=call and f"{each.key.namespace}/{each.key.name}/{call}",
                    observes=bool(answering) and each.key not in answering,
                )
                for each in passing
            ]
            await self.log.append(queued, is_reply=is_reply)
        self._metrics.accepted(envelope.broker, len(passing) + bool(served))

    def _identify_call(self, envelope: Envelope) -> str:
        """Return what is the same for each post of one call, empty for an event that is none."""
        event, terms = envelope.event, self._terms
        token = event.extensions.get(terms.correlation)
        if token is None or terms.reply in event.extensions:
            return ""
        return hashlib.blake2b(f"{event.source}\n{event.id}\n{token}".encode(), digest_size=16).hexdigest()

    def _answering(self, envelope: Envelope, passing: list[Subscription]) -> set[Key]:
        """Return the Triggers whose subscribers answer a call: those that require its very type.

        Another Trigger of the call only observes it, unless it is the only one.
        """
        event = envelope.event
        if self._terms.correlation not in event.extensions:
            return set()
        exact = {each.key for each in passing if each.required.get("type") == event.type}
        return exact or ({passing[0].key} if len(passing) == 1 else set())

    def take(self, held: HeldDelivery) -> None:
        """Carry out a delivery of the log in the background."""
        if held.lost_before:
            self._metrics.redelivered()
        lane = self._lanes.get(held.queued.trigger)
        if lane is not None:
            lane.open += 1
        self._idle.clear()
        task = asyncio.create_task(self._carry(held, lane))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def drain(self, seconds: float) -> None:
        """Accept no new events; wait up to `seconds` for open deliveries."""
        self.draining = True
        await self.log.pause()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            logger.info("deliveries are still open after %g s", seconds)

    async def stop(self) -> int:
        """End the open deliveries, return them to the log, and return the number of lost events."""
        self.draining = True
        await self.log.pause()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return await self.log.close()

    async def _carry(self, held: HeldDelivery, lane: Lane | None) -> None:
        if lane is None:
            lane = await self._find_lane(held)
        if lane is None:
            return
        key, event = lane.subscription.key, held.queued.envelope.event
        try:
            await self._courier.deliver(held, lane)
        except Exception:
            logger.exception("event %s for %s is lost to a fault in the broker", event.id, key)
            self._metrics.dropped(key, "internal-error")
            await held.settle()
        finally:
            lane.open -= 1
            self._retire(key)

    async def _find_lane(self, held: HeldDelivery) -> Lane | None:
        """Wait for a Trigger that this process does not know yet, and return its lane.

        Another process may have read it first. `None` if it was deleted while the log kept the delivery,
        which is dropped. `None`, too, if it stays not ready, or if this process has read no Triggers yet:
        then the delivery goes back to the log.
        """
        trigger, event = held.queued.trigger, held.queued.envelope.event
        try:
            async with asyncio.timeout(self._terms.unknown_seconds):
                while trigger not in self._lanes:
                    self._applied.clear()
                    await self._applied.wait()
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            await held.release(held.queued.attempts, begun=held.queued.begun)
            raise
        lane = self._lanes.get(trigger)
        if lane is not None:
            lane.open += 1
            return lane
        if not self._has_topology or any(note.key == trigger for note in self.topology.not_ready):
            await held.release(held.queued.attempts, begun=held.queued.begun)
            return None
        logger.warning("dropped event %s (type %s): %s is not there any more", event.id, event.type, trigger)
        self._metrics.dropped(trigger, "trigger-deleted")
        await held.settle()
        return None

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()

    def _retire(self, key: Key) -> None:
        """Remove the lane of a Trigger no longer ready, once it is empty."""
        lane = self._lanes.get(key)
        if lane is not None and key not in self._ready and not lane.open:
            del self._lanes[key]
