"""Where the Brokers and Triggers come from: folders of manifests, or the API server (`cluster`)."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from beckon_broker.topology import Admission, NotReady, Topology, build_topology
from beckon_contract.kubernetes_objects import Unreadable
from beckon_sources.folders import Follower, ManifestFolders

logger = logging.getLogger(__name__)

Apply = Callable[[Topology], None]


class Source(Protocol):
    """Puts each new topology in force while it runs."""

    is_cluster: bool

    @property
    def why_not_ready(self) -> str:
        """Why this process must get no events yet; empty if the first topology is in force."""
        ...

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The manifests that cannot be read."""
        ...

    async def catch_up(self) -> None:
        """Bring the topology up to date at once, where that is possible."""
        ...

    async def answer_in_force(self, content: bytes) -> dict[str, Any]:
        """Return which Triggers of a request are in force (`beckon_contract.knative.broker_class`).

        Raises `ValueError` for a request that cannot be read.
        """
        ...

    async def run(self) -> None:
        """Follow the changes until cancelled."""
        ...


class FolderSource:
    """The Brokers and Triggers of folders; the last valid version of each object stays in force."""

    is_cluster = False
    why_not_ready = ""

    def __init__(self, folders: tuple[Path, ...], apply: Apply, base_url: str) -> None:
        self._manifests = ManifestFolders(folders)
        self._apply = apply
        self._base_url = base_url
        self._admission = Admission()
        self._follower = Follower(folders, self._read, apply)

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The files and documents that could not be read."""
        return self._manifests.unreadable

    async def catch_up(self) -> None:
        """Read what has changed in the folders."""
        await self._follower.refresh()

    async def answer_in_force(self, content: bytes) -> dict[str, Any]:
        """Refuse: no operator writes the Triggers of folders."""
        del content
        raise ValueError("this broker reads folders; set BECKON_NAMESPACES for Triggers of the API server")

    async def run(self) -> None:
        """Follow the folders until cancelled."""
        await self._follower.run()

    def _read(self) -> Topology | None:
        """Return the topology if the folders have changed; blocks."""
        if not self._manifests.refresh():
            return None
        return build_topology(self._admission.review(self._manifests.resources), self._base_url)


class LoggedTopology:
    """Puts topologies in force, and logs each object that is not ready once. The log has the reason."""

    def __init__(self, apply: Apply) -> None:
        self._apply = apply
        self._said: frozenset[NotReady] = frozenset()

    def __call__(self, topology: Topology) -> None:
        """Put a topology in force."""
        self._apply(topology)
        for note in topology.not_ready:
            if note not in self._said:
                logger.warning("%s is not ready: %s: %s", note.key, note.reason, note.message)
        self._said = frozenset(topology.not_ready)
        ready = len(topology.subscriptions())
        logger.info("brokers: %d, ready triggers: %d", len(topology.brokers), ready)
