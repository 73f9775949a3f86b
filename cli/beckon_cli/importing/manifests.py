"""The manifests of imported tools, as YAML files."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beckon_cli.importing.candidates import ImportSource, Source, Tool
from beckon_contract.catalogue.annotations import IMPORTED_FROM, PARAMETERS
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.yamltext import UNPRINTABLE, write_yaml
from beckon_sources.folders import read_file

SUFFIX = ".yaml"


class NotOurs(ValueError):
    """A file of the same name was not written by this import. The message says what to do."""


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
    operations: set[str] = set()
    for resource in read_file(path):
        if not isinstance(resource, Resource):
            return None
        if resource.kind == "EventType":
            what = source.unmark(resource.annotations.get(IMPORTED_FROM, ""))
            if what is None:
                return None
            operations.add(what)
    return frozenset(operations) or None


def write_manifest(document: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """Return an object as one document of a manifest, with notes as comments above it."""
    lines = [line for note in notes for line in textwrap.wrap(_one_line(note), 98, break_long_words=False)]
    return "".join(["---\n", *(f"# {line}\n" for line in lines), write_yaml(document)])


def _one_line(text: str) -> str:
    """Return a text as one line, safe inside a YAML comment.

    YAML breaks lines at some characters other than a newline, too; they are replaced by spaces.
    """
    return " ".join(UNPRINTABLE.sub(" ", text).split())


def json_text(value: object) -> str:
    """Return a value as indented JSON for a YAML block.

    Characters that YAML does not allow there are written as JSON escapes.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


ADAPTER = "http://beckon-adapter.beckon.svc.cluster.local"
"""Where the chart puts the adapter; the local platform runs one for it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The namespace, Broker and adapter URL of imported tools."""

    adapter: str = ADAPTER
    broker: str = "default"
    namespace: str = ""


def manifest_files(
    source: ImportSource[Tool], placement: Placement, *, single: bool = False
) -> Iterator[Written]:
    """Yield one file for each tool, or a single file for all.

    Tools with a Service for their calls are always in a single file.
    """
    texts = {tool.what: _file_text(source, tool, placement) for tool in source.tools}
    if not texts:
        return
    if single or source.service:
        service = source.service.text if source.service else ""
        yield Written(f"{source.name}{SUFFIX}", service + "".join(texts.values()), frozenset(texts))
        return
    for tool in source.tools:
        yield Written(f"{tool.object_name}{SUFFIX}", texts[tool.what], frozenset({tool.what}))


def _file_text(source: ImportSource[Tool], tool: Tool, placement: Placement) -> str:
    notes = [
        f"Made by `beckon import {source.importer}` of {source.origin.name}: {tool.what}. "
        "Another import replaces this.",
        *(f"Note: {note}." for note in tool.notes),
        "yamllint disable rule:line-length",
    ]
    event_type = write_manifest(_event_type(source, tool, placement), notes)
    return event_type + write_manifest(_trigger_manifest(source, tool, placement))


def _event_type(source: ImportSource[Tool], tool: Tool, placement: Placement) -> dict[str, Any]:
    annotations = {
        IMPORTED_FROM: source.origin.mark(tool.what),
        **tool.annotations,
        PARAMETERS: json_text(tool.parameters),
    }
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {**metadata_of(tool.object_name, placement.namespace), "annotations": annotations},
        "spec": {"type": tool.type, "description": tool.description},
    }


def _trigger_manifest(source: ImportSource[Tool], tool: Tool, placement: Placement) -> dict[str, Any]:
    subscriber: dict[str, Any] = {"uri": placement.adapter}
    if source.service:
        service = source.service
        subscriber = {"ref": {"apiVersion": service.api_version, "kind": "Service", "name": service.name}}
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": metadata_of(tool.object_name, placement.namespace),
        "spec": {
            "broker": placement.broker,
            "filter": {"attributes": {"type": tool.type}},
            "subscriber": subscriber,
        },
    }


def metadata_of(name: str, namespace: str) -> dict[str, Any]:
    """Return an object's metadata, with its namespace if one is given."""
    return {"name": name, **({"namespace": namespace} if namespace else {})}
