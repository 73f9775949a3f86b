"""The source files of a tool's local command, to restart the tool when one changes.

They are the files that the command names, the files with the same ending beside them, and the Python packages
beside them. Hidden folders and folders of installed packages are left out.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_SUFFIXES = frozenset(
    {".cjs", ".go", ".java", ".js", ".lua", ".mjs", ".php", ".pl", ".py", ".rb", ".sh", ".ts"}
)  # and no others: a command may name its database, too
_INSTALLED = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
_MOST_FILES = 1000
_Mark = tuple[int, int, int]


class CodeFiles:
    """The source files of a command with their times of change."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._named = list(dict.fromkeys(_named_files(command, environment)))
        self._marks = self._read()

    def read_changes(self) -> list[Path]:
        """Return the files that are new, changed or gone since the last call. Blocks on the file system."""
        before, self._marks = self._marks, self._read()
        return sorted(
            path for path in before.keys() | self._marks.keys() if before.get(path) != self._marks.get(path)
        )

    def _read(self) -> dict[Path, _Mark]:
        marks: dict[Path, _Mark] = {}
        for path in self._paths():
            if len(marks) >= _MOST_FILES:
                break
            try:
                stat = path.stat()
            except OSError:  # it has just been deleted, or an editor replaces it
                continue
            marks[path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return marks

    def _paths(self) -> Iterator[Path]:
        yield from self._named
        for folder, ending in dict.fromkeys((path.parent, path.suffix) for path in self._named):
            if ending in _SUFFIXES:
                yield from _files_beside(folder, ending)


def _files_beside(folder: Path, ending: str) -> Iterator[Path]:
    """Yield the files of a folder with an ending, and those of the Python packages in it."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _INSTALLED:
            continue
        if entry.name.endswith(ending):
            yield Path(entry.path)
        elif ending == ".py" and Path(entry.path, "__init__.py").is_file():
            yield from _files_beside(Path(entry.path), ending)


def _named_files(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the source files that a command names: as a path, or as a module of Python."""
    program, *words = command
    if os.sep in program and not _is_installed(Path(program)):
        yield Path(program).absolute()
    for word, before in zip(words, (program, *words), strict=False):
        path = Path(word)
        if path.suffix in _SUFFIXES and path.is_file():
            yield path.absolute()
        elif before == "-m" or ":" in word:
            yield from _module_files(word.partition(":")[0], environment)


def _module_files(module: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the file of a module, if it is one of the user's."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return
    for entry in ("", *environment.get("PYTHONPATH", "").split(os.pathsep)):
        base = Path(entry, *parts).absolute()
        for path in (base.with_suffix(".py"), base / "__main__.py", base / "__init__.py"):
            if path.is_file() and not _is_installed(path):
                yield path
                return


def _is_installed(path: Path) -> bool:
    """Return True for a part of this Python or of an environment of packages."""
    absolute = path.absolute()
    return absolute.is_relative_to(sys.prefix) or not _INSTALLED.isdisjoint(absolute.parts)
