"""The subset of OpenAPI's schema accepted by Gemini as `parameters`.

Rules: one type a schema, `nullable` beside it; no `$ref`, `$defs`, `allOf`, `oneOf`, `const`, boolean
schemas or `additionalProperties`; beside `anyOf` nothing else; an array has `items`; `enum` holds non-empty
strings; `required` names only properties that are there (pydantic-ai profiles/google.py; the answers of the
API itself). References are written out and cut where they recurse; other constraints are said in the
description.
"""

from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import Schema
from beckon_contract.schema.shapes import (
    absorbed,
    alternatives,
    describe,
    distribute,
    items_of,
    rooted,
    types_of,
    without_alternatives,
)

_FORMATS = {
    "integer": ("int32", "int64"),
    "number": ("double", "float"),
    "string": ("date-time",),
}
_IN_WORDS = frozenset({
    "const", "default", "exclusiveMaximum", "exclusiveMinimum", "maxLength", "maxProperties", "maximum",
    "minLength", "minProperties", "minimum", "multipleOf", "pattern", "uniqueItems",
})  # fmt: skip
_ANYTHING = ("string", "number", "boolean")
"""Gemini has no value of any type; a scalar is what an undeclared parameter nearly always is."""


def lower_for_gemini(schema: Schema) -> Schema:
    """Return a schema in normal form as Gemini accepts it."""
    expansion = Expansion(schema)
    return {"type": "object", "properties": {}, **_Gemini(expansion).members(*rooted(schema, expansion))}


class _Gemini:
    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion

    def members(self, node: Schema, stack: Stack) -> Schema:
        """Lower an expanded schema."""
        branches = alternatives(node, self._expansion, stack)
        if branches:
            return self._union(without_alternatives(node), branches, stack)
        stated = types_of(node)
        types = [name for name in stated if name != "null"]
        if not types and stated:
            return {"type": "string", "nullable": True, **_described(node, {"enum"})}
        nullable = "null" in stated or not stated
        each = [self._typed(node, name, stack, nullable=nullable) for name in types or _ANYTHING]
        return each[0] if len(each) == 1 else {"anyOf": each}

    def _lower(self, node: Any, stack: Stack) -> Schema:
        return self.members(*self._expansion.expand(node, stack))

    def _union(self, base: Schema, branches: list[tuple[Schema, Stack]], stack: Stack) -> Schema:
        nullable = any(types_of(branch) == ("null",) for branch, _ in branches)
        lowered = [(branch, inner) for branch, inner in branches if types_of(branch) != ("null",)]
        if not lowered:
            return self.members({**base, "type": "null"}, stack)
        if "properties" in base:
            return self.members(*absorbed(base, lowered, stack))
        each = [self.members(distribute(base, branch), inner) for branch, inner in lowered]
        flat = [inner for one in each for inner in one.get("anyOf", [one])]
        if nullable:
            flat = [{**one, "nullable": True} for one in flat]
        unique = [one for number, one in enumerate(flat) if one not in flat[:number]]
        return unique[0] if len(unique) == 1 else {"anyOf": unique}

    def _typed(self, node: Schema, name: str, stack: Stack, *, nullable: bool) -> Schema:
        lowered: Schema = {"type": name}
        dropped = {"enum", "format"}
        if name == "object":
            lowered |= self._properties(node, stack)
        elif name == "array":
            lowered["items"] = self._lower(items_of(node), stack)
            lowered |= {keyword: node[keyword] for keyword in ("minItems", "maxItems") if keyword in node}
        elif name == "string" and _are_strings(node.get("enum")):
            lowered["enum"] = [value for value in node["enum"] if value is not None]
            dropped.discard("enum")
        if node.get("format") in _FORMATS.get(name, ()):
            lowered["format"] = node["format"]
            dropped.discard("format")
        if nullable:
            lowered["nullable"] = True
        return {**lowered, **_described(node, dropped)}

    def _properties(self, node: Schema, stack: Stack) -> Schema:
        properties = node.get("properties") or {}
        if not properties:
            return {}
        lowered: Schema = {
            "properties": {name: self._lower(entry, stack) for name, entry in properties.items()}
        }
        required = [name for name in node.get("required", ()) if name in properties]
        return {**lowered, "required": required} if required else lowered


def _described(node: Schema, dropped: set[str]) -> Schema:
    description = describe(node, _IN_WORDS | dropped)
    return {"description": description} if description else {}


def _are_strings(values: object) -> bool:
    if not isinstance(values, list):
        return False
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, str) and value for value in present)
