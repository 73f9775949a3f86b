"""Changes of manifests: by notification of the kernel, or by polling every second."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from watchfiles import Change, awatch

from beckon_manifests.folders import SUFFIXES

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
