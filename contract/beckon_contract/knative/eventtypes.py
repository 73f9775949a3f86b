"""EventTypes of every served version as one model.

It is decided here which of them are meant to be tools.

v1beta1 and v1beta2 name the attributes of the event in fields of `spec`; v1beta3 lists them in
`spec.attributes` (knative/eventing pkg/apis/eventing/v1beta{1,2,3}/eventtype_types.go).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from beckon_contract.fields import FieldProblem, Fields, InvalidFields, ReportProblem
from beckon_contract.knative.delivery import Reference
from beckon_contract.kubernetes_objects import Key, Resource

GROUP = "eventing.knative.dev"
KIND = "EventType"
VERSIONS = ("v1beta1", "v1beta2", "v1beta3")
TOOL_LABEL = "beckon.dev/tool"
NO_DESCRIPTION = "NoDescription"
AUTO_CREATED = "Event Type auto-created by controller"  # knative/eventing pkg/eventtype/eventtypes.go

MAX_ATTRIBUTE = 1024  # characters; an attribute travels in an HTTP header
_FIELDS = ("type", "source", "schema", "schemaData", "broker", "reference", "description")
_FIELDS_V1BETA3 = ("attributes", "reference", "description")
_REFERENCE = ("apiVersion", "kind", "name", "namespace", "address")
_ATTRIBUTE = ("name", "required", "value")
# Owners of what Knative creates: Brokers, Triggers, Channels, Sources, Sequences and Parallels.
_CREATORS = frozenset(f"{kind}.knative.dev" for kind in ("eventing", "messaging", "sources", "flows"))
# What a CloudEvents String must not hold: control characters, surrogates and noncharacters.
_NONCHARACTERS = "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
_NO_CHARACTER = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
_TEMPLATE = re.compile(r"\{[^{}]+\}")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class InvalidEventType(InvalidFields):
    """An EventType has mistakes; `problems` names their fields, `reason` their kind."""

    def __init__(self, problems: Iterable[FieldProblem], reason: str = "InvalidEventType") -> None:
        super().__init__(problems)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class EventType:
    """One EventType, whatever version it was written in.

    `schema` is the URI of a schema, `schema_data` the text of one; blank fields are `None`.
    `warnings` name what Knative drops or Beckon does not look at.
    """

    key: Key
    version: str
    type: str
    source: str | None
    description: str
    reference: Reference | None
    broker: str | None
    schema: str | None
    schema_data: str | None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Mapping[str, Any], ...] = ()
    origin: str = ""
    warnings: tuple[FieldProblem, ...] = ()

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.key.namespace

    @property
    def name(self) -> str:
        """The metadata.name."""
        return self.key.name

    @property
    def schema_field(self) -> str:
        """The field of a schema URI in this version."""
        return "spec.attributes[schemadata]" if self.version == "v1beta3" else "spec.schema"


def is_event_type(resource: Resource) -> bool:
    """Return True if an object is a Knative EventType of any version."""
    return resource.group == GROUP and resource.kind == KIND


def parse_event_type(resource: Resource) -> EventType:
    """Read an EventType; raise `InvalidEventType` with every mistake in it."""
    if resource.version not in VERSIONS:
        message = f"{resource.api_version} is not served by Knative; write {GROUP}/v1beta2"
        raise InvalidEventType([FieldProblem("apiVersion", message)], "UnsupportedVersion")
    report = ReportProblem()
    spec = Fields(resource.spec, "spec", report)
    values = _from_attributes(spec) if resource.version == "v1beta3" else _from_fields(spec)
    _check_name(resource.name, report)
    event_type = EventType(
        key=resource.key,
        version=resource.version,
        type=values.get("type") or "",
        source=values.get("source") or None,
        description=(spec.text("description") or "").strip(),
        reference=_reference(spec, resource.namespace),
        broker=values.get("broker") or None,
        schema=_written(values.get("schema")),
        schema_data=_written(values.get("schemaData")),
        labels=resource.labels,
        annotations=resource.annotations,
        owners=resource.owners,
        origin=resource.origin,
        warnings=tuple(report.warnings),
    )
    if report.problems:
        raise InvalidEventType(report.problems)
    return event_type


def why_no_tool(event_type: EventType) -> tuple[str, str] | None:
    """Return the reason and message if an EventType is no tool.

    The result is `None` for a tool. The label decides; without it, an EventType is a tool if it has a
    description and no controller created it. Raises `InvalidEventType` for a label that is neither true nor
    false.
    """
    label = event_type.labels.get(TOOL_LABEL)
    if label == "true":
        return None
    if label == "false":
        return "OptedOut", f"label {TOOL_LABEL} is false"
    if label is not None:
        message = f'must be "true" or "false", not {label[:40]!r}'
        raise InvalidEventType([FieldProblem(f"metadata.labels[{TOOL_LABEL}]", message)], "InvalidLabel")
    creator = _creator(event_type)
    if creator is not None:
        return (
            "MadeByController",
            f'created by {creator}; set label {TOOL_LABEL}: "true" to offer it all the same',
        )
    if not event_type.description:
        return NO_DESCRIPTION, f'no spec.description; write one, or set label {TOOL_LABEL}: "true"'
    return None


def _creator(event_type: EventType) -> str | None:
    """Return the creator of an EventType not written by a person.

    It is a source, or the auto-creation of Knative.
    """
    if event_type.description == AUTO_CREATED:
        return "Knative's EventType auto-creation"
    for owner in event_type.owners:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        if owner.get("controller") is True or group in _CREATORS:
            return f"{owner.get('kind')} {owner.get('name')}"
    return None


def _from_fields(spec: Fields) -> dict[str, str | None]:
    """Read the attributes of the event as v1beta1 and v1beta2 write them."""
    _warn_unknown(spec, _FIELDS)
    if spec.values.get("attributes") is not None:
        spec.problem("attributes", "belongs to v1beta3; write spec.type and spec.source instead")
    values = {name: spec.text(name) for name in ("type", "source", "schema", "schemaData", "broker")}
    if not values["type"] and not spec.values.get("type"):
        spec.problem("type", "missing; write the type of the event that calls the tool")
    _check_value(spec, "type", values["type"])
    _check_value(spec, "source", values["source"])
    return values


def _from_attributes(spec: Fields) -> dict[str, str | None]:
    """Read the attributes of the event as v1beta3 writes them; `schemadata` is the schema URI."""
    _warn_unknown(spec, _FIELDS_V1BETA3)
    values: dict[str, str | None] = {}
    for attribute in spec.children("attributes"):
        _warn_unknown(attribute, _ATTRIBUTE)
        name, value = attribute.text("name"), attribute.text("value")
        if not name:
            attribute.problem("name", "missing; write the name of a CloudEvents attribute")
        elif name in values:
            attribute.problem("name", f"{name!r} is in the list twice")
        else:
            values[name] = _plain(attribute, name, value)
    if not values.get("type") and not spec.report.problems:
        spec.problem("attributes", "has no type; add {name: type, required: true, value: THE-TYPE}")
    return {
        "type": values.get("type"),
        "source": values.get("source"),
        "schema": values.get("schemadata"),
    }


def _plain(attribute: Fields, name: str, value: str | None) -> str | None:
    """Return an attribute's value if a call can carry it. A template names no single value."""
    if name not in {"type", "source"} or not value:
        return value
    _check_value(attribute, "value", value)
    if not _TEMPLATE.search(value):
        return value
    if name == "type":
        attribute.problem("value", f"{value!r} is a template; a call needs one exact type")
    else:
        attribute.warn("value", f"{value!r} is a template; calls carry the agent's own source")
    return None


