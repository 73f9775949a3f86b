"""The deliveries that this process has pulled from JetStream, and those that it has settled lately.

After an outage longer than the lease, the server hands out again what this process still holds, and what it
had to remove right before it ended. Both are known here, so that neither is carried out twice.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from beckon_broker.log import QueuedDelivery
from beckon_broker.publisher import ID_HEADER
from beckon_broker.subjects import queue_of
from beckon_contract.kubernetes_objects import Key

logger = logging.getLogger(__name__)

_REMEMBERED = 4_000  # settled deliveries
# Several at once wake NATS once, and a stream that is empty after each message makes a file for each.
_BATCH_SECONDS = 0.01

Store = Callable[[QueuedDelivery], Awaitable[None]]


class PulledDelivery:
    """A delivery that this process has pulled. `store` puts one into the log anew; it raises `NatsError`."""

    def __init__(self, queued: QueuedDelivery, message: Msg, held: "HeldDeliveries", store: Store) -> None:
        self.queued = queued
        self.message = message
        self.id = message_id(message)
        self.lost_before = message.metadata.num_delivered > 1
        self._held = held
        self._store = store

    async def settle(self) -> None:
        """Remove the delivery from its stream. Without a connection, it is removed when it comes again."""
        self._held.remove(self, is_settled=True)
        if queue_of(self.message.subject) is None:
            self._held.acknowledge_soon(self.message)
        else:  # the server holds the next one of a queue back until then
            await acknowledge(self.message)

    async def release(self, attempts: int, *, begun: bool) -> None:
        """Store the delivery anew, with its attempts, and remove the old message."""
        try:
            await self._store(replace(self.queued, attempts=attempts, begun=begun))
        except (NatsError, TimeoutError) as error:
            logger.warning("event %s waits for its lease: %s", self.queued.envelope.event.id, reason(error))
            self._held.remove(self, is_settled=False)
        else:
            await self.settle()


class HeldDeliveries:
    """The deliveries that this process holds. `make_room` is called for each that it holds no longer."""

    def __init__(self, make_room: Callable[[], None]) -> None:
        self._make_room = make_room
        self._by_id: dict[str, PulledDelivery] = {}
        self._count_of: Counter[Key] = Counter()
        self._settled: dict[str, None] = {}
        self._over: list[Msg] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, delivery: PulledDelivery) -> int:
        """Hold a delivery, and return how many of its Trigger are held now."""
        self._by_id[delivery.id] = delivery
        self._count_of[delivery.queued.trigger] += 1
        return self._count_of[delivery.queued.trigger]

    def remove(self, delivery: PulledDelivery, *, is_settled: bool) -> None:
        """Hold a delivery no longer. One that is settled is not carried out again."""
        if self._by_id.pop(delivery.id, None) is not None:
            self._count_of[delivery.queued.trigger] -= 1
        if is_settled:
            self._settled[delivery.id] = None
            if len(self._settled) > _REMEMBERED:
                del self._settled[next(iter(self._settled))]
        self._make_room()

    def acknowledge_soon(self, message: Msg) -> None:
        """Acknowledge a message soon, with all others of these milliseconds."""
        self._over.append(message)
        if len(self._over) == 1:
            self._start(self._acknowledge_later())

    async def acknowledge_all(self) -> None:
        """Acknowledge what is to be acknowledged soon."""
        over, self._over = self._over, []
        for message in over:
            await acknowledge(message)

    async def _acknowledge_later(self) -> None:
        await asyncio.sleep(_BATCH_SECONDS)
        await self.acknowledge_all()

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def recognise(self, message: Msg) -> bool:
        """Return True if a delivery is held or settled; one that is settled is removed again."""
        delivery = self._by_id.get(key := message_id(message))
        if delivery is not None:
            delivery.message = message
        elif key in self._settled:
            self._start(acknowledge(message))
        else:
            return False
        return True

    async def renew(self) -> None:
        """Renew the leases of all deliveries that are held; raises `NatsError`."""
        for delivery in list(self._by_id.values()):
            await delivery.message.in_progress()


def message_id(message: Msg) -> str:
    """Return the id under which a delivery is stored. A server that lost its store never gives it again."""
    return (message.headers or {}).get(ID_HEADER) or message.reply


async def acknowledge(message: Msg) -> None:
    """Acknowledge to the server that a delivery is over, if there is a connection."""
    with contextlib.suppress(NatsError):
        await message.ack()


def reason(error: BaseException) -> str:
    """Return an error of the client or the server in words."""
    if isinstance(error, APIError):
        return str(error.description or error)
    return str(error) or type(error).__name__
