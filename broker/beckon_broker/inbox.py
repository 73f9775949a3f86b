"""The inbox of the shim's replica that waits for a reply: the reply goes straight there, before any Trigger.

The token of a reply names the replica, and the broker cannot verify it. So it posts to the addresses of one
host alone, those of the shim's headless Service: a token chooses among them, and the shim verifies it.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from beckon_broker.envelope import Envelope
from beckon_broker.sender import Post
from beckon_contract.cloudevents.events import to_binary
from beckon_contract.correlation import pod_replica

logger = logging.getLogger(__name__)

_TIMEOUT = 10.0  # the shim answers a stored run's reply when its agent has it, or the late reply sink
_AWAY_SECONDS = 5.0
_FRESH_SECONDS = 5.0
_NEW_SECONDS = 1.0


Resolve = Callable[[str], Awaitable[frozenset[str]]]
Count = Callable[[str], None]


def check_inbox(url: str) -> str:
    """Return the URL of inboxes, checked. Raises `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or not parts.port:
        raise ValueError("it is no URL like http://beckon-shim-inbox.beckon.svc.cluster.local:8083/replies")
    return url


async def resolve_host(host: str) -> frozenset[str]:
    """Return the IP addresses of a host. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return frozenset(str(sockaddr[0]) for *_, sockaddr in addresses)


class Inboxes:
    """Hands replies over to the replicas of the shim.

    `url` is the inbox of any replica: the addresses of its host are those of the replicas. `subscriber` is
    where the Triggers of the shim deliver replies, and `attribute` the one with the token. A replica that
    cannot be reached is left alone for some seconds. `count` gets the outcome of each reply: `taken`, or
    `refused`, `unreachable`, `unknown` for one that goes by its Trigger.
    """

    def __init__(
        self,
        post: Post,
        url: str,
        subscriber: str,
        attribute: str,
        resolve: Resolve = resolve_host,
        *,
        count: Count,
    ) -> None:
        parts = urlsplit(url)
        self._post = post
        self._count = count
        self._resolve = resolve
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._subscriber = subscriber
        self._attribute = attribute
        self._addresses: Mapping[str, str] = {}
        self._unknown = False  # so that a warning comes once
        self._resolved = float("-inf")
        self._looking_up = asyncio.Lock()
        self._away: dict[str, float] = {}

    async def hand_over(self, reply: Envelope) -> str:
        """Hand a reply over to its replica; return the subscriber that need not get it any more, else ""."""
        token = reply.event.extensions.get(self._attribute)
        if not isinstance(token, str):
            return ""
        outcome = await self._post_reply(reply, token.partition(".")[0])
        self._count(outcome)
        return self._subscriber if outcome == "taken" else ""

    async def _post_reply(self, reply: Envelope, replica: str) -> str:
        """Post a reply to a replica; return the outcome."""
        address = await self._find(replica)
        if address is None:
            return "unknown"
        if self._away.get(address, 0.0) > time.monotonic():
            return "unreachable"
        headers, body = to_binary(reply.event)
        headers += [("kn-namespace", reply.broker.namespace), *reply.headers]
        host = f"[{address}]" if ":" in address else address
        answer = await self._post(f"http://{host}:{self._port}{self._path}", headers, body, _TIMEOUT)
        if not answer.status:
            self._away[address] = time.monotonic() + _AWAY_SECONDS
            logger.info("the reply %s goes by its Trigger: %s", reply.event.id, answer.error)
            return "unreachable"
        return "taken" if answer.accepted else "refused"

    async def _find(self, replica: str) -> str | None:
        """Return the address of a replica. One that is not named by its address is the only one."""
        # A reply that comes during a look-up waits for it: one old address would count as the only one.
        async with self._looking_up:
            age = time.monotonic() - self._resolved
            if age > _FRESH_SECONDS or (age > _NEW_SECONDS and replica not in self._addresses):
                await self._look_up()
        if len(self._addresses) == 1:
            return next(iter(self._addresses.values()))
        return self._addresses.get(replica)

    async def _look_up(self) -> None:
        self._resolved = time.monotonic()
        try:
            addresses = await self._resolve(self._host)
        except OSError as error:
            addresses = frozenset()
            if not self._unknown:
                logger.warning(
                    "no inbox of the shim is known: %s: %s; replies are stored and go by Triggers, "
                    "which costs more: see BECKON_BROKER_REPLY_INBOX",
                    self._host,
                    error,
                )
        if addresses and self._unknown:
            logger.info("the inboxes of the shim are known again")
        self._unknown = not addresses
        self._addresses = {pod_replica(address): address for address in addresses}
        self._away = {address: until for address, until in self._away.items() if address in addresses}
