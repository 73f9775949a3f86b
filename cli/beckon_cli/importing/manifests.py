"""The manifests of imported tools: an EventType and a Trigger each.

The EventType has the adapter's rule.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from beckon_cli.importing.candidates import Found, Tool
from beckon_cli.importing.files import SUFFIX, Written
from beckon_cli.importing.yamltext import json_text, write_manifest
from beckon_contract.options import IMPORTED_FROM
from beckon_contract.places import PARAMETERS

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
