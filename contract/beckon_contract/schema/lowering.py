"""The subset of OpenAPI's schema accepted by Gemini as `parameters`.

Rules: one type a schema, `nullable` beside it; no `$ref`, `$defs`, `allOf`, `oneOf`, `const`, boolean
schemas or `additionalProperties`; beside `anyOf` nothing else; an array has `items`; `enum` holds non-empty
strings; `required` names only properties that are there (pydantic-ai profiles/google.py; the answers of the
API itself). References are written out and cut where they recurse; other constraints are said in the
description.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import TYPES, Schema, rebuild, without_extensions
from beckon_contract.schema.openai import (
    absorb_branches,
    alternatives,
    describe,
    distribute,
    flatten_root,
    items_of,
    lower_for_openai,
    lower_for_openai_strict,
    lower_whole,
    types_of,
    without_alternatives,
)

_GEMINI_FORMATS = {
    "integer": ("int32", "int64"),
    "number": ("double", "float"),
    "string": ("date-time",),
}
_GEMINI_WORDS = frozenset({
    "const", "default", "exclusiveMaximum", "exclusiveMinimum", "maxLength", "maxProperties", "maximum",
    "minLength", "minProperties", "minimum", "multipleOf", "pattern", "uniqueItems",
})  # fmt: skip
_ANYTHING = ("string", "number", "boolean")
"""Gemini has no value of any type; a scalar is what an undeclared parameter nearly always is."""


def lower_for_gemini(schema: Schema) -> Schema:
    """Return a schema in normal form as Gemini accepts it."""
    expansion = Expansion(schema)
    return {
        "type": "object",
        "properties": {},
        **_Gemini(expansion).members(*flatten_root(schema, expansion)),
    }


class _Gemini:
    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion

    def members(self, node: Schema, stack: Stack) -> Schema:
        """Lower an expanded schema."""
        branches = alternatives(node, self._expansion, stack)
        if branches:
            return self._union(without_alternatives(node), branches, stack)
        kinds = types_of(node)
        types = [name for name in kinds if name != "null"]
        if not types and kinds:
            return {"type": "string", "nullable": True, **_described(node, {"enum"})}
        nullable = "null" in kinds or not kinds
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
            return self.members(*absorb_branches(base, lowered, stack))
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
        if node.get("format") in _GEMINI_FORMATS.get(name, ()):
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
    description = describe(node, _GEMINI_WORDS | dropped)
    return {"description": description} if description else {}


def _are_strings(values: object) -> bool:
    if not isinstance(values, list):
        return False
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, str) and value for value in present)


MAX_REPETITIONS = 100
_AS_IT_IS = frozenset({
    "const", "default", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "type",
})  # fmt: skip
_COUNTS = ("maxItems", "maxLength", "minItems", "minLength")
_LLAMA_CPP_FORMATS = ("date", "date-time", "time", "uuid")
_LLAMA_CPP_WORDS = frozenset({*_COUNTS, "format", "multipleOf", "pattern", "uniqueItems"})
_DESCRIBING = frozenset({"const", "enum", "items", "properties", "type"})


def lower_for_llama_cpp(schema: Schema) -> Schema:
    """Return a schema in normal form as llama.cpp's grammar takes it; it only accepts more."""
    expansion = Expansion(schema)
    return lower_whole(schema, expansion, _LlamaCpp(expansion).members)


