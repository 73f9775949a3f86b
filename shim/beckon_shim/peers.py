"""Events and receipts of calls that do not wait at this replica: to another replica, or to a sink.

They are passed one hop only. Late replies and reports go to a sink. Nothing is queued here: a reply is
acknowledged when the sink has it; until then the Broker stores it and delivers it again, by its own rules.
"""

import logging
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol

from beckon_runtime.http_messages import Request
from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import RawHeader, Target
from beckon_shim.messages import WireEvent

_AT_ONCE = 64
_REPORTS_AT_ONCE = 16
_RETRIED = frozenset((404, 408, 409, 429))
_CAUSE = b"ce-causationid"

logger = logging.getLogger(__name__)


class LateReplies:
    """Posts late replies to the sink's URL, or logs them without one. At most 64 are posted at a time."""

    def __init__(self, url: str | None, client: PostClient) -> None:
        self._url = url
        self._client = client
        self._busy = 0

    async def hand_over(self, event: WireEvent, call_id: bytes | None) -> bool:
        """Deliver a late reply; return True if it needs no redelivery.

        `call_id` is the id of its call if it is still known; it is added as the attribute `causationid`
        (CloudEvents correlation extension) unless the tool set one.
        """
        if self._url is None:
            logger.info(
                "a late reply %s was dropped; set a late reply sink to keep them", event.text(b"ce-id")
            )
            return True
        if self._busy >= _AT_ONCE:
            return False
        if call_id is not None:
            event.attributes.setdefault(_CAUSE, call_id)
        self._busy += 1
        try:
            return await self._post(self._url, event)
        finally:
            self._busy -= 1

    async def report(self, event: WireEvent, call_id: bytes | None) -> bool:
        """Deliver a report without a waiting caller; return True if accepted.

        Replies have priority: a report is posted only while fewer than 16 posts to the sink are open.
        """
        if self._url is None or self._busy >= _REPORTS_AT_ONCE:
            return False
        if call_id is not None:
            event.attributes.setdefault(_CAUSE, call_id)
        self._busy += 1
        try:
            ack = await self._client.deliver(Target(self._url), event.headers(), event.body)
        finally:
            self._busy -= 1
        return ack.accepted

    async def _post(self, url: str, event: WireEvent) -> bool:
        ack = await self._client.deliver(Target(url), event.headers(), event.body)
        if not ack.accepted:
            logger.warning("the late reply sink %s did not take a reply: %s", url, ack.describe())
        # What the sink refuses for good need not come again (knative/specs, data-plane.md).
        return ack.status != 0 and ack.status < 500 and ack.status not in _RETRIED


FORWARDED = b"beckon-forwarded"
_ATTEMPTS = 2


def is_forwarded(request: Request) -> bool:
    """Return True if an event comes from another replica. Such an event may not go to a third one."""
    return any(name == FORWARDED for name, _ in request.headers)


class ReplicaAddresses(Protocol):
    """Finds the reply listeners of the replicas."""

    def url(self, replica: str) -> str | None:
        """Return the base URL of a replica, `None` for an unknown one."""
        ...


class Addresses:
    """The reply listeners of the replicas, from a template or a list.

    A template looks like `http://{replica}.shim:8083`, a list like `shim-0=http://10.0.0.1:8083,shim-1=…`;
    the text is empty for a single replica.
    """

    def __init__(self, text: str) -> None:
        self._template = text if "{replica}" in text else ""
        self._known: Mapping[str, str] = {} if self._template else dict(_pairs(text))

    def url(self, replica: str) -> str | None:
        """Return the base URL of a replica, `None` for an unknown one."""
        if self._template:
            return self._template.replace("{replica}", replica).rstrip("/")
        return self._known.get(replica)


class PodAddresses:
    """The reply listeners of replicas named after their Pod's IP. They need no list and no DNS."""

    def __init__(self, port: int) -> None:
        """Every replica takes replies on this port."""
        self._port = port

    def url(self, replica: str) -> str | None:
        """Return the base URL of a replica, `None` if its name is no IP."""
        ip = _pod_ip(replica)
        if ip is None:
            return None
        return f"http://[{ip}]:{self._port}" if ip.version == 6 else f"http://{ip}:{self._port}"


def _pod_ip(replica: str) -> IPv4Address | IPv6Address | None:
    separator = "." if replica.count("-") == 3 else ":"
    try:
        return ip_address(replica.replace("-", separator))
    except ValueError:
        return None


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, url = item.partition("=")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{item!r} is not <replica>=<URL>")
        pairs.append((name.strip(), url.strip().rstrip("/")))
    return pairs


class Peers:
    """Passes replies, dead letters, reports and receipts to their replica."""

    def __init__(self, addresses: ReplicaAddresses, own: str, client: PostClient) -> None:
        self._addresses = addresses
        self._own = (FORWARDED, own.encode())
        self._client = client

    async def forward(self, replica: str, path: str, event: WireEvent) -> bool:
        """Pass an event on; return True if the replica took it."""
        return await self._post(replica, path, event.headers(), event.body)

    async def pass_on(self, replica: str, path: str) -> bool:
        """Pass on a request with an empty body; return True if taken."""
        return await self._post(replica, path, [], b"")

    async def _post(self, replica: str, path: str, headers: list[RawHeader], body: bytes) -> bool:
        base = self._addresses.url(replica)
        if base is None:
            logger.warning("no address of replica %s is known; %s is not passed on to it", replica, path)
            return False
        headers = [*headers, self._own]
        for attempt in range(1, _ATTEMPTS + 1):
            ack = await self._client.deliver(Target(base + path), headers, body)
            if ack.accepted:
                return True
            logger.warning(
                "replica %s did not take %s (attempt %d): %s", replica, path, attempt, ack.describe()
            )
            if not ack.sent:
                break  # no listener is there, and the Broker waits for this answer
        return False
