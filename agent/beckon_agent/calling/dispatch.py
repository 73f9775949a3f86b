"""One tool call: sent the way that its EventType chose, through the Broker or straight to the tool."""

import aiohttp

from beckon_agent.calling.direct import Direct
from beckon_agent.calling.exchange import MAX_REPLY_BYTES, Call, Outcome
from beckon_agent.calling.through_shim import ThroughShim
from beckon_agent.reply_keys import ReplyKeys
from beckon_agent.telemetry.calls import sent_event


class Dispatcher:
    """Sends calls; never raises for what a tool, a Broker or the shim at `url` does."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        keys: ReplyKeys | None = None,
    ) -> None:
        """`keys` are the shim's, with which calls to it are signed."""
        self._through_shim = ThroughShim(session, url, max_reply_bytes, keys)
        self._direct = Direct(session, max_reply_bytes)

    async def send(self, call: Call) -> Outcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        way = self._direct if call.tool.dispatch == "direct" else self._through_shim
        with sent_event(call.id, call.tool.source or call.source, call.tool):
            return await way.send(call)
