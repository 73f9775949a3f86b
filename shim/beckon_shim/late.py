"""Late replies and reports: without a waiting caller they go to a sink.

Nothing is queued here. A reply is acknowledged when the sink has it; until then the Broker stores it and
delivers it again, by its own rules.
"""

import logging

from beckon_shim.brokers import Target
from beckon_shim.client import Client
from beckon_shim.messages import WireEvent

_AT_ONCE = 64
_REPORTS_AT_ONCE = 16
_RETRIED = frozenset((404, 408, 409, 429))
_CAUSE = b"ce-causationid"

logger = logging.getLogger(__name__)


class LateReplies:
    """Posts late replies to the sink's URL, or logs them without one.

    At most 64 are posted at a time.
    """

    def __init__(self, url: str | None, client: Client) -> None:
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
