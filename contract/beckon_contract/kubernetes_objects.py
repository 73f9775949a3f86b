"""Kubernetes objects: manifests, their metadata, and conditions in their status.

Conditions have the shapes of Kubernetes' API conventions, "Typical status properties".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from beckon_contract.yamltext import NotReadable, check_depth, read_document, split_documents

DEFAULT_NAMESPACE = "default"
MAX_TEXT = 32 * 1024 * 1024  # characters of one file; 5,000 EventTypes in one are about five million
MAX_NAME = 253

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A label of RFC 1123, such as the name of a namespace."""
_NOT_IN_NAMES = re.compile(r"[/%\x00-\x20\x7f]")  # a name is a segment of the API's paths


class Key(NamedTuple):
    """The unique identity of an object, without the version of its API."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the kind and the name, as kubectl would print them."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One object: its identity, its metadata, and spec and status as plain data.

    `origin` says where it came from ("weather.yaml, document 2"), for messages. `name_is_prefix`
    marks an object whose name is only the beginning of the one that the API server will give it.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Mapping[str, Any], ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    uid: str = ""
    generation: int = 0
    origin: str = ""
    name_is_prefix: bool = False
    key: Key = field(init=False, repr=False, compare=False)
    "The identity of this object, whatever version it was written in; it is needed often, so it is stored."

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", Key(self.group, self.kind, self.namespace, self.name))

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version inside the group, such as v1beta2."""
        return self.api_version.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A manifest or document without a Kubernetes object; `message` explains it."""

    origin: str
    message: str


def parse_manifests(
    text: str, origin: str, namespace: str = DEFAULT_NAMESPACE
) -> Iterator[Resource | Unreadable]:
    """Yield every object in a YAML or JSON text, `List` objects opened, in their order.

    A document that cannot be read is one `Unreadable`; those before and after it count.
    """
    if len(text) > MAX_TEXT:
        yield Unreadable(origin, f"the file is larger than {MAX_TEXT} characters; split it")
        return
    for number, (line, document) in enumerate(split_documents(text), start=1):
        where = origin if number == 1 else f"{origin}, document {number}"
        try:
            resource = read_document(document, line)
        except NotReadable as error:
            yield Unreadable(where, f"not YAML: {error}")
            continue
        if resource is not None:
            yield from _open(resource, where, namespace)


def from_object(
    document: Mapping[str, Any], origin: str = "", namespace: str = DEFAULT_NAMESPACE
) -> Resource:
    """Read one object as decoded from YAML or JSON; raise `ValueError` otherwise."""
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise ValueError("apiVersion and kind are missing or no strings")
    check_depth(document)
    metadata = _mapping(document, "metadata")
    name, generated = _text(metadata, "name"), _text(metadata, "generateName")
    generation = metadata.get("generation") or 0
    if not isinstance(generation, int):
        raise ValueError("metadata.generation must be an integer")
    return Resource(
        api_version=api_version,
        kind=kind,
        namespace=_checked_namespace(_text(metadata, "namespace") or namespace),
        name=_checked_name(name or generated.rstrip("-.")),
        spec=_mapping(document, "spec"),
        labels=_strings(metadata, "labels"),
        annotations=_strings(metadata, "annotations"),
        owners=_owners(metadata),
        status=_mapping(document, "status"),
        uid=_text(metadata, "uid"),
        generation=generation,
        origin=origin,
        name_is_prefix=not name,
    )


def _open(document: object, origin: str, namespace: str) -> Iterator[Resource | Unreadable]:
    if not isinstance(document, Mapping):
        yield Unreadable(origin, "not a Kubernetes object: expected a mapping with apiVersion and kind")
        return
    kind, items = document.get("kind"), document.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for number, item in enumerate(items, start=1):
            yield from _open(_listed(item, document, kind), f"{origin}, item {number}", namespace)
        return
    try:
        yield from_object(document, origin, namespace)
    except ValueError as error:
        yield Unreadable(origin, f"{_called(document)}: {error}")


def _called(document: Mapping[str, Any]) -> str:
    """Return a description of an invalid object for the message."""
    kind, metadata = document.get("kind"), document.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return "not a Kubernetes object"
    name = metadata.get("name")
    return f"not a valid {kind[:60]}" + (f" {name[:60]!r}" if isinstance(name, str) else "")


def _listed(item: object, outer: Mapping[str, Any], kind: str) -> object:
    """Return an item of a typed list, made complete. The API server leaves out its apiVersion and kind."""
    if not isinstance(item, Mapping) or kind == "List" or "kind" in item:
        return item
    return {"apiVersion": outer.get("apiVersion"), "kind": kind.removesuffix("List"), **item}


def _mapping(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping")
    return value


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"metadata.{name} must be a string; write it in quotes")
    return value or ""


def _strings(metadata: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return labels or annotations; YAML turns unquoted `true` and `5` into other types."""
    value = metadata.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"metadata.{name} must be a mapping")
    texts: Mapping[str, str] = value or {}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"metadata.{name}[{key!r}] must be a string; write it in quotes")
    return texts


def _owners(metadata: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(owner, Mapping) for owner in owners):
        raise ValueError("metadata.ownerReferences must be a list of mappings")
    return tuple(owners)


def _checked_name(name: str) -> str:
    if not name:
        raise ValueError("metadata.name is missing")
    if len(name) > MAX_NAME or name in {".", ".."} or _NOT_IN_NAMES.search(name):
        raise ValueError(f"metadata.name {name[:60]!r} is no name that Kubernetes takes")
    return name


def _checked_namespace(namespace: str) -> str:
    if not DNS_LABEL.fullmatch(namespace):
        raise ValueError(
            f"metadata.namespace {namespace[:70]!r} is none: lower-case letters, digits and '-', at most 63"
        )
    return namespace


READY = "Ready"

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, without its time: `reason` is one CamelCase word."""

    type: str
    status: Status
    reason: str
    message: str = ""

    @property
    def words(self) -> str:
        """Reason and message in one line."""
        return f"{self.reason} {self.message}".strip()


def condition(status: Mapping[str, Any], name: str) -> Condition | None:
    """Return any resource's status condition by its type, or `None`."""
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == name:
            state = each.get("status")
            return Condition(
                name,
                state if state in ("True", "False") else "Unknown",
                str(each.get("reason") or ""),
                str(each.get("message") or ""),
            )
    return None
