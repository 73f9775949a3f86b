"""Keeps the state built from manifests up to date."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Generic, TypeVar

from beckon_manifests.changes import ticks

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Follower(Generic[T]):
    """Reads folders after every change, and on request.

    `read` blocks, and returns `None` if nothing has changed; `take` gets any other result, in the event loop.
    An error of either does not end the service: the last state stays in force.
    """

    def __init__(
        self, folders: Sequence[Path], read: Callable[[], T | None], take: Callable[[T], None]
    ) -> None:
        self._folders = folders
        self._read = read
        self._take = take
        self._reading = asyncio.Lock()
        self._readings = 0

    async def refresh(self) -> None:
        """Bring the state up to date with the folders.

        Returns when everything in the folders before the call is in force; waiting calls share a reading.
        For callers with a reference to an unknown object: each service follows the folders on its own, and
        another one may have read it first.
        """
        begun = self._readings
        async with self._reading:
            if self._readings > begun:  # one that began after this call has ended meanwhile
                return
            self._readings += 1
            try:
                found = await asyncio.to_thread(self._read)
                if found is not None:
                    self._take(found)
            except Exception:
                logger.exception("the manifests could not be read; the last state stays in force")

    async def run(self) -> None:
        """Follow the folders until cancelled."""
        async with aclosing(ticks(self._folders)) as changes:
            async for _ in changes:
                await self.refresh()
