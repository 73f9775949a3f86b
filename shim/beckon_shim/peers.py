"""The other replicas: a reply that reached the wrong one is passed on, one hop only."""

import logging
from collections.abc import Mapping

from beckon_shim.client import Client
from beckon_shim.wire import WireEvent

FORWARDED = b"beckon-forwarded"
_ATTEMPTS = 2

logger = logging.getLogger(__name__)


class Addresses:
    """Where the reply listeners of the replicas are.

    Written as a template (`http://{replica}.shim:8083`) or as a list
    (`shim-0=http://10.0.0.1:8083,shim-1=…`); empty where there is one replica only.
    """

    def __init__(self, text: str) -> None:
        self._template = text if "{replica}" in text else ""
        self._known: Mapping[str, str] = {} if self._template else dict(_pairs(text))

    def url(self, replica: str) -> str | None:
        """Return the base URL of a replica, `None` for an unknown one."""
        if self._template:
            return self._template.replace("{replica}", replica).rstrip("/")
        return self._known.get(replica)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, url = item.partition("=")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{item!r} is not <replica>=<URL>")
        pairs.append((name.strip(), url.strip().rstrip("/")))
    return pairs


class Peers:
    """Passes replies and dead letters on to the replica that waits for them."""

    def __init__(self, addresses: Addresses, own: str, client: Client) -> None:
        self._addresses = addresses
        self._own = (FORWARDED, own.encode())
        self._client = client

    async def forward(self, replica: str, path: str, event: WireEvent) -> bool:
        """Pass an event on; return whether the replica took it."""
        base = self._addresses.url(replica)
        if base is None:
            logger.warning("no address of replica %s is known; its reply cannot be passed on", replica)
            return False
        headers = [*event.headers(), self._own]
        for attempt in range(1, _ATTEMPTS + 1):
            ack = await self._client.deliver(base + path, headers, event.body)
            if ack.accepted:
                return True
            logger.warning(
                "replica %s did not take a reply (attempt %d): %s", replica, attempt, ack.describe()
            )
        return False
