"""The changes that an import makes to the tools in a folder, and their report."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.text import Text

from beckon_cli.importing.candidates import ImportSource, Part, Skipped, Source, Tool
from beckon_cli.importing.manifests import Changes
from beckon_contract.catalogue.annotations import (
    A2A,
    DESTRUCTIVE,
    HTTP,
    IDEMPOTENT,
    IMPORTED_FROM,
    MCP,
    PARAMETERS,
    READ_ONLY,
    RETURNS,
)
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.schema.parameters import normalise, parameters_changed
from beckon_sources.folders import read_folder

_HINTS = (READ_ONLY, DESTRUCTIVE, IDEMPOTENT)
_RULES = (HTTP, MCP, A2A)
_RESULTS = (RETURNS,)


@dataclass(frozen=True, slots=True)
class Difference:
    """One `new`, `gone` or `changed` tool.

    `what` is its name at the source. `how` says what changed, or is the description of a new tool.
    """

    state: str
    what: str
    how: str = ""


def find_differences(folder: Path, source: ImportSource[Tool]) -> Iterator[Difference]:
    """Yield the differences from an earlier import into the folder.

    A tool that is still in the source but was not chosen this time is not gone.
    """
    before = _imported_before(folder, source.origin)
    for tool in source.tools:
        known = before.get(tool.what)
        if known is None:
            yield Difference("new", tool.what, tool.description.partition("\n")[0][:80])
        elif how := ", ".join(_find_changes(known, tool)):
            yield Difference("changed", tool.what, how)
    for name in sorted(before.keys() - source.present):
        yield Difference("gone", name)


def _imported_before(folder: Path, source: Source) -> dict[str, Resource]:
    before = {}
    for resource in read_folder(folder) if folder.is_dir() else ():
        if isinstance(resource, Resource) and resource.kind == "EventType":
            tool = source.unmark(resource.annotations.get(IMPORTED_FROM, ""))
            if tool is not None:
                before[tool] = resource
    return before


def _find_changes(before: Resource, now: Tool) -> Iterator[str]:
    if str(before.spec.get("description", "")).strip() != now.description.strip():
        yield "another description"
    if change := parameters_changed(_parameters_of(before), now.parameters):
        yield change
    for names, change in ((_HINTS, "other hints"), (_RULES, "another rule"), (_RESULTS, "other results")):
        if any(before.annotations.get(name) != now.annotations.get(name) for name in names):
            yield change


def _parameters_of(resource: Resource) -> Mapping[str, Any]:
    try:
        return normalise(json.loads(resource.annotations.get(PARAMETERS, "null")))
    except ValueError:
        return {}


def required_settings(source: ImportSource[Tool]) -> Iterator[Text]:
    """Yield the adapter settings required by the imported tools.

    The adapter's owner must set them before any of the tools can be called.
    """
    allowed = hosts_of(source)
    if not allowed:
        return
    yield Text("the adapter's owner sets:")
    yield Text(f"BECKON_ADAPTER_ALLOWED_HOSTS={_allowed_hosts(allowed)}")
    needed = credential_parts(source)
    if not needed:
        return
    entries = ", ".join(
        _credential_entry(source, name, part, _secret_file(name, part if len(parts) > 1 else None))
        for name, parts in needed.items()
        for part in parts or [Part("bearer")]
    )
    yield Text(f"BECKON_ADAPTER_CREDENTIALS='[{entries}]'")
    for name, parts in needed.items():
        if len(parts) != 1 or parts[0].kind == "cookie":
            wanted = " and ".join(map(str, parts)) or "a credential that the description does not name"
            yield Text(f"  where {name} must send {wanted}")


def hosts_of(source: ImportSource[Tool]) -> list[str]:
    """Return the hosts of the tools' URLs, as the adapter expects them.

    A host has a scheme unless it is https.
    """
    return sorted({_host_of(each.url) for each in source.tools if each.url})


def _allowed_hosts(hosts: list[str]) -> str:
    """Return the adapter's setting for the allowed hosts.

    It is a list with commas. If any host is on a private network it is YAML, with these hosts marked.
    """
    if not any(map(_is_private, hosts)):
        return ",".join(hosts)
    entries = [f"{{host: '{host}'{', private: true' if _is_private(host) else ''}}}" for host in hosts]
    return f'"[{", ".join(entries)}]"'


def _is_private(host: str) -> bool:
    """Return True for a host on this machine or a private network.

    Only its name or IP address is examined; nothing is resolved.
    """
    name = urlsplit(host if "//" in host else f"//{host}").hostname or ""
    try:
        return not ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".internal", ".lan", ".svc"))


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return host if parts.scheme == "https" else f"{parts.scheme}://{host}"


def _secret_file(name: str, part: Part | None) -> str:
    """Return the file name for a secret of the adapter's owner.

    Each part of a credential has a file of its own.
    """
    suffix = re.sub(r"[^a-z0-9]+", "-", (part.name or part.kind).lower()) if part else ""
    return f"{name}-{suffix}.secret" if suffix else f"{name}.secret"


def _credential_entry(source: ImportSource[Tool], name: str, part: Part, file: str) -> str:
    """Return one credential as the adapter's setting has it."""
    called = sorted(
        {_host_of(each.url) for each in source.tools if each.url and each.credential.name == name}
    )
    kind, sent = ("header", "Cookie") if part.kind == "cookie" else (part.kind, part.name)
    as_ = f", as: {sent}" if sent else ""
    return f"{{name: {name}, hosts: [{', '.join(called)}], type: {kind}{as_}, file: {file}}}"


