"""Writing of manifests: an import replaces its own files only."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from beckon_contract.catalogue.options import IMPORTED_FROM
from beckon_contract.kubernetes_objects import Resource
from beckon_sources.folders import read_file

SUFFIX = ".yaml"


class NotOurs(ValueError):
    """A file in the way was not written by this import.

    The message says what to do.
    """


@dataclass(frozen=True, slots=True)
class Source:
    """The source of manifests.

    The annotation `beckon.dev/imported-from` ends with its `name`. `option` is the command-line option that
    gives the manifests other names.
    """

    name: str
    option: str

    def mark(self, what: str) -> str:
        """Return the annotation's value for one operation."""
        return f"{what} of {self.name}"

    def unmark(self, value: str) -> str | None:
        """Return the operation in an annotation's value.

        Returns `None` for a value of another source.
        """
        what = value.removesuffix(f" of {self.name}")
        return what if what != value else None


@dataclass(slots=True)
class Changes:
    """The names of a folder's files, by outcome of the import."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Written:
    """One file to write: its name, text and operations.

    `holds` names the items of the source that are in the file.
    """

    name: str
    text: str
    holds: frozenset[str]


def write_files(folder: Path, files: Iterable[Written], source: Source, present: frozenset[str]) -> Changes:
    """Write the files, and remove outdated ones of the same source.

    A file is outdated if each of its operations is gone from the source, or is in one of `files` now.
    `present` is what the source still has; a file whose operation was merely not chosen this time stays.
    Raises `NotOurs` before anything is written, and `OSError`.
    """
    files = list(files)
    folder.mkdir(parents=True, exist_ok=True)
    known = {path.name: _operations_in(path, source) for path in sorted(folder.glob(f"*{SUFFIX}"))}
    for file in files:
        if file.name in known and known[file.name] is None:
            raise NotOurs(
                f"{folder / file.name} was not written by an import of {source.name}; move it, or choose "
                f"another --output or {source.option}"
            )
    changes = Changes()
    for file in files:
        _write_file(folder / file.name, file.text, changes)
    here = {what for file in files for what in file.holds}
    names = {file.name for file in files}
    for name, holds in known.items():
        if name not in names and holds and all(what in here or what not in present for what in holds):
            (folder / name).unlink()
            changes.removed.append(name)
    return changes


def _write_file(path: Path, text: str, changes: Changes) -> None:
    if not path.exists():
        changes.added.append(path.name)
    elif path.read_text(encoding="utf-8") == text:
        changes.unchanged.append(path.name)
        return
    else:
        changes.changed.append(path.name)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _operations_in(path: Path, source: Source) -> frozenset[str] | None:
    """Return the source's operations in a file.

    Returns `None` for a file that no import of this source has written.
    """
    found: set[str] = set()
    for resource in read_file(path):
        if not isinstance(resource, Resource):
            return None
        if resource.kind == "EventType":
            what = source.unmark(resource.annotations.get(IMPORTED_FROM, ""))
            if what is None:
                return None
            found.add(what)
    return frozenset(found) or None
