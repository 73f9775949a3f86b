"""The changes an import would make to the tools in a folder."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beckon_cli.importing.candidates import Found, Tool
from beckon_cli.importing.files import Source
from beckon_contract.catalogue.options import DESTRUCTIVE, HTTP, IDEMPOTENT, IMPORTED_FROM, MCP, READ_ONLY
from beckon_contract.catalogue.parameter_sources import PARAMETERS
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.schema.parameters import normalise, parameters_changed
from beckon_sources.folders import read_folder

_HINTS = (READ_ONLY, DESTRUCTIVE, IDEMPOTENT)
_RULES = (HTTP, MCP)


@dataclass(frozen=True, slots=True)
class Difference:
    """One `new`, `gone` or `changed` tool.

    `what` is its name at the source. `how` says what changed, or is the description of a new tool.
    """

    state: str
    what: str
    how: str = ""


def find_differences(folder: Path, found: Found[Tool]) -> Iterator[Difference]:
    """Yield the differences from an earlier import into the folder.

    A tool that is still in the source but was not chosen this time is not gone.
    """
    before = _imported_before(folder, found.source)
    for tool in found.tools:
        known = before.get(tool.what)
        if known is None:
            yield Difference("new", tool.what, tool.description.partition("\n")[0][:80])
        elif how := ", ".join(_find_changes(known, tool)):
            yield Difference("changed", tool.what, how)
    for name in sorted(before.keys() - found.present):
        yield Difference("gone", name)


def _imported_before(folder: Path, source: Source) -> dict[str, Resource]:
    found = {}
    for resource in read_folder(folder) if folder.is_dir() else ():
        if isinstance(resource, Resource) and resource.kind == "EventType":
            tool = source.unmark(resource.annotations.get(IMPORTED_FROM, ""))
            if tool is not None:
                found[tool] = resource
    return found


def _find_changes(before: Resource, now: Tool) -> Iterator[str]:
    if str(before.spec.get("description", "")).strip() != now.description.strip():
        yield "another description"
    if said := parameters_changed(_parameters_of(before), now.parameters):
        yield said
    for names, said in ((_HINTS, "other hints"), (_RULES, "another rule")):
        if any(before.annotations.get(name) != now.annotations.get(name) for name in names):
            yield said


def _parameters_of(resource: Resource) -> Mapping[str, Any]:
    try:
        return normalise(json.loads(resource.annotations.get(PARAMETERS, "null")))
    except ValueError:
        return {}
