"""The `parameters` accepted by OpenAI and compatible servers, also with `strict: true`.

Rules: the root is an object without `anyOf`, `oneOf`, `allOf`, `enum` or `not`
(langchain-ai/langchainjs#9804), an array names its `items`. All else is left as it is, save what cannot be
loosened inside and stay true: `not`, `if`, `oneOf` (said as `anyOf`) and the `unevaluated…` keywords.

Strict mode cannot express all schemas.

Its rules: every object names all its properties, requires them all and allows no others, so an optional one
may be null; no `default`, `oneOf`, `allOf`, no siblings of `$ref`, no value or array of unknown type; at most
10 levels, 5000 properties, 1000 enum values (OpenAI's guide to structured outputs; pydantic-ai
profiles/openai.py). Bounds, formats and patterns are said in words: not every server and model with strict
mode takes them.
"""

from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import Schema, rebuild
from beckon_contract.schema.shapes import (
    alternatives,
    describe,
    distribute,
    lower_whole,
    rooted,
    types_of,
    without_alternatives,
)

_LEFT_OUT = frozenset({
    "$defs", "$ref", "allOf", "contentEncoding", "contentMediaType", "contentSchema", "description",
    "else", "if", "maxContains", "not", "oneOf", "readOnly", "then", "title", "unevaluatedItems",
    "unevaluatedProperties", "writeOnly",
})  # fmt: skip
_MAY_BE_FALSE = ("additionalProperties",)


def lower_for_openai(schema: Schema) -> Schema:
    """Return a schema in normal form as OpenAI-compatible servers accept it; it only accepts more."""
    expansion = Expansion(schema)
    return lower_whole(schema, expansion, _OpenAI(expansion).members)


class _OpenAI:
    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion

    def _lower(self, node: Any, stack: Stack) -> Schema:
        return self._expansion.lowered(node, stack, self.members)

    def members(self, node: Schema, stack: Stack) -> Schema:
        """Lower an expanded schema."""
        if "oneOf" in node and "anyOf" not in node:
            node = {**node, "anyOf": node["oneOf"]}
        lowered: Schema = {}
        for keyword, value in node.items():
            if keyword in _MAY_BE_FALSE and isinstance(value, bool):
                lowered[keyword] = value
            elif keyword not in _LEFT_OUT and not (keyword == "enum" and not value):
                lowered[keyword] = rebuild(keyword, value, lambda _, child: self._lower(child, stack))
        if "array" in types_of(node):
            lowered.setdefault("items", {})
        if description := describe(node, set()):
            lowered["description"] = description
        return lowered


MAX_PROPERTIES = 5000
MAX_ENUM_VALUES = 1000
MAX_LEVELS = 10

_IN_WORDS = frozenset({
    "default", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maximum",
    "minItems", "minLength", "minimum", "multipleOf", "pattern", "uniqueItems",
})  # fmt: skip
_SCALARS = frozenset({"boolean", "integer", "null", "number", "string"})


class _NotStrictError(Exception):
    """Something in the schema has no counterpart in strict mode."""


def lower_for_openai_strict(schema: Schema) -> Schema | None:
    """Return a schema as strict mode accepts it, or `None`.

    The schema is in normal form. `None` means that strict mode cannot express it.
    """
    try:
        return _Strict(schema).run(schema)
    except _NotStrictError:
        return None


class _Strict:
    def __init__(self, schema: Schema) -> None:
        self._expansion = Expansion(schema)
        self._properties = 0
        self._values = 0

    def run(self, schema: Schema) -> Schema:
        if "anyOf" in (root := self._expansion.expand(schema, Stack())[0]) or "oneOf" in root:
            raise _NotStrictError  # which properties go together could not be said
        node, stack = rooted(schema, self._expansion)
        if not node["properties"]:
            _refuse_unless(node.get("additionalProperties", False) is False)
            node = {**node, "additionalProperties": False}
        lowered = self._object(node, stack, 1)
        return lowered | self._expansion.lowered_definitions(
            lambda inner, inside: self._members(inner, inside, 1)
        )

    def _lower(self, node: Any, stack: Stack, level: int) -> Schema:
        return self._expansion.reference(node) or self._members(*self._expansion.expand(node, stack), level)

    def _members(self, node: Schema, stack: Stack, level: int) -> Schema:
        _refuse_unless(level <= MAX_LEVELS and node.get("not") != {})
        branches = alternatives(node, self._expansion, stack)
        if branches:
            return self._union(without_alternatives(node), branches, level)
        types = types_of(node)
        _refuse_unless(bool(types))
        if len(types) > 1 and not _SCALARS.issuperset(types):
            each = [self._members({**node, "type": name, "description": ""}, stack, level) for name in types]
            return _described({"anyOf": each}, node)
        if types == ("object",):
            return self._object(node, stack, level)
        if types == ("array",):
            _refuse_unless("prefixItems" not in node and isinstance(node.get("items"), dict))
            return _described({"type": "array", "items": self._lower(node["items"], stack, level + 1)}, node)
        return self._scalar(node, types)

    def _union(self, base: Schema, branches: list[tuple[Schema, Stack]], level: int) -> Schema:
        inner = {keyword: value for keyword, value in base.items() if keyword != "description"}
        each = [self._members(distribute(inner, branch), stack, level) for branch, stack in branches]
        return _described({"anyOf": each}, {"description": base.get("description", "")})

    def _object(self, node: Schema, stack: Stack, level: int) -> Schema:
        properties = node.get("properties") or {}
        closed = node.get("additionalProperties", None if properties else True)
        _refuse_unless(closed in (None, False) and "patternProperties" not in node)
        self._properties += len(properties)
        _refuse_unless(self._properties <= MAX_PROPERTIES)
        required = node.get("required", [])
        _refuse_unless(set(required) <= properties.keys())
        lowered = {
            name: child if name in required else _nullable(child)
            for name, child in (
                (name, self._lower(entry, stack, level + 1)) for name, entry in properties.items()
            )
        }
        shape = {
            "type": "object",
            "properties": lowered,
            "required": list(properties),
            "additionalProperties": False,
        }
        return _described(shape, node)

    def _scalar(self, node: Schema, types: tuple[str, ...]) -> Schema:
        lowered: Schema = {"type": types[0] if len(types) == 1 else list(types)}
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values:
            self._values += len(values)
            _refuse_unless(self._values <= MAX_ENUM_VALUES)
            lowered["enum"] = values
        return _described(lowered, node)


def _described(lowered: Schema, node: Schema) -> Schema:
    description = describe(node, _IN_WORDS)
    return {**lowered, "description": description} if description else lowered


def _nullable(lowered: Schema) -> Schema:
    """Let an optional property be null, the only way to leave it out."""
    stated = lowered.get("type")
    if stated is None or "object" in stated or "array" in stated:
        described = {"description": lowered["description"]} if "description" in lowered else {}
        branches = lowered.get("anyOf") or [
            {key: value for key, value in lowered.items() if key != "description"}
        ]
        if {"type": "null"} in branches:
            return lowered
        return {"anyOf": [*branches, {"type": "null"}], **described}
    types = [stated] if isinstance(stated, str) else stated
    nullable = {**lowered, "type": list(dict.fromkeys([*types, "null"]))}
    if "enum" in lowered and None not in lowered["enum"]:
        nullable["enum"] = [*lowered["enum"], None]
    return nullable


def _refuse_unless(sayable: bool) -> None:
    if not sayable:
        raise _NotStrictError
