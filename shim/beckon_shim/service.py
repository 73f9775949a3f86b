"""The running shim: built from settings, served on two ports, drained at the end.

In front of the handlers are the check of Host and Origin, and the authentication of callers. Every call
carries a credential made with a key of the shim.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beckon_contract.correlation import SCHEME, BadCredential, Keyring, check_request
from beckon_runtime.http_messages import Answer, CheckedOrigins, Handler, HangUp, Request, Respond, of_problem
from beckon_runtime.http_server import Server
from beckon_runtime.post_client import PostClient
from beckon_runtime.problem import Problem
from beckon_shim.bearers import Bearers, no_account
from beckon_shim.brokers import Templates
from beckon_shim.calls import Calls, Deadlines, Limits
from beckon_shim.delivery import BrokerPosts, at_shutdown
from beckon_shim.exchange import Exchange, Marks, ids_in
from beckon_shim.peers import Addresses, LateReplies, Peers, PodAddresses
from beckon_shim.probes import Probes
from beckon_shim.receipts import Receipts
from beckon_shim.replies import Replies
from beckon_shim.settings import Settings
from beckon_shim.status import Metrics, Status
from beckon_shim.tokens import Tokens, follow_keys
from beckon_shim.waiters import AmbiguousDeadLetters, Waiters

_OUTCOME = "unauthenticated"

logger = logging.getLogger(__name__)


class Authenticated:
    """A handler reserved for callers with a credential.

    Health and metrics, which are not POSTed, stay open to probes.
    """

    def __init__(self, handler: Handler, tokens: Tokens, metrics: Metrics) -> None:
        self._handler = handler
        self._tokens = tokens
        self._metrics = metrics

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Pass a request on, or answer it with 401."""
        if request.method == "POST":
            try:
                check_request(self._tokens.keyring, request.path, request.headers, request.body, time.time())
            except BadCredential as error:
                self._metrics.call(_OUTCOME)
                logger.info("a call: %s: %s", _OUTCOME, error, extra=ids_in(request.headers))
                respond(_refusal(error))
                return None
        return self._handler.handle(request, respond)

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit."""
        return self._handler.too_large(request, limit)


def _refusal(error: BadCredential) -> Answer:
    """Return 401: the event was not sent."""
    problem = Problem(401, _OUTCOME, "No valid credential", str(error), {"delivered": False})
    return of_problem(problem, _OUTCOME, (b"www-authenticate", SCHEME.encode()))


if TYPE_CHECKING:
    from beckon_shim.cluster import Cluster

_BACKLOG = 4096
# Of the files that may be open: what callers and Brokers have; the rest is for posts to Brokers.
_SHARES = (0.45, 0.25)
# Idle connections, and those of callers whose calls are refused.
_CONNECTIONS_BESIDE = 1024
_SIDE_SECONDS = 5.0
# The IP of a Pod that is gone answers nothing at all, and a Broker waits meanwhile.
_SIDE_CONNECT_SECONDS = 1.5
_LAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """How long a call waits, in seconds.

    `without_preference` if its caller names no time. `after_dead_letter` is for a reply after a dead letter
    without a reason, which a Broker also writes for another Trigger of the same calls that was just deleted;
    a call whose tool reports, or whose type was answered before, waits to its deadline.
    """

    without_preference: float = 30.0
    after_dead_letter: float = 5.0


class Service:
    """One shim on two listening sockets. Build it inside the running event loop.

    `cluster` provides the Brokers and their tokens; without it the Brokers' addresses are made of a template.
    `traced` wraps a handler with spans, given the name of its route.
    """

    def __init__(
        self,
        settings: Settings,
        keyring: Keyring,
        sockets: tuple[socket.socket, socket.socket],
        cluster: "Cluster | None" = None,
        *,
        traced: Callable[[Handler, str | None], Handler] | None = None,
        waits: WaitTimes | None = None,
    ) -> None:
        waits = waits or WaitTimes()
        self._settings = settings
        self._cluster = cluster
        self._sockets = sockets
        self.port: int = sockets[0].getsockname()[1]
        self.reply_port: int = sockets[1].getsockname()[1]
        self.waiters = Waiters()
        self.metrics = Metrics()
        self._side = PostClient(_SIDE_SECONDS, _SIDE_CONNECT_SECONDS)
        addresses = PodAddresses(self.reply_port) if settings.pod_ip else Addresses(settings.peers)
        peers = Peers(addresses, settings.own_name, self._side)
        exchange = Exchange(
            self.waiters,
            Tokens(keyring, settings.own_name),
            Marks.of(settings.correlation_attribute, settings.reply_attribute),
            self.metrics,
            Receipts(settings.own_name, peers, has_sink=settings.late_reply_sink is not None),
        )
        self.tokens = exchange.tokens
        brokers = Templates(settings.broker_url) if cluster is None else cluster.brokers
        self._status = Status(self.metrics, brokers)
        self._bearers = Bearers(no_account if cluster is None else cluster.issue)
        self._posts = BrokerPosts(PostClient(settings.max_timeout, repeats=False), self._bearers)
        deadlines = Deadlines(waits.without_preference, settings.max_timeout)
        limits = Limits(settings.max_waiting, deadlines)
        calls = Calls(exchange, self._status, brokers, self._posts, limits)
        late = LateReplies(settings.late_reply_sink, self._side)
        ambiguous = AmbiguousDeadLetters(self.waiters, waits.after_dead_letter)
        replies = Replies(exchange, self._status, peers, late, ambiguous)
        called: Handler = calls if settings.open_calls else Authenticated(calls, self.tokens, self.metrics)
        handlers: list[tuple[Handler, str | None]] = [
            (called, "/{namespace}/{broker}"),
            (Probes(calls, replies), None),
        ]
        policy = settings.origin_policy(settings.host)
        self._servers = tuple(
            Server(
                "shim",
                CheckedOrigins(handler if traced is None else traced(handler, route), policy),
                settings.max_event_bytes,
                settings.connection_limits(share, most=settings.max_waiting + _CONNECTIONS_BESIDE),
            )
            for (handler, route), share in zip(handlers, _SHARES, strict=True)
        )
        self._add_gauges()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then drain and end."""
        followers = self._followers()
        try:
            for server, bound in zip(self._servers, self._sockets, strict=True):
                await server.start(bound)
            await stop.wait()
            await self._drain()
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*(server.stop(_LAST_SECONDS) for server in self._servers))
            await asyncio.gather(*followers, return_exceptions=True)
            await self._bearers.close()
            await self._posts.close()
            await self._side.close()
            if self._cluster is not None:
                await self._cluster.close()

    async def _drain(self) -> None:
        """Announce the end of this replica, then drain its calls.

        New calls are still taken for `leave_seconds`; then waiting calls go on for at most `drain_seconds`.
        """
        self._status.leaving = True
        for server in self._servers:
            server.leave()
        if self._settings.leave_seconds:
            logger.info("leaving: calls are taken for another %g s", self._settings.leave_seconds)
            await asyncio.sleep(self._settings.leave_seconds)
        self._status.draining = True
        logger.info(
            "draining: %d calls wait, for at most %g s", len(self.waiters), self._settings.drain_seconds
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.waiters.idle(), self._settings.drain_seconds)
        cut = self.waiters.fail_all(at_shutdown)
        if cut:
            logger.warning("%d calls got no reply before the end", cut)

    def _followers(self) -> list[asyncio.Task[None]]:
        followers = []
        if self._settings.keys_file is not None:
            followers.append(asyncio.create_task(follow_keys(self._settings.keys_file, self.tokens)))
        if self._cluster is not None:
            followers.append(asyncio.create_task(self._cluster.follow()))
        return followers

    def _add_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("waiting_calls", "Calls that wait for their reply.", lambda: len(self.waiters))
        gauge("broker_posts", "Posts that Brokers have not acknowledged.", lambda: len(self._posts))
        if self._cluster is not None:
            brokers = self._cluster.brokers
            gauge("brokers", "Brokers that are known.", lambda: len(brokers))
