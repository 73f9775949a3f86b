"""Replies and reports that nobody awaits any more: they go to a sink, not to the floor.

Nothing is queued here. A reply is acknowledged when the sink has it; until then the
Broker keeps it and delivers it again, by its own rules.
"""

import logging

from beckon_shim.client import Client
from beckon_shim.targets import Target
from beckon_shim.wire import WireEvent

_AT_ONCE = 64
_REPORTS_AT_ONCE = 16
_RETRIED = frozenset((404, 408, 409, 429))
_CAUSE = b"ce-causationid"

logger = logging.getLogger(__name__)


class LateReplies:
    """Hands late replies to the sink's URL, at most 64 at a time; without a URL logs them."""

    def __init__(self, url: str | None, client: Client) -> None:
        self._url = url
        self._client = client
        self._busy = 0

    async def hand_over(self, event: WireEvent, call_id: bytes | None) -> bool:
        """Deliver a late reply; return whether it is done with, so that it need not come again.

        `call_id` is the id of its call where it is still known; it goes along as the
        attribute `causationid` (CloudEvents correlation extension) unless the tool set one.
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
        """Deliver a report of a call that nobody waits for; return whether the sink took it.

        Replies go first: there must be room beside them.
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
