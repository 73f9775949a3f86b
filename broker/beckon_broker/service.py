"""The parts of one broker process, and the routes from its manifests.

The process runs from the first refresh to the last delivery.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn

from beckon_broker.app import Pages, build_app
from beckon_broker.dispatcher import Backlog, Dispatcher, Pace
from beckon_broker.ingress import Ingress
from beckon_broker.metrics import Metrics
from beckon_broker.sender import Post, Sender
from beckon_broker.settings import Settings
from beckon_broker.topology import Admission, NotReady, Topology, build_topology
from beckon_runtime.asgi import server_config
from beckon_sources.folder_watch import Follower
from beckon_sources.folders import ManifestFolders

logger = logging.getLogger(__name__)


class Routing:
    """Builds a topology from the manifests for the dispatcher."""

    def __init__(self, manifests: ManifestFolders, dispatcher: Dispatcher, base_url: str) -> None:
        self._manifests = manifests
        self._dispatcher = dispatcher
        self._base_url = base_url
        self._admission = Admission()
        self._said: frozenset[NotReady] = frozenset()

    def read(self) -> Topology | None:
        """Return the topology if the folders have changed; blocks."""
        if not self._manifests.refresh():
            return None
        return build_topology(self._admission.review(self._manifests.resources), self._base_url)

    def apply(self, topology: Topology) -> None:
        """Put a topology in force; log each object not ready once.

        The log has the reason.
        """
        self._dispatcher.apply(topology)
        for note in topology.not_ready:
            if note not in self._said:
                logger.warning("%s is not ready: %s: %s", note.key, note.reason, note.message)
        self._said = frozenset(topology.not_ready)
        ready = len(topology.subscriptions())
        logger.info("brokers: %d, ready triggers: %d", len(topology.brokers), ready)


_CLOSING_SECONDS = 2


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of what waits for delivery.

    From `deliveries` (one event to one Trigger) or `size` in bytes on, new events are answered 503. An
    attempt takes at most `attempt_seconds` if `delivery.timeout` is absent, as with Knative's Kafka broker.
    """

    deliveries: int = 10_000
    size: int = 64 * 1024 * 1024
    attempt_seconds: float = 600.0


class Service:
    """A broker on a listening socket; `url` is its URL on this machine.

    `traced` wraps the posts in spans.
    """

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
        self._server: Server | None = None

    async def run(self) -> int:
        """Serve until stopped, and return how many accepted events are lost with the process."""
        settings, limits = self._settings, self._limits
        metrics = Metrics()
        manifests = ManifestFolders(settings.manifests)
        backlog = Backlog(limits.deliveries, limits.size)
        pace = Pace(settings.concurrency, limits.attempt_seconds)
        async with Sender(settings.max_event_bytes) as sender:
            post = sender.post if self._traced is None else self._traced(sender.post)
            dispatcher = Dispatcher(post, backlog, metrics, pace, self.url)
            routing = Routing(manifests, dispatcher, self.url)
            follower = Follower(settings.manifests, routing.read, routing.apply)
            await follower.refresh()
            app = build_app(
                Ingress(dispatcher, follower.refresh, metrics, settings.max_event_bytes),
                Pages(dispatcher, manifests, metrics, self.url),
            )
            config = server_config(
                app,
                settings.origin_policy(settings.host),
                settings.connection_limits(),
                lifespan="off",
                closing_seconds=_CLOSING_SECONDS,
            )
            self._server = Server(config, lambda: dispatcher.drain(settings.drain_seconds))
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(follower.run())
                logger.info("listening on %s; queued events are kept in memory only", self.url)
                await self._server.serve([self._listener])
                following.cancel()
            return await dispatcher.stop()

    def stop(self) -> None:
        """Drain and then stop, like SIGTERM; a second call stops at once."""
        if self._server is not None:
            self._server.handle_exit(signal.SIGTERM, None)


_BACKLOG = 4096


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `OSError` for an unusable address."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


def base_url(listener: socket.socket, host: str) -> str:
    """Return the URL of the socket on this machine."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


class Server(uvicorn.Server):
    """A uvicorn server draining on SIGTERM or SIGINT before it stops.

    It still answers while it drains. A second signal stops at once.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to drain; uvicorn calls this from its signal handlers."""
        del sig, frame
        if self._loop is None or self._draining is not None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain_and_stop())

    async def _drain_and_stop(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True