def credential_parts(source: ImportSource[Tool]) -> Mapping[str, list[Part]]:
    """Return the parts of each credential, by its name."""
    needed: dict[str, dict[tuple[str, str], Part]] = {}
    for each in source.tools:
        if each.credential.name:
            parts = needed.setdefault(each.credential.name, {})
            for part in each.credential.parts:
                parts.setdefault((part.kind, part.name), part)
    return {name: list(parts.values()) for name, parts in needed.items()}


_COLOURS = {"added": "green", "changed": "yellow", "removed": "red"}


def list_items(source: ImportSource[Tool]) -> Iterator[Text]:
    """Yield a line for each chosen item and server, then the counts."""
    for each in source.results:
        what = f"{each.what}  [{', '.join(each.tags)}]" if each.tags else each.what
        if isinstance(each, Skipped):
            yield _skipped_line(what, each.reason)
        else:
            summary = f"  {each.description.splitlines()[0][:80]}"
            yield Text.assemble((each.name, "bold cyan"), f"  {what}", (summary, "dim"))
    for number, server in enumerate(source.servers, start=1):
        yield Text(f"server {number}  {server or '(none)'}")
    yield Text(count_outcomes(source))


def report_import(source: ImportSource[Tool], changes: Changes | None) -> Iterator[Text]:
    """Yield the report of an import as lines.

    They are the files, the skipped items, the counts, and the settings required of the adapter's owner.
    """
    for what, style in _COLOURS.items() if changes else ():
        for name in getattr(changes, what):
            yield Text.assemble((f"{what:<9}", style), name)
    for skipped in source.skipped:
        yield _skipped_line(skipped.what, skipped.reason)
    yield Text(count_outcomes(source, changes))
    yield from required_settings(source)


def count_outcomes(source: ImportSource[Tool], changes: Changes | None = None) -> str:
    """Return the number of items and of each outcome, in one line."""
    chosen = f" ({len(source.results)} chosen)" if len(source.results) < len(source.present) else ""
    line = f"{_counted_title(source)}{chosen}, {len(source.tools)} imported, {len(source.skipped)} skipped"
    if changes is None:
        return line
    done = [(len(getattr(changes, what)), what) for what in ("added", "changed", "unchanged", "removed")]
    return f"{line}; files: {', '.join(f'{count} {what}' for count, what in done)}"


def report_document(source: ImportSource[Tool], changes: Changes | None = None) -> dict[str, object]:
    """Return the report as a JSON document, for programs.

    The key for an item's name at the source depends on the importer: it is `found.noun`.
    """
    return {
        "title": source.title,
        "servers": list(source.servers),
        "tools": [
            {
                "name": each.name,
                source.noun: each.what,
                **each.details,
                "tags": list(each.tags),
                "description": each.description,
                "notes": list(each.notes),
            }
            for each in source.tools
        ],
        "skipped": [{source.noun: each.what, "reason": each.reason} for each in source.skipped],
        "hosts": hosts_of(source),
        "credentials": {
            name: [str(part) for part in parts] for name, parts in credential_parts(source).items()
        },
        **({"files": {what: getattr(changes, what) for what in Changes.__slots__}} if changes else {}),
    }


def list_differences(source: ImportSource[Tool], changed: Sequence[Difference]) -> Iterator[Text]:
    """Yield a line for each difference from a folder, then their number."""
    for each in changed:
        yield Text.assemble((f"{each.state:<9}", "yellow"), each.what, f": {each.how}" if each.how else "")
    yield Text(f"{_counted_title(source)}, {len(changed)} differ")


def differences_document(source: ImportSource[Tool], changed: Sequence[Difference]) -> dict[str, object]:
    """Return the differences as a JSON document, for programs."""
    lines = [{"difference": each.state, source.noun: each.what, "how": each.how} for each in changed]
    return {"title": source.title, "differences": lines}


def _counted_title(source: ImportSource[Tool]) -> str:
    all_of = len(source.present)
    return f"{source.title}: {all_of} {source.noun}{'' if all_of == 1 else 's'}"


def _skipped_line(what: str, reason: str) -> Text:
    return Text.assemble(("skipped  ", "yellow"), f"{what}: {reason}")
