"""Server-sent events as an answer that ends, with the work behind it, when nobody reads it any more."""

import asyncio
import json
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from beckon_agent.faces.hang_up import ClientGone, unless_gone

KEEP_ALIVE = b": keep-alive\n\n"
"""The comment among server-sent events that says that the stream lives."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(StreamingResponse):
    """Sends the chunks as they come, and closes their generator, however it ends.

    Starlette's own way cancels a task group, in which a generator cannot await while it cleans up.
    A client that is connected and takes nothing for `stalled` seconds counts as gone.
    """

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes], stalled: float) -> None:
        super().__init__(chunks, headers=_HEADERS)
        self._chunks = chunks
        self._stalled = stalled

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole answer."""
        try:
            await unless_gone(receive, self._send(send))
        except ClientGone:
            return
        finally:
            await self._chunks.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for chunk in self._chunks:
            async with asyncio.timeout(self._stalled):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def event_bytes(name: str, document: object) -> bytes:
    """Return a server-sent event of this name."""
    # ASCII: some readers of lines take other characters for the end of one, too.
    return f"event: {name}\ndata: {json.dumps(document)}\n\n".encode("ascii")
