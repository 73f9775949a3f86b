"""The values of a description, with references between its documents followed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag

from referencing import Registry, Resource
from referencing._core import Resolver
from referencing.exceptions import Unresolvable

from beckon_cli.importing.documents import BadDescription, Documents

MAX_DOCUMENTS = 500
_MAX_CHAIN = 50


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and the resolver of its document."""

    value: Any
    resolver: Resolver[Any]
    ref: str = ""

    def get(self, key: str) -> "Node":
        """Return a member with its reference followed.

        The value is `None` if the member is absent, or this is no object.
        """
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return follow_references(Node(value, self.resolver))

    def get_raw(self, key: str) -> "Node":
        """Return a member without following its reference."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return Node(value, self.resolver)

    def get_text(self, key: str) -> str:
        """Return a text member, "" for any other."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return value if isinstance(value, str) else ""

    def get_flag(self, key: str) -> bool:
        """Return True if a member is `true`."""
        return isinstance(self.value, Mapping) and self.value.get(key) is True

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the members of an object with their references followed, extensions left out."""
        for key in self.value if isinstance(self.value, Mapping) else ():
            if not key.startswith("x-"):
                yield key, self.get(key)

    def items(self) -> Iterator["Node"]:
        """Yield the items of a list with their references followed."""
        for value in self.value if isinstance(self.value, list) else ():
            yield follow_references(Node(value, self.resolver))


def follow_references(node: Node) -> Node:
    """Return the target of a node's reference, and of further ones.

    A node without a reference is returned as it is. Raises `BadDescription`, also for a cycle.
    """
    for _ in range(_MAX_CHAIN):
        if not isinstance(node.value, Mapping) or "$ref" not in node.value:
            return node
        node = follow_once(node)
    raise BadDescription(f"the reference {node.value['$ref']!r} leads round in circles")


def follow_once(node: Node) -> Node:
    """Return the target of one reference; raise `BadDescription`."""
    ref = node.value["$ref"]
    if not isinstance(ref, str):
        raise BadDescription(f"a $ref is a text, not {str(ref)[:60]}")
    try:
        resolved = node.resolver.lookup(ref)
    except Unresolvable as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, BadDescription):
            cause = cause.__cause__
        raise BadDescription(str(cause) if cause else f"nothing is at the reference {ref[:200]!r}") from None
    except (ValueError, TypeError, KeyError, IndexError):
        raise BadDescription(f"nothing is at the reference {ref[:200]!r}") from None
    return Node(resolved.contents, resolved.resolver, ref)


def open_root(documents: Documents) -> Node:
    """Return the description itself; raise `BadDescription`."""
    read: dict[str, Resource[Any]] = {}

    def retrieve_document(uri: str) -> Resource[Any]:
        if uri not in read:
            if len(read) >= MAX_DOCUMENTS:
                raise BadDescription(f"refers to more than {MAX_DOCUMENTS} documents")
            read[uri] = Resource.opaque(documents.read(uri))
        return read[uri]

    start = urldefrag(documents.start).url
    first = retrieve_document(start)
    registry: Registry[Any] = Registry(retrieve=retrieve_document).with_resource(start, first)  # type: ignore[call-arg]  # attrs alias, unseen by mypy
    return Node(first.contents, registry.resolver(base_uri=start))
