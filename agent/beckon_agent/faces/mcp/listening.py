"""The stream of changes for clients before 2026-07-28: `GET /mcp`, which needs no session."""

import asyncio
from collections.abc import AsyncGenerator

from beckon_agent.faces.event_stream import KEEP_ALIVE
from beckon_agent.faces.mcp.changes import Changes, TooManyListeners

_BEGUN = b": changes of the tools are told here\n\n"
_CHANGED = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'


async def frames(changes: Changes, agent: str, keep_alive: float) -> AsyncGenerator[bytes]:
    """Yield server-sent events until the service ends, at once where too many listen by now."""
    try:
        with changes.listening(agent) as listener:
            yield _BEGUN
            while not listener.ended:
                try:
                    async with asyncio.timeout(keep_alive):
                        changed = await listener.changed()
                except TimeoutError:
                    yield KEEP_ALIVE
                else:
                    yield _CHANGED if changed else b""
    except TooManyListeners:
        return
