"""Work that any replica does once it is due: claimed in the store, and handled."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from beckon_agent.store.base import StoreUnavailable

logger = logging.getLogger(__name__)

CLAIMED = 20
"""The most claimed at once."""

CLAIM_SECONDS = 30.0
"""The time of a claim; longer than a request."""

REQUEST_SECONDS = 10.0
"""The time limit of a request that the work makes."""


class _OfRun(Protocol):
    @property
    def run_id(self) -> str: ...


Due = TypeVar("Due", bound=_OfRun)


async def handle_due(
    claim: Callable[[], Awaitable[Sequence[Due]]],
    handle: Callable[[Due], Awaitable[None]],
    *,
    look_seconds: float,
    what: str,
) -> None:
    """Claim and handle due work until cancelled; look again after `look_seconds` if there is none.

    An error over one run is logged, and does not stop the work on others. `what` names the work in the log.
    """

    async def handle_safely(due: Due) -> None:
        try:
            await handle(due)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception("%s of run %s failed", what, due.run_id)

    while True:
        claimed: Sequence[Due] = ()
        try:
            claimed = await claim()
            await asyncio.gather(*map(handle_safely, claimed))
        except StoreUnavailable as error:
            logger.warning("%s: later, because the store does not answer: %s", what, error)
            claimed = ()
        if not claimed:
            await asyncio.sleep(look_seconds)
