"""The catalogue of folders of manifests, reloaded when a file changes."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from beckon_agent.catalogue.explained import Explanation
from beckon_agent.catalogue.judging import Judge
from beckon_agent.catalogue.reach import reachable
from beckon_contract.catalogue import Catalogue, CatalogueBuilder
from beckon_contract.readiness import with_readiness
from beckon_contract.resources import Resource
from beckon_manifests.folders import ManifestFolders
from beckon_manifests.following import Follower

logger = logging.getLogger(__name__)


class FolderSource:
    """Reads EventTypes and Triggers from folders; a later folder wins over an earlier one.

    `caller` is the CloudEvents source of the calls, which Triggers may filter on.
    """

    def __init__(self, folders: Sequence[Path], caller: str) -> None:
        self._paths = folders
        self._folders = ManifestFolders(tuple(folders))
        self._builder = CatalogueBuilder(caller)
        self._caller = caller
        self._resources: Sequence[Resource] = ()
        self._judge: Judge | None = None
        self._followed: list[Callable[[], None]] = []
        self._current = self._read() or Catalogue({})

    @property
    def current(self) -> Catalogue:
        """The catalogue as of the last change."""
        return self._current

    @property
    def resources(self) -> Sequence[Resource]:
        """All objects in the manifests as of the last change; later ones replace earlier ones."""
        return self._resources

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change."""
        self._followed.append(changed)

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what is known of an EventType; all is read again once the manifests have changed."""
        if self._judge is None:
            self._judge = Judge(self._current, self._resources, self._caller)
        return self._judge.explain(namespace, event_type)

    async def watch(self) -> None:
        """Rebuild the catalogue within a second of every change, until cancelled."""
        await Follower(self._paths, self._read, self._take).run()

    def _take(self, catalogue: Catalogue) -> None:
        self._current, self._judge = catalogue, None
        refused = len(catalogue.refusals)
        logger.info("reloaded the catalogue: %d tools, %d refused", len(catalogue.tools), refused)
        for changed in self._followed:
            changed()

    def _read(self) -> Catalogue | None:
        """Return the catalogue if the folders have changed; blocks on the file system."""
        if not self._folders.refresh():
            return None
        resources = with_readiness(self._folders.resources)
        self._resources = resources
        return reachable(self._builder.build([*resources, *self._folders.unreadable]), resources)
