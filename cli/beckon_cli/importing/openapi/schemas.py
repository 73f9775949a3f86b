"""The schemas of a description, as the contract takes them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from beckon_cli.importing.documents import BadDescription
from beckon_cli.importing.openapi.references import Node, follow_references
from beckon_cli.importing.openapi.words import MAX_INNER, to_plain_text
from beckon_contract.schema.expansion import definition
from beckon_contract.schema.keywords import MANY, NAMED, ONE, Schema, children, rebuild, stated_types
from beckon_contract.schema.parameters import SchemaError, normalise

_SMALL = 3  # keywords of a definition that is shorter than the reference to it


def simplify_schema(schema: Schema) -> Schema:
    """Return the same schema with fewer definitions.

    Definitions that are small, or used once, replace their references; recursive ones stay.
    """
    definitions: Schema = schema.get("$defs", {})
    uses = Counter(
        name for node in (_simplify_root(schema), *definitions.values()) for name in _iterate_references(node)
    )
    inner = {name: set(_iterate_references(node)) for name, node in definitions.items()}
    recursive = set(_recursive_definitions(inner))
    moved = {
        name
        for name, node in definitions.items()
        if name not in recursive and (uses[name] == 1 or _is_small(node))
    }
    if not moved:
        return schema

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "$ref" in node and definition(node["$ref"]) in moved:
            target = change(definitions[definition(node["$ref"])])
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return _merge_beside(target, {key: _changed(key, value) for key, value in beside.items()})
        return {key: _changed(key, value) for key, value in node.items()}

    def _changed(keyword: str, value: Any) -> Any:
        return rebuild(keyword, value, lambda _, child: change(child))

    simplified = {name: change(node) for name, node in definitions.items() if name not in moved}
    return {**change(_simplify_root(schema)), **({"$defs": simplified} if simplified else {})}


def _merge_beside(target: Any, beside: Schema) -> Any:
    """Return a referenced schema merged with the keywords beside its reference.

    If both have the same keyword, both apply. Description, default and examples beside the reference take
    precedence.
    """
    if not beside:
        return target
    if not isinstance(target, dict):
        return {**beside, "allOf": [target]}
    words = {key: value for key, value in beside.items() if key in ("description", "default", "examples")}
    rest = {key: value for key, value in beside.items() if key not in words}
    if rest.keys() & target.keys():
        return {**words, "allOf": [target, rest]}
    return {**target, **rest, **words}


def _simplify_root(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "$defs"}


def _is_small(node: Any) -> bool:
    return not isinstance(node, dict) or (len(node) <= _SMALL and not any(True for _ in children(node)))


def _iterate_references(node: Any) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield definition(node["$ref"])
    for _, child in children(node):
        yield from _iterate_references(child)


def _recursive_definitions(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield the definitions with references to themselves, direct or indirect."""
    left = dict(graph)
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle = set(error.args[1])
            yield from cycle
            left = {name: used - cycle for name, used in left.items() if name not in cycle}
        else:
            return


_SINGLE = ONE | {"additionalItems"}
_DROPPED = frozenset({
    "$anchor", "$comment", "$id", "$schema", "$vocabulary", "discriminator", "example", "examples",
    "externalDocs", "title", "xml",
})  # fmt: skip
_PREFIX = "#/$defs/"
_EXAMPLE_LENGTH = 60
_MEDIA_TYPE = {"type": "string", "description": "The media type, such as image/png."}
_DATA = {"type": "string", "description": "The content, in base64."}
_BYTES = ("application/octet-stream", "image/", "audio/", "video/")
FILE = {
    "type": "object",
    "properties": {"media_type": _MEDIA_TYPE, "data_base64": _DATA},
    "required": ["media_type", "data_base64"],
    "additionalProperties": False,
}
"""How an argument carries bytes, which the adapter writes as a file."""


