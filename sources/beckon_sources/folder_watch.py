"""Follows folders: by notification of the kernel, or by polling every second."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Generic, TypeVar

from watchfiles import Change, awatch

from beckon_sources.folders import SUFFIXES

logger = logging.getLogger(__name__)

_DEBOUNCE_MS = 200
_SWAPPED = "..data"  # the link that the kubelet moves when a mounted ConfigMap changes
_RESYNC_MS = 1000  # notifications can be lost, or absent on a network file system


async def ticks(folders: Sequence[Path]) -> AsyncGenerator[None]:
    """Yield soon after a manifest has changed, and once a second in any case, until closed."""
    try:
        async for _ in awatch(
            *folders,
            watch_filter=_is_manifest,
            debounce=_DEBOUNCE_MS,
            step=_DEBOUNCE_MS // 4,
            rust_timeout=_RESYNC_MS,
            yield_on_timeout=True,
        ):
            yield
    except (OSError, RuntimeError) as error:
        logger.warning("no notifications of changes (%s): looking every second instead", error)
    while True:
        await asyncio.sleep(_RESYNC_MS / 1000)
        yield


def _is_manifest(_: Change, path: str) -> bool:
    name = Path(path).name
    return name == _SWAPPED or Path(name).suffix in SUFFIXES


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
