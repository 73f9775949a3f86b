"""The manifests of imported tools, as YAML files."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from beckon_cli.importing.candidates import Found, Tool
from beckon_cli.importing.files import SUFFIX, Written
from beckon_contract.catalogue.options import IMPORTED_FROM
from beckon_contract.catalogue.parameter_sources import PARAMETERS

_STRING = "tag:yaml.org,2002:str"
# What YAML takes for a line break of its own, or for no character at all.
_UNPRINTABLE = re.compile(
    "[^\\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without aliases, with indented lists.

    No reader of manifests expects aliases.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar(_STRING, value, style='"' if _UNPRINTABLE.search(value) else style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def write_manifest(document: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """Return an object as one document of a manifest, with notes as comments above it."""
    lines = [line for note in notes for line in textwrap.wrap(_one_line(note), 98, break_long_words=False)]
    return "".join(["---\n", *(f"# {line}\n" for line in lines), write_yaml(document)])


def _one_line(text: str) -> str:
    """Return a text as one line, safe inside a YAML comment.

    YAML breaks lines at some characters other than a newline, too; they are replaced by spaces.
    """
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def json_text(value: object) -> str:
    """Return a value as indented JSON for a YAML block.

    Characters that YAML does not allow there are written as JSON escapes.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


ADAPTER = "http://beckon-adapter.beckon.svc.cluster.local"
"""Where the chart puts the adapter; the local platform runs one for it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The namespace, Broker and adapter URL of imported tools."""

    adapter: str = ADAPTER
    broker: str = "default"
    namespace: str = ""


def manifest_files(found: Found[Tool], placement: Placement, *, single: bool = False) -> Iterator[Written]:
    """Yield one file for each tool, or a single file for all.

    Tools with a Service for their calls are always in a single file.
    """
    texts = {tool.what: _file_text(found, tool, placement) for tool in found.tools}
    if not texts:
        return
    if single or found.service:
        service = found.service.text if found.service else ""
        yield Written(f"{found.name}{SUFFIX}", service + "".join(texts.values()), frozenset(texts))
        return
    for tool in found.tools:
        yield Written(f"{tool.object_name}{SUFFIX}", texts[tool.what], frozenset({tool.what}))


def _file_text(found: Found[Tool], tool: Tool, placement: Placement) -> str:
    notes = [
        f"Made by `beckon import {found.importer}` of {found.source.name}: {tool.what}. "
        "Another import replaces this.",
        *(f"Note: {note}." for note in tool.notes),
        "yamllint disable rule:line-length",
    ]
    event_type = write_manifest(_event_type(found, tool, placement), notes)
    return event_type + write_manifest(_trigger_manifest(found, tool, placement))


def _event_type(found: Found[Tool], tool: Tool, placement: Placement) -> dict[str, Any]:
    annotations = {
        IMPORTED_FROM: found.source.mark(tool.what),
        **tool.annotations,
        PARAMETERS: json_text(tool.parameters),
    }
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {**metadata_of(tool.object_name, placement.namespace), "annotations": annotations},
        "spec": {"type": tool.type, "description": tool.description},
    }


def _trigger_manifest(found: Found[Tool], tool: Tool, placement: Placement) -> dict[str, Any]:
    subscriber: dict[str, Any] = {"uri": placement.adapter}
    if found.service:
        service = found.service
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
