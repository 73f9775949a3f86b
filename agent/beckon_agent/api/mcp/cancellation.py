"""Requests in progress: their context, known before the SDK reads them, and their cancellation.

The cancellation may reach another replica than the call did.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import orjson

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.context import current_principal
from beckon_agent.store.base import Counters, StoreUnavailable


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The requested agent, and the session id.

    Only clients before 2026-07-28 have a session id.
    """

    hosted: AgentHandle
    session: str | None


current: ContextVar[RequestInfo] = ContextVar("mcp_request")


logger = logging.getLogger(__name__)

Key = tuple[str | None, str | int | None]
"""The session and the id of a request; without a session only the end of the connection cancels."""

_REMEMBERED = 600.0  # seconds; no call takes longer to begin at the other replica
_ANY_NUMBER = 2**53


class Cancellations:
    """The cancelled calls of all replicas with the same store.

    Without a store there are none. Replicas look every `look_every` seconds, for the first time when a call
    has taken that long: most calls have ended by then.
    """

    def __init__(self, counters: Counters | None = None, look_every: float = 1.0) -> None:
        self._counters = counters
        self._look_every = look_every
        self._noting: set[asyncio.Task[None]] = set()

    async def announce_call(self, key: Key) -> None:
        """Announce a call cancelled by the current principal to other replicas."""
        if self._counters is None or key[0] is None:
            return
        # A notification has its answer at once, and what serves it ends with that.
        noting = asyncio.create_task(self._note_cancellation(self._counters, _counter_name(key)))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)
        await asyncio.shield(noting)

    async def _note_cancellation(self, counters: Counters, name: str) -> None:
        try:
            await counters.take_amount(name, 1, limit=_ANY_NUMBER, window=_REMEMBERED)
        except StoreUnavailable as error:
            logger.warning("a call is not cancelled at other replicas: %s", error)

    async def listen_for(self, key: Key, cancel: Callable[[], None]) -> None:
        """Cancel a call of the current principal once another replica announces it."""
        if self._counters is None or key[0] is None:
            return
        name, cancelled = _counter_name(key), False
        while not cancelled:
            await asyncio.sleep(self._look_every)
            try:
                cancelled = not (
                    await self._counters.take_amount(name, 0, limit=0, window=_REMEMBERED)
                ).allowed
            except StoreUnavailable as error:
                logger.warning("whether a call is cancelled cannot be looked up: %s", error)
        cancel()


def _counter_name(key: Key) -> str:
    said = orjson.dumps([current_principal().id, *key])
    return f"mcp-cancelled|{hashlib.sha256(said).hexdigest()}"
