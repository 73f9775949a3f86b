"""Shared outcomes: a call runs at one replica at a time.

Every replica answers with the same outcome.
"""

import asyncio
import contextlib
import hashlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import orjson

from beckon_tools.outcomes.ledger import Ledger, Unavailable

logger = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0

Run = Callable[[], Awaitable[bytes]]


class CallKey(NamedTuple):
    """The key of a call: its tool, and source and id of its event.

    One event may be a call of several tools.
    """

    tool: str
    source: str
    id: str


class LeaseLost(Exception):
    """Another replica has the call: the lease was not renewed in time."""


class SharedOutcomes:
    """Outcomes in a ledger, stored for `ttl` seconds.

    The lease of a process that died ends after `lease` seconds.
    """

    def __init__(self, ledger: Ledger, *, lease: float, ttl: float) -> None:
        self._ledger = ledger
        self._lease = lease
        self._ttl = ttl

    async def find_outcome(self, call: CallKey, run: Run) -> bytes:
        """Return the outcome of a call, running it if no replica does.

        Waits while another replica runs it. Raises the exceptions of `run`, and `Unavailable` if the
        ledger cannot say whether the call runs: it is not run then.
        """
        key = _key_of("call", call)
        pause = _FIRST_PAUSE
        while True:
            owner = uuid.uuid4().hex
            claim = await self._ledger.claim(key, owner, self._lease)
            if claim.data is not None:
                return claim.data
            if claim.mine:
                with contextlib.suppress(LeaseLost):
                    return await self._run_leased(key, owner, run)
                logger.warning("event %s was taken over by another replica while it ran here", call.id)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def count_delivery(self, call: CallKey) -> int:
        """Count a delivery of a call; return the number at all replicas.

        Raises `Unavailable`.
        """
        return await self._ledger.count(_key_of("deliveries", call), self._ttl)

    async def close(self) -> None:
        """Close the ledger."""
        await self._ledger.close()

    async def _run_leased(self, key: str, owner: str, run: Run) -> bytes:
        """Run a call, renewing its lease meanwhile.

        The lease of a failed run is released, so that a retry runs again.
        """
        try:
            data = await self._run_call(key, owner, run)
        except BaseException:
            with contextlib.suppress(Unavailable):  # the lease ends by itself
                await self._ledger.release(key, owner)
            raise
        try:
            await self._ledger.store_outcome(key, owner, data, self._ttl)
        except Unavailable as error:
            # It has happened, and whoever waits shall know what came of it.
            logger.warning("an outcome is not shared, a repetition elsewhere would run again: %s", error)
        return data

    async def _run_call(self, key: str, owner: str, run: Run) -> bytes:
        running = asyncio.ensure_future(run())
        holding = asyncio.create_task(self._renew_lease(key, owner))
        try:
            await asyncio.wait((running, holding), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            raise LeaseLost
        finally:
            for task in (running, holding):
                task.cancel()
            await asyncio.gather(running, holding, return_exceptions=True)

    async def _renew_lease(self, key: str, owner: str) -> None:
        """Renew the lease for as long as it is ours."""
        held = True
        while held:
            await asyncio.sleep(self._lease / 3)
            try:
                held = await self._ledger.renew(key, owner, self._lease)
            except Unavailable as error:
                logger.warning("the lease of a call is not renewed: %s", error)


def _key_of(what: str, call: CallKey) -> str:
    return f"beckon:{what}:{hashlib.sha256(orjson.dumps([*call])).hexdigest()}"