class SchemaBundle:
    """A description's schemas with their references, down to a depth."""

    def __init__(self, max_depth: int) -> None:
        """Limit the depth to `max_depth` levels of properties and items.

        A deeper schema states its type and description only.
        """
        self.cut = False
        self.repaired: list[str] = []
        self._max_depth = max_depth
        self._names: dict[int, str] = {}
        self._targets: dict[str, Node] = {}
        self._pending: dict[str, int] = {}

    def add_schema(self, schema: Node, depth: int = 0) -> Any:
        """Return a schema with its references pointing into `definitions()`."""
        value = schema.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, Mapping):
            return {}
        if "$ref" in value:
            return self._add_reference(schema, depth)
        if depth > self._max_depth:
            self.cut = True
            return _loosest_schema(value)
        if _is_file(dict(value)):
            return {**_word_members(value), **FILE}
        return self._add_members(schema, depth)

    def definitions(self) -> dict[str, Any]:
        """Return all referenced schemas by name. Each is as deep as the shallowest reference to it allows."""
        definitions: dict[str, Any] = {}
        while self._pending:
            name = min(self._pending, key=lambda one: self._pending[one])
            depth = self._pending.pop(name)
            if name not in definitions:
                definitions[name] = self.add_schema(self._targets[name], depth)
        return definitions

    def _add_reference(self, schema: Node, depth: int) -> Any:
        target = follow_references(schema)
        if depth > self._max_depth:
            self.cut = True
            return _loosest_schema(target.value) if isinstance(target.value, Mapping) else {}
        name = self._names.get(id(target.value))
        if name is None:
            name = self._free_name(target.ref)
            self._names[id(target.value)] = name
            self._targets[name] = target  # kept, so that nothing else can have its identity
        self._pending[name] = min(depth, self._pending.get(name, depth))
        beside = {key: value for key, value in schema.value.items() if key != "$ref"}
        siblings = self._add_members(Node(beside, schema.resolver), depth) if beside else {}
        return {"$ref": f"{_PREFIX}{name}", **siblings}

    def _add_members(self, schema: Node, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = example_of(schema.value)
        for keyword, value in schema.value.items():
            if keyword in _DROPPED or keyword.startswith("x-"):
                continue
            members[keyword] = self._add_member(schema, keyword, value, depth)
        served = {
            name
            for name, inner in _as_mapping(schema.value, "properties").items()
            if self._is_served(schema, inner)
        }
        if isinstance(members.get("required"), list):
            members["required"] = [
                name for name in members["required"] if isinstance(name, str) and name not in served
            ]
        if members.get("nullable") is True and None not in members.get("enum", [None]):
            del members["nullable"]  # OpenAPI 3.0.3: null must be among the values as well
        if members.get("format") in ("", "string", members.get("type")):
            members.pop("format", None)
        return self._remove_invalid(members)

    def _add_member(self, schema: Node, keyword: str, value: Any, depth: int) -> Any:
        def inner(entry: Any, levels: int) -> Any:
            return self.add_schema(Node(entry, schema.resolver), depth + levels)

        if keyword == "description":
            return to_plain_text(value, MAX_INNER) if isinstance(value, str) else ""
        if (keyword in _SINGLE or keyword == "items") and isinstance(value, Mapping):
            return inner(value, 1)
        if (keyword in MANY or keyword == "items") and isinstance(value, list):
            return [inner(entry, 0) for entry in value]
        if keyword in NAMED and isinstance(value, Mapping):
            return {
                name: inner(entry, 1)
                for name, entry in value.items()
                if keyword != "properties" or not self._is_served(schema, entry)
            }
        return value

    def _is_served(self, schema: Node, entry: Any) -> bool:
        """Return True if a property is `readOnly`, and so never sent."""
        try:
            return follow_references(Node(entry, schema.resolver)).get_flag("readOnly")
        except BadDescription:
            return False  # reported where the property itself is read

    def _remove_invalid(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Remove invalid keywords, so one does not cost the operation.

        They are noted in `repaired`. Repeated values of `enum` are removed as well.
        """
        if isinstance(schema.get("enum"), list):  # providers refuse a value that is there twice
            values = schema["enum"]
            schema["enum"] = [value for at, value in enumerate(values) if not _is_among(value, values[:at])]
        for keyword in ("pattern", "type", "enum", "required", "multipleOf"):
            if keyword in schema and not _is_usable(keyword, schema[keyword]):
                self.repaired.append(
                    f"{keyword} {str(schema.pop(keyword))[:60]!r} has no meaning and is left out"
                )
        return schema

    def _free_name(self, ref: str) -> str:
        wanted = re.sub(r"[^A-Za-z0-9_]+", "_", ref.rpartition("/")[2]).strip("_")[:60] or "schema"
        name, number = wanted, 1
        while name in self._targets:
            number += 1
            name = f"{wanted}_{number}"
        return name


def _is_among(value: Any, others: list[Any]) -> bool:
    """Return True if a value is among others of its type. So true is not 1."""
    return any(value == other and type(value) is type(other) for other in others)


def _is_usable(keyword: str, value: Any) -> bool:
    if keyword == "required":
        return isinstance(value, list | bool)
    if keyword == "enum":
        return isinstance(value, list) and bool(value)
    return _is_known(keyword, value) if isinstance(value, str) else _is_accepted(keyword, value)


@lru_cache(maxsize=1024)
def _is_known(keyword: str, value: str) -> bool:
    return _is_accepted(keyword, value)


def _is_accepted(keyword: str, value: Any) -> bool:
    """Return True if the contract accepts a keyword with this value."""
    try:
        normalise({"type": "object", "properties": {"it": {keyword: value}}})
    except SchemaError:
        return False
    return True


def _loosest_schema(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loosest schema with the same type. Its description is included."""
    kind = value.get("type")
    if kind is None and ("properties" in value or "allOf" in value):
        kind = "object"
    loosest = {"type": kind} if isinstance(kind, str) and _is_usable("type", kind) else {}
    return {**loosest, **_word_members(value)}


def _word_members(value: Mapping[str, Any]) -> dict[str, Any]:
    text = value.get("description")
    return {"description": to_plain_text(text, MAX_INNER)} if isinstance(text, str) and text.strip() else {}


def example_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return `examples` with one short example, or nothing.

    An example helps a model more than many words. A text with `{{` is a template and no example.
    """
    example = value.get("example")
    several = value.get("examples")
    if example is None and isinstance(several, list) and several:
        example = several[0]
    if isinstance(example, bool) or not isinstance(example, str | int | float):
        return {}
    text = str(example)
    return {"examples": [example]} if text and len(text) <= _EXAMPLE_LENGTH and "{{" not in text else {}


def _as_mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    member = value.get(key)
    return member if isinstance(member, Mapping) else {}


def _is_file(schema: Schema) -> bool:
    """Return True for a string of bytes.

    OpenAPI 3.1 writes it with `contentMediaType`, older versions with `format`.
    """
    if schema.get("format") == "binary" or schema.get("type") == "file":
        return True
    media, plain = schema.get("contentMediaType"), "contentEncoding" not in schema
    return (
        plain and isinstance(media, str) and media.startswith(_BYTES) and stated_types(schema) == ("string",)
    )
