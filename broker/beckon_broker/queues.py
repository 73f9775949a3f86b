"""The queues of single Triggers: of those whose deliveries pile up, and of ordered ones.

The server hands out no more of a queue than its Trigger bears at once, over all broker processes; the rest
stays in the stream. A queue has a consumer while it has messages, so the number of consumers is that of the
Triggers that are slow or ordered.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

from beckon_broker.pull import Pull, end_if_cancelled
from beckon_broker.streams import read_stream_content
from beckon_broker.subjects import PARTITIONS, Queue, Subjects, partition_of, queue_of

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_IDLE_LOOKS = 6
_FORGOTTEN_SECONDS = 300.0  # after which the server removes an unused consumer


class Queues:
    """Pulls from the queues that have messages. `receive` gets each message."""

    def __init__(
        self,
        client: Client,
        subjects: Subjects,
        receive: Callable[[Msg], None],
        concurrency: int,
        lease_seconds: float,
    ) -> None:
        self._client = client
        self._stream: JetStreamContext = client.jetstream()
        self._subjects = subjects
        self._receive = receive
        self._concurrency = concurrency
        self._lease_seconds = lease_seconds
        self._pulls: dict[Queue, Pull] = {}
        self._idle_looks: dict[Queue, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Open the queues that are announced, and those that a look finds, until cancelled."""
        await self._client.subscribe(self._subjects.opened, cb=self._open_announced)
        while True:
            await self._look()
            end_if_cancelled()
            await asyncio.sleep(_LOOK_SECONDS)

    def restart(self) -> None:
        """Pull again, after the connection was lost."""
        for pull in self._pulls.values():
            pull.restart()

    async def stop(self) -> None:
        """Pull no more."""
        pulls, self._pulls = self._pulls, {}
        for pull in pulls.values():
            await pull.stop()

    async def _open_announced(self, message: Msg) -> None:
        queue = queue_of(message.data.decode())
        if queue is not None:
            await self._open(queue)

    async def _look(self) -> None:
        """Open the queues with messages, and close those that have had none for some looks."""
        filled: set[Queue] = set()
        for partition in range(PARTITIONS):
            try:
                filled.update(await self._filled(partition))
            except (NatsError, TimeoutError):
                return  # the connection is lost; the next look comes soon
        for queue in filled:
            await self._open(queue)
        for queue in list(self._pulls):
            looks = 0 if queue in filled else self._idle_looks.get(queue, 0) + 1
            self._idle_looks[queue] = looks
            if looks >= _IDLE_LOOKS:
                del self._idle_looks[queue]
                await self._pulls.pop(queue).stop()

    async def _filled(self, partition: int) -> Iterable[Queue]:
        pattern = f"{self._subjects.prefix}.{partition}.*.*.*"
        content = await read_stream_content(self._client, self._subjects.stream(partition), pattern)
        return [queue for subject in content.subjects if (queue := queue_of(subject))]

    async def _open(self, queue: Queue) -> None:
        """Make the consumer of a queue, and pull from it."""
        if queue in self._pulls:
            return
        at_once = 1 if queue.kind == "ordered" else self._concurrency
        stream = self._subjects.stream(partition_of(queue.trigger))
        pull = Pull(self._client, stream, queue.consumer, lambda: at_once, self._receive)
        self._pulls[queue] = pull
        try:
            await self._stream.add_consumer(
                stream,
                ConsumerConfig(
                    durable_name=queue.consumer,
                    filter_subject=self._subjects.of_queue(queue),
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=self._lease_seconds,
                    max_ack_pending=at_once,
                    inactive_threshold=_FORGOTTEN_SECONDS,
                ),
            )
        except (NatsError, TimeoutError) as error:
            logger.warning("the queue of %s cannot be opened at the moment: %s", queue.trigger, error)
            self._pulls.pop(queue, None)
            return
        task = asyncio.create_task(pull.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
