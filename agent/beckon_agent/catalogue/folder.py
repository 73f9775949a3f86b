"""The catalogue of folders of manifests, reloaded when a file changes."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from watchfiles import awatch

from beckon_contract.catalogue import Catalogue, build_catalogue
from beckon_contract.resources import Resource, Unreadable, parse_manifests

logger = logging.getLogger(__name__)

_ENDINGS = (".yaml", ".yml", ".json")
_DEBOUNCE_MS = 200


class FolderSource:
    """Reads EventTypes and Triggers from folders; a later folder wins over an earlier one."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._current = build_catalogue(read_folders(folders))

    @property
    def current(self) -> Catalogue:
        """The catalogue as of the last change."""
        return self._current

    async def watch(self) -> None:
        """Rebuild the catalogue within a second of every change, until cancelled."""
        async for _ in awatch(*self._folders, debounce=_DEBOUNCE_MS, ignore_permission_denied=True):
            self._current = build_catalogue(read_folders(self._folders))
            logger.info(
                "reloaded the catalogue: %d tools, %d refused",
                len(self._current.tools),
                len(self._current.refusals),
            )


def read_folders(folders: Iterable[Path]) -> list[Resource | Unreadable]:
    """Return every object in the manifests below these folders."""
    found: list[Resource | Unreadable] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in _ENDINGS and path.is_file():
                found.extend(_read_file(path, path.relative_to(folder)))
    return found


def _read_file(path: Path, name: Path) -> Iterable[Resource | Unreadable]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [Unreadable(str(name), f"cannot be read: {error}")]
    return parse_manifests(text, str(name))
