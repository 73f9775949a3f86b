"""The parts of one broker process.

The process runs from the first refresh to the last delivery.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from beckon_broker.app import Ingress, Interface, Pages
from beckon_broker.courier import Terms
from beckon_broker.dispatcher import Dispatcher
from beckon_broker.inbox import Inboxes
from beckon_broker.log import Log
from beckon_broker.memory_log import Backlog, MemoryLog
from beckon_broker.metrics import Metrics
from beckon_broker.sender import Post, Sender
from beckon_broker.settings import Settings
from beckon_broker.source import FolderSource, LoggedTopology, Source
from beckon_contract.knative.broker_class import MAX_REQUEST_BYTES
from beckon_runtime.http_messages import CheckedOrigins
from beckon_runtime.http_server import Server
from beckon_runtime.process import base_url

logger = logging.getLogger(__name__)


_CLOSING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of what waits for delivery.

    From `deliveries` (one event to one Trigger) or `size` in bytes on, new events are answered 503. An
    attempt takes at most `attempt_seconds` if `delivery.timeout` is absent, as with Knative's Kafka broker. A
    stored delivery waits `unknown_seconds` for its Trigger, which another process may have read first.
    """

    deliveries: int = 10_000
    size: int = 64 * 1024 * 1024
    attempt_seconds: float = 600.0
    unknown_seconds: float = 10.0


class Service:
    """A broker on a listening socket; `url` is its URL on this machine. `traced` wraps the posts in spans."""

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        traced: Callable[[Post], Post] | None = None,
        limits: QueueLimits | None = None,
    ) -> None:
        self._limits = limits or QueueLimits()
        self._traced = traced
        self.url = base_url(listener, settings.host)
        self._settings = settings
        self._listener = listener
        self._stopping = asyncio.Event()
        self._stopping_now = asyncio.Event()

    async def run(self) -> int:
        """Serve until stopped, and return how many accepted events are lost with the process."""
        settings, metrics, log = self._settings, Metrics(), self._open_log()
        async with contextlib.AsyncExitStack() as stack:
            sender = await stack.enter_async_context(contextlib.aclosing(Sender(settings.max_event_bytes)))
            inboxes = await self._open_inboxes(stack, metrics)
            dispatcher = Dispatcher(self._wrap(sender.post), log, metrics, self._terms(), inboxes)
            source = await self._open_source(dispatcher, stack)
            await source.catch_up()
            ingress = Ingress(dispatcher, source, metrics, settings.max_event_bytes)
            pages = Pages(dispatcher, source, metrics, self.url)
            interface = Interface(None if settings.roles == "dispatcher" else ingress, pages)
            server = Server(
                "broker",
                CheckedOrigins(interface, settings.origin_policy(settings.host)),
                max(settings.max_event_bytes, MAX_REQUEST_BYTES),
                settings.connection_limits(),
            )
            has_begun = asyncio.Event()
            take = None if settings.roles == "ingress" else dispatcher.take
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(source.run())
                handing_out = tasks.create_task(log.run(take, has_begun.set))
                await has_begun.wait()
                logger.info("listening on %s; events are stored %s", self.url, log.durability)
                await server.start(self._listener)
                await self._stopping.wait()
                await self._drain(server, dispatcher)
                handing_out.cancel()
                following.cancel()
            return await dispatcher.stop()

    async def _drain(self, server: Server, dispatcher: Dispatcher) -> None:
        """Finish the open deliveries, and answer meanwhile that no more events are taken."""
        server.leave()
        draining = asyncio.create_task(dispatcher.drain(self._settings.drain_seconds))
        at_once = asyncio.create_task(self._stopping_now.wait())
        await asyncio.wait((draining, at_once), return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, at_once):
            task.cancel()
        await server.stop(_CLOSING_SECONDS)

    def _wrap(self, post: Post) -> Post:
        """Return the posts with their spans, if there is a collector for them."""
        return post if self._traced is None else self._traced(post)

    async def _open_inboxes(self, stack: contextlib.AsyncExitStack, metrics: Metrics) -> Inboxes | None:
        """Return the inboxes of the shim, if the settings name them."""
        settings = self._settings
        if not settings.reply_inbox:
            return None
        # The shim knows a reply that comes again.
        sender = Sender(settings.max_event_bytes, repeats=True)
        await stack.enter_async_context(contextlib.aclosing(sender))
        return Inboxes(
            self._wrap(sender.post),
            settings.reply_inbox,
            settings.reply_subscriber,
            settings.reply_attribute,
            count=metrics.handed_over,
        )

    def _terms(self) -> Terms:
        settings = self._settings
        return Terms(
            settings.concurrency,
            self._limits.attempt_seconds,
            self.url,
            settings.correlation_attribute,
            settings.reply_attribute,
            self._limits.unknown_seconds,
        )

    async def _open_source(self, dispatcher: Dispatcher, stack: contextlib.AsyncExitStack) -> Source:
        """Return the source that the settings name; raise `NotConfigured` without a cluster for it."""
        settings, apply = self._settings, LoggedTopology(dispatcher.apply)
        if settings.source == "folders":
            return FolderSource(settings.manifests, apply, self.url)
        from beckon_broker.cluster import ClusterSource  # noqa: PLC0415 its client costs memory and time
        from beckon_sources.api_client import connect  # noqa: PLC0415 see above

        api = await stack.enter_async_context(await connect("beckon-broker"))
        return ClusterSource(api, (), apply, dispatcher.log.report)

    def _open_log(self) -> Log:
        """Return the log that the settings name. The library of NATS is loaded only for that log."""
        settings = self._settings
        if not settings.nats_url:
            return MemoryLog(Backlog(self._limits.deliveries, self._limits.size))
        from beckon_broker.jetstream import JetStreamLog, JetStreamOptions  # noqa: PLC0415 see above

        return JetStreamLog(
            JetStreamOptions(
                settings.nats_url,
                settings.nats_credentials,
                settings.nats_ca,
                settings.nats_stream,
                settings.nats_replicas,
                settings.nats_max_bytes,
                settings.lease_seconds,
                settings.concurrency,
            )
        )

    def stop(self) -> None:
        """Drain and then stop; a second call stops at once."""
        (self._stopping_now if self._stopping.is_set() else self._stopping).set()
