"""Keeps the broker's topology true to the manifest folders."""

import asyncio
import logging
from contextlib import aclosing
from pathlib import Path

from beckon_broker.admission import Admission, NotReady
from beckon_broker.dispatcher import Dispatcher
from beckon_broker.topology import Topology, build_topology
from beckon_manifests.changes import ticks
from beckon_manifests.folders import ManifestFolders

logger = logging.getLogger(__name__)


class Watcher:
    """Reads the folders and hands the dispatcher a new topology whenever they change."""

    def __init__(self, manifests: ManifestFolders, dispatcher: Dispatcher, base_url: str) -> None:
        self._manifests = manifests
        self._dispatcher = dispatcher
        self._base_url = base_url
        self._admission = Admission()
        self._reading = asyncio.Lock()
        self._readings = 0
        self._said: frozenset[NotReady] = frozenset()

    async def refresh(self) -> None:
        """Apply what the folders say now; callers that wait at once share a reading.

        No manifest ends the broker.
        """
        begun = self._readings
        async with self._reading:
            if self._readings == begun:  # otherwise one that began after this call has just ended
                self._readings += 1
                await self._refresh()

    async def run(self, folders: tuple[Path, ...]) -> None:
        """Follow the folders until cancelled."""
        async with aclosing(ticks(folders)) as changes:
            async for _ in changes:
                await self.refresh()

    async def _refresh(self) -> None:
        try:
            topology = await asyncio.to_thread(self._read)
        except Exception:
            logger.exception("the manifests could not be applied; the last state stays in force")
            return
        if topology is None:
            return
        self._dispatcher.apply(topology)
        for note in topology.not_ready:
            if note not in self._said:
                logger.warning("%s is not ready: %s: %s", note.key, note.reason, note.message)
        self._said = frozenset(topology.not_ready)
        ready = len(topology.subscriptions())
        logger.info("brokers: %d, ready triggers: %d", len(topology.brokers), ready)

    def _read(self) -> Topology | None:
        """Return the topology if the folders have changed; blocks."""
        if not self._manifests.refresh():
            return None
        return build_topology(self._admission.review(self._manifests.resources), self._base_url)
