"""Writing what was imported: files of its own are replaced, those of others never."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from beckon_contract.options import IMPORTED_FROM
from beckon_contract.resources import Resource
from beckon_manifests.folders import read_file

SUFFIX = ".yaml"


class NotOurs(ValueError):
    """A file stands in the way that this import has not written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where manifests came from; the annotation `beckon.dev/imported-from` ends with its name.

    `option` is the one that gives them other names.
    """

    name: str
    option: str

    def mark(self, what: str) -> str:
        """Return the annotation's value for one operation."""
        return f"{what} of {self.name}"

    def unmark(self, value: str) -> str | None:
        """Return the operation in an annotation's value, `None` where it is of another source."""
        what = value.removesuffix(f" of {self.name}")
        return what if what != value else None


@dataclass(slots=True)
class Changes:
    """What a run did to the files of a folder, by their names."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Written:
    """One file to be written: its name, its text, and what of the source it holds."""

    name: str
    text: str
    holds: frozenset[str]


def write_files(folder: Path, files: Iterable[Written], source: Source, present: frozenset[str]) -> Changes:
    """Write the files, and remove those of the same source whose operations are gone or stand elsewhere now.

    `present` is what the source still has; a file whose operation was merely not chosen this time stays.
    Raises `NotOurs` before anything is written, and `OSError`.
    """
    files = list(files)
    folder.mkdir(parents=True, exist_ok=True)
    known = {path.name: _holds(path, source) for path in sorted(folder.glob(f"*{SUFFIX}"))}
    for file in files:
        if file.name in known and known[file.name] is None:
            raise NotOurs(
                f"{folder / file.name} was not written by an import of {source.name}; move it, or choose "
                f"another --output or {source.option}"
            )
    changes = Changes()
    for file in files:
        _write(folder / file.name, file.text, changes)
    here = {what for file in files for what in file.holds}
    names = {file.name for file in files}
    for name, holds in known.items():
        if name not in names and holds and all(what in here or what not in present for what in holds):
            (folder / name).unlink()
            changes.removed.append(name)
    return changes


def _write(path: Path, text: str, changes: Changes) -> None:
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


def _holds(path: Path, source: Source) -> frozenset[str] | None:
    """Return what of the source a file holds; `None` for a file that anybody else has written."""
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
