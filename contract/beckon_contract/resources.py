"""Kubernetes objects as they stand in manifests or come from the API server."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

DEFAULT_NAMESPACE = "default"
MAX_DOCUMENT_BYTES = 3 * 1024 * 1024  # etcd refuses objects above 1.5 MiB; YAML may be twice its JSON


class Key(NamedTuple):
    """What tells one object from every other: group and kind without version, namespace, name."""

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

    `origin` says where it came from ("weather.yaml, document 2"), for messages.
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

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version inside the group, such as v1beta2."""
        return self.api_version.rpartition("/")[2]

    @property
    def key(self) -> Key:
        """The identity of this object, whatever version it was written in."""
        return Key(self.group, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A manifest, or a document in it, that is no Kubernetes object; `message` says why."""

    origin: str
    message: str


def parse_manifests(
    text: str, origin: str, namespace: str = DEFAULT_NAMESPACE
) -> Iterator[Resource | Unreadable]:
    """Yield every object in a YAML or JSON text, `List` objects opened, in their order.

    An unreadable document ends the text with one `Unreadable`; the documents before it count.
    """
    if len(text) > MAX_DOCUMENT_BYTES:
        yield Unreadable(origin, f"the file is larger than {MAX_DOCUMENT_BYTES} bytes")
        return
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    number = 0
    try:
        for number, document in enumerate(yaml.load_all(io.StringIO(text), Loader=loader), start=1):
            where = origin if number == 1 else f"{origin}, document {number}"
            if document is not None:
                yield from _open(document, where, namespace)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield Unreadable(origin, f"document {number + 1} is not YAML: {_one_line(error)}")


def from_object(
    document: Mapping[str, Any], origin: str = "", namespace: str = DEFAULT_NAMESPACE
) -> Resource:
    """Read one object as decoded from YAML or JSON; raise `ValueError` where it is none."""
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ValueError("apiVersion and kind must be strings")
    metadata = _mapping(document, "metadata")
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise ValueError("metadata.name is missing")
    owners = metadata.get("ownerReferences") or []
    return Resource(
        api_version=api_version,
        kind=kind,
        namespace=str(metadata.get("namespace") or namespace),
        name=name,
        spec=_mapping(document, "spec"),
        labels=_strings(metadata, "labels"),
        annotations=_strings(metadata, "annotations"),
        owners=tuple(owner for owner in owners if isinstance(owner, Mapping)),
        status=_mapping(document, "status"),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 0),
        origin=origin,
    )


def _open(document: object, origin: str, namespace: str) -> Iterator[Resource | Unreadable]:
    if not isinstance(document, Mapping):
        yield Unreadable(origin, "not a Kubernetes object: expected a mapping with apiVersion and kind")
        return
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _open(item, origin, namespace)
        return
    try:
        yield from_object(document, origin, namespace)
    except (ValueError, TypeError) as error:
        yield Unreadable(origin, f"not a Kubernetes object: {error}")


def _mapping(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping")
    return value


def _strings(metadata: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return labels or annotations; YAML turns unquoted `true` and `5` into other types."""
    found = _mapping(metadata, name)
    for key, value in found.items():
        if not isinstance(value, str):
            raise ValueError(f"metadata.{name}[{key!r}] must be a string; write it in quotes")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
