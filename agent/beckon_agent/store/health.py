"""A write check of the store, with a time limit.

It makes a real write. Its result is reused for a moment.
"""

import asyncio
import logging
import secrets
import time

from beckon_agent.store.base import Counters, StoreUnavailable

logger = logging.getLogger(__name__)

_FRESH = 2.0  # seconds for which an answer is good, and is given again
_PATIENCE = 2.0  # seconds; a probe of Kubernetes waits for three
_PLACE_SECONDS = 60.0  # what is written goes with the next write, or with a purge


class StoreHealth:
    """Tries a write of a row of its own.

    Reading would not do: a full disk, a lock and a standby of PostgreSQL all let a reader in.
    """

    def __init__(self, counters: Counters, *, fresh: float = _FRESH, patience: float = _PATIENCE) -> None:
        self._counters = counters
        self._fresh = fresh
        self._patience = patience
        self._key = f"health|{secrets.token_hex(8)}"  # one a process: replicas do not wait for each other
        self._checking = asyncio.Lock()
        self._checked_at: float | None = None
        self._writable = True

    async def is_writable(self) -> bool:
        """Return True if a write succeeds in time.

        A result from a moment ago is returned again.
        """
        async with self._checking:
            if self._checked_at is None or time.monotonic() - self._checked_at > self._fresh:
                problem = await self._find_problem()
                if problem:
                    logger.warning("the store cannot be written: %s", problem)
                elif not self._writable:
                    logger.info("the store can be written again")
                self._writable, self._checked_at = not problem, time.monotonic()
            return self._writable

    async def _find_problem(self) -> str:
        """Try a write; return the reason of a failure, else ""."""
        try:
            async with asyncio.timeout(self._patience):
                await self._counters.take_place(self._key, "probe", limit=1, seconds=_PLACE_SECONDS)
        except StoreUnavailable as error:
            return str(error)
        except TimeoutError:
            return f"no answer within {self._patience:g} s: it is locked, or cannot be reached"
        return ""
