"""The running shim: built from its settings, served on two ports, drained before it ends."""

import asyncio
import contextlib
import logging
import socket

from beckon_contract.correlation import Keyring
from beckon_shim import endings
from beckon_shim.calls import Calls, Limits
from beckon_shim.client import Client
from beckon_shim.deadlines import Deadlines
from beckon_shim.exchange import Exchange, Marks
from beckon_shim.keys import follow_keys
from beckon_shim.late import LateReplies
from beckon_shim.metrics import Metrics
from beckon_shim.peers import Addresses, Peers
from beckon_shim.replies import Replies
from beckon_shim.server import Server
from beckon_shim.settings import Settings
from beckon_shim.status import Status
from beckon_shim.targets import Targets
from beckon_shim.tokens import Tokens
from beckon_shim.waiters import Waiters

_BACKLOG = 4096
_SIDE_SECONDS = 5.0
_LAST_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Service:
    """One shim on two listening sockets. Build it inside the running event loop."""

    def __init__(
        self, settings: Settings, keyring: Keyring, call_socket: socket.socket, reply_socket: socket.socket
    ) -> None:
        self._settings = settings
        self._sockets = (call_socket, reply_socket)
        self.port: int = call_socket.getsockname()[1]
        self.reply_port: int = reply_socket.getsockname()[1]
        self.tokens = Tokens(keyring, settings.replica)
        self.waiters = Waiters()
        self.metrics = Metrics()
        marks = Marks.of(settings.correlation_attribute, settings.reply_attribute)
        exchange = Exchange(self.waiters, self.tokens, marks, self.metrics)
        self._status = Status(self.metrics)
        self._broker = Client(settings.max_timeout)
        self._side = Client(_SIDE_SECONDS)
        deadlines = Deadlines(settings.default_timeout, settings.max_timeout)
        limits = Limits(settings.max_waiting, deadlines, settings.reply_grace)
        calls = Calls(exchange, self._status, Targets(settings.broker_url), self._broker, limits)
        peers = Peers(Addresses(settings.peers), settings.replica, self._side)
        late = LateReplies(settings.late_reply_sink, self._side)
        replies = Replies(exchange, self._status, peers, late)
        self._servers = tuple(Server(handler, settings.max_event_bytes) for handler in (calls, replies))
        self.metrics.gauge("waiting_calls", "Calls that wait for their reply.", lambda: len(self.waiters))
        self.metrics.gauge(
            "broker_posts", "Posts that Brokers have not acknowledged.", lambda: len(self._broker)
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then drain and end."""
        follower = self._follow_keys()
        try:
            for server, bound in zip(self._servers, self._sockets, strict=True):
                await server.start(bound)
            await stop.wait()
            await self._drain()
        finally:
            if follower is not None:
                follower.cancel()
            await asyncio.gather(*(server.stop(_LAST_SECONDS) for server in self._servers))
            await self._broker.close()
            await self._side.close()

    async def _drain(self) -> None:
        """Take no more calls; let those that wait go on for a while, replies still coming in."""
        self._status.draining = True
        logger.info(
            "draining: %d calls wait, for at most %g s", len(self.waiters), self._settings.drain_seconds
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.waiters.idle(), self._settings.drain_seconds)
        cut = self.waiters.fail_all(endings.draining())
        if cut:
            logger.warning("%d calls got no reply before the end", cut)

    def _follow_keys(self) -> asyncio.Task[None] | None:
        path = self._settings.keys_file
        return None if path is None else asyncio.create_task(follow_keys(path, self.tokens))


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket; raise `OSError` where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound
