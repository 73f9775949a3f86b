"""Periodic work on stored runs, by any replica: deadlines, clean-up, deletion."""

import asyncio
import logging
import time

from beckon_agent.core.records import FINAL
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.tool_calls.outcome import failed_outcome
from beckon_contract.failures import Reason

_AT_ONCE = 100
_HOUR = 3600.0
_LINGER = 5.0  # seconds; followers at other replicas look more often

logger = logging.getLogger(__name__)


class Housekeeping:
    """Ends overdue calls, and deletes old runs.

    Ended runs are kept for `keep_seconds`; `None` is for ever.
    """

    def __init__(self, store: Store, keep_seconds: float | None) -> None:
        self._store = store
        self._keep_seconds = keep_seconds
        self._purge_at = time.monotonic() + _HOUR

    async def run_forever(self, every: float) -> None:
        """Do the due work in intervals of `every` seconds, until cancelled."""
        while True:
            try:
                await self.run_once()
            except StoreUnavailable as error:
                logger.warning("the store does not answer: %s", error)
            await asyncio.sleep(every)

    async def delete_soon(self, run_id: str) -> None:
        """Delete an unkept run a few seconds after its end.

        If this fails, `purge` deletes it later.
        """
        await asyncio.sleep(_LINGER)
        try:
            run = await self._store.runs.get(run_id)
            if run is not None and run.status in FINAL:
                await self._store.runs.delete(run_id)
        except StoreUnavailable as error:
            logger.warning("run %s is deleted later: %s", run_id, error)

    async def run_once(self) -> None:
        """Do the due work; raises `StoreUnavailable`."""
        await self._end_waiting()
        if time.monotonic() >= self._purge_at:
            self._purge_at = time.monotonic() + _HOUR
            await self.purge_runs()

    async def purge_runs(self) -> int:
        """Delete the runs past their retention; return their number."""
        deleted = await self._store.runs.purge(self._keep_seconds)
        if deleted:
            logger.info("deleted %d runs that have ended long ago", deleted)
        return deleted

    async def _end_waiting(self) -> None:
        """Finish overdue calls as failed, with a timeout.

        Their tools have accepted them, and not answered in time.
        """
        for run_id, call in await self._store.journal.list_overdue(most=_AT_ONCE):
            outcome = failed_outcome(
                Reason.TIMEOUT, f"{call.name} took the call, and its answer has not come in time"
            )
            if await self._store.journal.finish_call(
                call.event_id, result=outcome.result, failed=True, seconds=None
            ):
                logger.warning("run %s: %s has not answered call %s", run_id, call.name, call.event_id)
