"""All objects in folders of manifests, followed as they change; only changed files are read again."""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from beckon_contract.kubernetes_objects import MAX_TEXT, Resource, Unreadable, parse_manifests
from beckon_contract.yamltext import NotReadable, find_line, split_documents

logger = logging.getLogger(__name__)

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_ORIGIN = re.compile(r"(.*?)(?:, document (\d+))?((?:, item \d+)*)", re.DOTALL)
_WRITING_SECONDS = 1.0
_Mark = tuple[int, int, int]  # what changes when a file does: time of change, size, inode


@dataclass(frozen=True, slots=True)
class _File:
    mark: _Mark
    resources: tuple[Resource, ...]
    problems: tuple[Unreadable, ...] = ()


class ManifestFolders:
    """Reads folders in order; later objects replace earlier ones of one key.

    Of objects with one key, the later folder's counts, and within a folder the later file's. A file or
    document that can no longer be read keeps its last content, so that a broken edit drops nothing. So does
    one that has just become empty: most programs empty a file before they write it. A deleted folder counts
    as empty.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._files: dict[Path, _File] = {}
        self._read_once = False

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All objects; later ones replace earlier ones."""
        return tuple(resource for file in self._files.values() for resource in file.resources)

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The unreadable files and documents of the last refresh."""
        return tuple(problem for file in self._files.values() for problem in file.problems)

    def refresh(self) -> bool:
        """Read the changed files; return True if anything has changed. Blocks on the file system."""
        files = dict(self._scan())
        changed = not self._read_once or files != self._files or list(files) != list(self._files)
        self._files, self._read_once = files, True
        return changed

    def _scan(self) -> Iterator[tuple[Path, _File]]:
        for folder in self._folders:
            for path in sorted(_manifest_paths(folder)):
                file = self._read(path)
                if file is not None:
                    yield path, file

    def _read(self, path: Path) -> _File | None:
        """Return a file's content, from memory if the file is unchanged.

        `None` if the file has just been deleted.
        """
        known = self._files.get(path)
        try:
            stat = path.stat()
            mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if known is not None and (known.mark == mark or _is_being_written(stat)):
                return known
            contents = list(_parse(path, stat.st_size))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            mark, contents = (0, 0, 0), [Unreadable(str(path), f"cannot be read: {error}")]
        resources = tuple(each for each in contents if isinstance(each, Resource))
        problems = tuple(each for each in contents if isinstance(each, Unreadable))
        if problems and known is not None:
            present = {resource.key for resource in resources}
            resources = (*(each for each in known.resources if each.key not in present), *resources)
        for problem in problems:
            if known is None or problem not in known.problems:
                logger.warning("%s: %s; what it last held stays in force", problem.origin, problem.message)
        return _File(mark, resources, problems)


def _is_being_written(stat: os.stat_result) -> bool:
    return stat.st_size == 0 and 0 <= time.time() - stat.st_mtime < _WRITING_SECONDS


def read_folder(folder: Path) -> list[Resource | Unreadable]:
    """Return all objects below a folder, and all unreadable parts. Blocks on the file system."""
    return [resource for path in sorted(_manifest_paths(folder)) for resource in read_file(path)]


def read_file(path: Path) -> list[Resource | Unreadable]:
    """Return all objects in a file, and all unreadable parts. Blocks on the file system."""
    try:
        return list(_parse(path, path.stat().st_size))
    except (OSError, UnicodeDecodeError) as error:
        return [Unreadable(str(path), f"cannot be read: {error}")]


def locate_field(origin: str, field: str) -> str:
    """Return the place of a field as `FILE, line N`, from the origin of its object.

    It is the origin itself if the file has changed and the object is not found. Blocks on the file system.
    """
    parts = _ORIGIN.fullmatch(origin)
    assert parts is not None  # noqa: S101  # it matches every text
    path, number, items = parts.groups()
    outer = "".join(f"items[{int(item) - 1}]." for item in re.findall(r"\d+", items))
    try:
        documents = list(split_documents(Path(path).read_text(encoding="utf-8")))
        line, document = documents[int(number or 1) - 1]
        return f"{path}, line {find_line(document, outer + field, line)}"
    except (OSError, UnicodeDecodeError, IndexError, NotReadable):
        return origin


def _parse(path: Path, size: int) -> Iterator[Resource | Unreadable]:
    if size > MAX_TEXT:
        yield Unreadable(str(path), f"the file is larger than {MAX_TEXT} bytes; split it")
        return
    yield from parse_manifests(path.read_text(encoding="utf-8"), str(path))


def _manifest_paths(folder: Path) -> Iterator[Path]:
    """Yield the manifest files, without hidden files and folders.

    Mounted ConfigMaps have old versions in hidden folders.
    """
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if Path(name).suffix in SUFFIXES and not name.startswith("."):
                yield Path(parent, name)


_DEBOUNCE_MS = 200
_SWAPPED = "..data"  # the link that the kubelet moves when a mounted ConfigMap changes
_RESYNC_MS = 1000  # notifications can be lost, or absent on a network file system


async def ticks(folders: Sequence[Path]) -> AsyncGenerator[None]:
    """Yield soon after a manifest has changed, and once a second in any case, until closed."""
    from watchfiles import awatch  # noqa: PLC0415  # for those that follow folders alone, not `beckon check`

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


def _is_manifest(_: object, path: str) -> bool:
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
        reading = self._readings
        async with self._reading:
            if self._readings > reading:  # one that began after this call has ended meanwhile
                return
            self._readings += 1
            try:
                contents = await asyncio.to_thread(self._read)
                if contents is not None:
                    self._take(contents)
            except Exception:
                logger.exception("the manifests could not be read; the last state stays in force")

    async def run(self) -> None:
        """Follow the folders until cancelled, beginning with what has changed since the last reading."""
        await self.refresh()
        async with aclosing(ticks(self._folders)) as changes:
            async for _ in changes:
                await self.refresh()