class _LlamaCpp:
    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion

    def _lower(self, node: Any, stack: Stack) -> Schema:
        return self._expansion.lowered(node, stack, self.members)

    def members(self, node: Schema, stack: Stack) -> Schema:
        """Lower an expanded schema."""
        branches = alternatives(node, self._expansion, stack)
        if branches:
            return self._union(without_alternatives(node), branches, stack)
        supported = {keyword for keyword in node if _is_supported(keyword, node[keyword])}
        lowered = {keyword: node[keyword] for keyword in node if keyword in supported}
        lowered |= self._object(node, stack) | self._array(node, stack)
        if not _DESCRIBING & lowered.keys():
            lowered["type"] = list(TYPES)
        if description := describe(node, _LLAMA_CPP_WORDS - supported):
            lowered["description"] = description
        return lowered

    def _union(self, base: Schema, branches: list[tuple[Schema, Stack]], stack: Stack) -> Schema:
        if "properties" in base:
            return self.members(*absorb_branches(base, branches, stack))
        each = [self.members(distribute(base, branch), inner) for branch, inner in branches]
        description = describe(base, set())
        return {"anyOf": each, "description": description} if description else {"anyOf": each}

    def _object(self, node: Schema, stack: Stack) -> Schema:
        lowered: Schema = {}
        properties = node.get("properties")
        if isinstance(properties, dict):
            lowered["properties"] = {name: self._lower(entry, stack) for name, entry in properties.items()}
            required = [name for name in node.get("required", ()) if name in properties]
            lowered |= {"required": required} if required else {}
        others = node.get("additionalProperties")
        if "patternProperties" in node or others is None:
            return lowered
        lowered["additionalProperties"] = others if isinstance(others, bool) else self._lower(others, stack)
        return lowered

    def _array(self, node: Schema, stack: Stack) -> Schema:
        items = items_of(node)
        return {} if items is None else {"items": self._lower(items, stack)}


def _is_supported(keyword: str, value: Any) -> bool:
    if keyword in _COUNTS:
        return bool(value <= MAX_REPETITIONS)
    if keyword == "format":
        return value in _LLAMA_CPP_FORMATS
    return keyword in _AS_IT_IS or (keyword == "enum" and bool(value))


MAX_CHARACTERS = 32 * 1024
"""What one tool may take of a prompt, as JSON; beyond it descriptions are shortened, then left out."""

_DESCRIPTION_LENGTHS = (1024, 256, 80)


class Profile(StrEnum):
    """The provider rules a schema is lowered to."""

    OPENAI = "openai"
    OPENAI_STRICT = "openai_strict"
    GEMINI = "gemini"
    LLAMA_CPP = "llama_cpp"


def lower(schema: Mapping[str, Any], profile: Profile | str) -> dict[str, Any]:
    """Return normalised parameters as this provider accepts them.

    With `openai_strict`, a schema that strict mode cannot express is lowered as for `openai`. To know
    whether to send `strict: true`, use `lower_strict`. An unknown profile is a `ValueError`.
    """
    chosen = Profile(profile)
    if chosen is Profile.OPENAI_STRICT:
        return lower_strict(schema) or lower(schema, Profile.OPENAI)
    return _fit(_LOWERINGS[chosen](without_extensions(dict(schema))))


def lower_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return normalised parameters for `strict: true`, or `None`.

    `None` means that strict mode cannot express them.
    """
    lowered = lower_for_openai_strict(without_extensions(dict(schema)))
    return None if lowered is None else _fit(lowered)


_LOWERINGS: Mapping[Profile, Callable[[Schema], Schema]] = {
    Profile.OPENAI: lower_for_openai,
    Profile.GEMINI: lower_for_gemini,
    Profile.LLAMA_CPP: lower_for_llama_cpp,
}


def _fit(lowered: Schema) -> Schema:
    for length in _DESCRIPTION_LENGTHS:
        lowered = _shorten(lowered, length)
        if len(json.dumps(lowered)) <= MAX_CHARACTERS:
            return lowered
    return _shorten(lowered, 0)


def _shorten(node: Schema, length: int) -> Schema:
    """Return a schema with descriptions cut to a length, 0 for none."""
    shortened: Schema = {}
    for keyword, value in node.items():
        if keyword != "description":
            shortened[keyword] = rebuild(
                keyword, value, lambda _, child: child if isinstance(child, bool) else _shorten(child, length)
            )
        elif length:
            shortened[keyword] = value if len(value) <= length else value[: length - 1].rstrip() + "…"
    return shortened
