"""The log in NATS JetStream: stored events outlive the broker, and several processes share them.

A partition is one stream with one shared consumer, so the number of streams and consumers does not grow with
the Triggers. A process pulls as many deliveries as it has room for, holds each under a lease that it renews,
and acknowledges it when it is over. The deliveries of a process that dies go to another one after the lease.
A process that holds many deliveries of one Trigger moves further ones to the Trigger's own queue (`queues`).
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import BadRequestError

from beckon_broker.envelope import Refused
from beckon_broker.held_deliveries import HeldDeliveries, PulledDelivery, reason
from beckon_broker.log import (
    UNAVAILABLE,
    UNCERTAIN,
    Document,
    LogLoad,
    QueuedDelivery,
    Take,
    decode,
    encode,
    refuse,
)
from beckon_broker.publisher import Publisher
from beckon_broker.pull import Pull, end_if_cancelled
from beckon_broker.queues import Queues
from beckon_broker.streams import read_stream_content
from beckon_broker.subjects import PARTITIONS, SHARED_CONSUMER, Queue, Subjects, queue_of, trigger_of
from beckon_contract.knative.broker_class import LogReport
from beckon_contract.kubernetes_objects import Key
from beckon_runtime.problem import Problem

logger = logging.getLogger(__name__)

_RENEWALS = 3  # of each lease
_DUPLICATE_SECONDS = 60
_MAX_PROCESSES = 512  # open requests of one consumer, NATS's own default
_STORE_SECONDS = 5.0  # until the server must have acknowledged an event
_CONNECT_SECONDS = 2
_RECONNECT_SECONDS = 1
_MAX_HELD = 2_000
_MOST_TURNS = 4  # of a Trigger's concurrency that a process holds of its deliveries
_ANNOUNCE_SECONDS = 1.0
_HEADER_BYTES = 1024  # at most, of the headers of a message, which count as its payload
_ENCODED_RATIO = 3  # an event in the log has fewer bytes than its own times this
_EXISTS = 10058  # the code of JetStream for a stream name in use with another configuration


@dataclass(frozen=True, slots=True)
class JetStreamOptions:
    """Where the log is, and how the server keeps it.

    `url` are the addresses of the NATS servers, separated by commas. `ca` has the certificates that their own
    are checked against, `None` for those of this machine. `stream` begins the names of the
    streams and their subjects. `replicas` servers keep each event. `max_bytes` limits the stored events,
    0 for the server's limits alone. `concurrency` limits the simultaneous attempts for one Trigger. A
    process holds at most `max_held` deliveries, and up to one request of each partition more.
    """

    url: str
    credentials: Path | None = None
    ca: Path | None = None
    stream: str = "beckon"
    replicas: int = 1
    max_bytes: int = 0
    lease_seconds: float = 10.0
    concurrency: int = 100
    max_held: int = _MAX_HELD


class JetStreamLog:
    """Deliveries in NATS JetStream. `run` connects to the server, which may be away at any time."""

    durability = "in NATS JetStream: stored events outlive this process"
    deduplication_seconds = _DUPLICATE_SECONDS - int(2 * _STORE_SECONDS)

    def __init__(self, options: JetStreamOptions) -> None:
        self._options = options
        self._client = Client()
        self._stream: JetStreamContext = self._client.jetstream(timeout=_STORE_SECONDS)
        self._publisher = Publisher(self._client, _STORE_SECONDS)
        self._subjects = Subjects(options.stream)
        self._held = HeldDeliveries(self._wake)
        self._queues: Queues | None = None
        self._announced: dict[Queue, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_streams = False
        self._why = f"no connection to NATS at {self._address} yet"
        self._pulls: list[Pull] = []
        self._returned = asyncio.Event()

    @property
    def problem(self) -> str:
        """Why no event can be stored at the moment; empty if it can."""
        return "" if self._has_streams and self._client.is_connected else self._why

    @property
    def _address(self) -> str:
        """The servers without user names and passwords."""
        hosts = (urlsplit(each.strip()) for each in self._options.url.split(","))
        return ", ".join(f"{host.hostname}:{host.port or 4222}" for host in hosts)

    async def append(self, deliveries: Sequence[QueuedDelivery], *, is_reply: bool) -> None:
        """Store the deliveries of one event, or raise `Refused`.

        Replies have no reserve of their own. An event of which only a part was stored is refused: a sender
        that repeats it delivers that part twice, unless it is a call.
        """
        del is_reply
        if self.problem:
            raise refuse(UNAVAILABLE, "The broker cannot store events", self.problem)
        self._check_size(deliveries)
        try:
            if len(deliveries) == 1:  # as most calls have: a task would cost as much as the message
                await self._store(deliveries[0], deliveries[0].deduplication_id)
            else:
                await asyncio.gather(*(self._store(each, each.deduplication_id) for each in deliveries))
        except TimeoutError:
            end_if_cancelled()
            detail = (
                f"NATS at {self._address} did not confirm within {2 * _STORE_SECONDS:g} s that it stored the "
                "event: it may be delivered or not"
            )
            raise Refused(Problem(500, UNCERTAIN, "The event may be stored or not", detail)) from None
        except NatsError as error:
            end_if_cancelled()
            detail = f"NATS at {self._address} did not store the event: {reason(error)}"
            raise refuse(UNAVAILABLE, "The broker cannot store events", detail) from None

    def _check_size(self, deliveries: Sequence[QueuedDelivery]) -> None:
        """Refuse an event that is larger than a message of the server may be.

        The server would close the connection, and with it the publications of other events.
        """
        limit = self._client.max_payload - _HEADER_BYTES
        if _ENCODED_RATIO * deliveries[0].envelope.size < limit:
            return
        size = max(len(encode(each)) for each in deliveries)
        if size > limit:
            detail = (
                f"with its attributes it has {size} bytes, and NATS at {self._address} takes {limit}: raise "
                "max_payload of the server, or send a link to large data"
            )
            raise Refused(Problem(413, "event-too-large", "The event is too large", detail))

    async def store(self, queued: QueuedDelivery, queue: Queue | None = None) -> None:
        """Store one delivery, in a queue if one is given or the Trigger is ordered; raises `NatsError`."""
        await self._store(queued, "", queue)

    async def _store(self, queued: QueuedDelivery, message_id: str, queue: Queue | None = None) -> None:
        """Store one delivery under an id, a new one if it is empty.

        The server stores a message once that bears the id of an earlier one (JetStream, message
        deduplication), like the second try of this process, or the event that its sender posts again.
        """
        own = Queue("ordered", queued.trigger) if queued.ordered else queue
        subject = self._subjects.of_queue(own) if own else self._subjects.of_trigger(queued.trigger)
        message, message_id = encode(queued), message_id or uuid4().hex
        try:
            await self._publisher.publish(subject, message, message_id)
        except TimeoutError:
            await self._publisher.publish(subject, message, message_id)
        if own:
            await self._announce(own)

    async def _announce(self, queue: Queue) -> None:
        """Let all processes open a queue, at most once a second."""
        now = time.monotonic()
        if now - self._announced.get(queue, 0.0) > _ANNOUNCE_SECONDS:
            self._announced[queue] = now
            with contextlib.suppress(NatsError):  # a look finds the queue, too
                await self._client.publish(self._subjects.opened, self._subjects.of_queue(queue).encode())

    async def run(self, take: Take | None, ready: Callable[[], None]) -> None:
        """Connect, make the streams, and hand out deliveries until cancelled."""
        ready()
        await self._connect()
        await self._publisher.open()
        await self._make_streams()
        end_if_cancelled()
        logger.info("events are stored in NATS at %s", self._address)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            tasks.create_task(self._resume())
            if take is None:
                return
            receive, options = self._receiver(take), self._options
            queues = Queues(self._client, self._subjects, receive, options.concurrency, options.lease_seconds)
            self._queues = queues
            tasks.create_task(queues.run())
            for partition in range(PARTITIONS):
                stream = self._subjects.stream(partition)
                pull = Pull(self._client, stream, SHARED_CONSUMER, self._room, receive)
                self._pulls.append(pull)
                tasks.create_task(pull.run())

    async def read_load(self) -> LogLoad:
        """Return what is stored; nothing while the server is away."""
        lengths: Counter[Key] = Counter()
        oldest_seconds = 0.0
        for partition in () if self.problem else range(PARTITIONS):
            name, pattern = self._subjects.stream(partition), self._subjects.stored(partition)
            try:
                content = await read_stream_content(self._client, name, pattern)
            except (NatsError, TimeoutError):
                continue
            for subject, count in content.subjects.items():
                lengths[trigger_of(subject)] += count
            oldest_seconds = max(oldest_seconds, content.oldest_seconds)
        return LogLoad(lengths, oldest_seconds)

    def report(self) -> LogReport:
        """Return where the log is, and why it takes no events."""
        return LogReport(self._address, self.problem, "file", self._options.replicas)

    def describe(self) -> Document:
        """Return what this process holds of the log."""
        return {
            "server": self._address,
            "problem": self.problem,
            "held": len(self._held),
            "maxHeld": self._options.max_held,
        }

    async def pause(self) -> None:
        """Pull no more deliveries; what the server has sent already is still handed out."""
        pulls, self._pulls = self._pulls, []
        for pull in pulls:
            await pull.stop()
        if self._queues is not None:
            await self._queues.stop()

    async def close(self) -> int:
        """Close the connection, after what is written to it has gone; no event is lost."""
        if self._client.is_connected:
            await self._held.acknowledge_all()
            await self._client.drain()
        else:
            await self._client.close()
        return 0

    def _wake(self) -> None:
        """Pull another delivery in the place of one that is held no longer."""
        for pull in self._pulls:
            pull.wake()

    def _receiver(self, take: Take) -> Callable[[Msg], None]:
        def receive(message: Msg) -> None:
            if self._held.recognise(message):
                return
            try:
                queued = decode(message.data)
            except ValueError:
                logger.exception("message %s is no delivery that this broker can read", message.subject)
                return  # it comes again after its lease, for a broker that may know it
            delivery = PulledDelivery(queued, message, self._held, self.store)
            most = _MOST_TURNS * self._options.concurrency
            if self._held.add(delivery) > most and queue_of(message.subject) is None:
                task = asyncio.create_task(self._move(delivery, take))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                take(delivery)

        return receive

    async def _move(self, held: PulledDelivery, take: Take) -> None:
        """Move a delivery to its Trigger's own queue; carry it out where that fails."""
        try:
            await self.store(held.queued, Queue("slow", held.queued.trigger))
        except (NatsError, TimeoutError):
            take(held)
        else:
            await held.settle()

    def _room(self) -> int:
        return self._options.max_held - len(self._held)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease_seconds / _RENEWALS)
            # Without a connection they would fill the buffer of what is to be sent, and come too late.
            if self._client.is_connected:
                with contextlib.suppress(NatsError):
                    await self._held.renew()
            end_if_cancelled()

    async def _connect(self) -> None:
        """Connect to the server; wait for it as long as it takes."""

        async def note_error(error: Exception) -> None:
            self._why = f"NATS at {self._address} cannot be used: {reason(error)}"

        async def note_loss() -> None:
            self._why = f"the connection to NATS at {self._address} is lost; it is tried again"
            if not self._client.is_closed and not self._client.is_draining:
                logger.warning("%s", self._why)

        async def note_return() -> None:
            logger.info("connected to NATS at %s again", self._address)
            self._returned.set()

        await self._client.connect(
            [each.strip() for each in self._options.url.split(",")],
            name="beckon-broker",
            error_cb=note_error,
            disconnected_cb=note_loss,
            reconnected_cb=note_return,
            connect_timeout=_CONNECT_SECONDS,
            skip_subject_validation=True,  # they are made of checked names
            reconnect_time_wait=_RECONNECT_SECONDS,
            max_reconnect_attempts=-1,
            user_credentials=str(self._options.credentials) if self._options.credentials else None,
            tls=ssl.create_default_context(cafile=self._options.ca) if self._options.ca else None,
        )

    async def _resume(self) -> None:
        """Pull again after each loss of the connection; a server without its store gets new streams."""
        while True:
            await self._returned.wait()
            self._returned.clear()
            await self._make_streams()
            for pull in self._pulls:
                pull.restart()
            if self._queues is not None:
                self._queues.restart()
            end_if_cancelled()

    async def _make_streams(self) -> None:
        """Make the streams and consumers that are missing; try until it succeeds."""
        while True:
            try:
                for partition in range(PARTITIONS):
                    await self._make_stream(partition)
            except (NatsError, TimeoutError) as error:
                self._why = f"JetStream at {self._address} does not serve the streams: {reason(error)}"
                logger.warning("%s", self._why)
                end_if_cancelled()
                await asyncio.sleep(1)
            else:
                self._has_streams = True
                return

    async def _make_stream(self, partition: int) -> None:
        options, name = self._options, self._subjects.stream(partition)
        wanted = StreamConfig(
            name=name,
            description="Deliveries of Beckon's broker",
            subjects=[self._subjects.stored(partition)],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            max_bytes=options.max_bytes // PARTITIONS or -1,
            num_replicas=options.replicas,
            duplicate_window=float(_DUPLICATE_SECONDS),
        )
        try:
            await self._stream.add_stream(wanted)
        except BadRequestError as error:
            if error.err_code != _EXISTS:
                raise
            await self._stream.update_stream(wanted)
        await self._stream.add_consumer(
            name,
            ConsumerConfig(
                durable_name=SHARED_CONSUMER,
                filter_subject=self._subjects.shared(partition),
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=options.lease_seconds,
                max_ack_pending=-1,
                max_waiting=_MAX_PROCESSES,
            ),
        )