def _check_value(fields: Fields, name: str, value: str | None) -> None:
    if not value:
        return
    if len(value) > MAX_ATTRIBUTE:
        fields.problem(name, f"must be at most {MAX_ATTRIBUTE} characters, not {len(value)}")
    if _NO_CHARACTER.search(value) or value != value.strip():
        fields.problem(name, "must have no control characters and no space around it")


def _check_name(name: str, report: ReportProblem) -> None:
    """Note a metadata.name refused by the API server (RFC 1123 subdomain)."""
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        message = f"{name[:60]!r} is no Kubernetes name: lower-case letters, digits, '-' and '.', at most 253"
        report.problems.append(FieldProblem("metadata.name", message))


def _reference(spec: Fields, namespace: str) -> Reference | None:
    reference = spec.child("reference")
    if reference is None:
        return None
    _warn_unknown(reference, _REFERENCE)
    texts = {name: reference.text(name) for name in _REFERENCE}
    for name in ("apiVersion", "kind", "name"):
        if not texts[name] and not reference.values.get(name):
            reference.problem(name, "missing; a reference needs apiVersion, kind and name")
    if texts["address"]:
        reference.warn("address", "is not looked at: events go to the first address of the object")
    return Reference(
        api_version=texts["apiVersion"] or "",
        kind=texts["kind"] or "",
        namespace=texts["namespace"] or namespace,
        name=texts["name"] or "",
    )


def _warn_unknown(fields: Fields, known: tuple[str, ...]) -> None:
    for name in fields.unknown(known):
        fields.warn(name, f"unknown field, which Knative drops; the fields are {', '.join(known)}")


def _written(text: str | None) -> str | None:
    return text if text and text.strip() else None
