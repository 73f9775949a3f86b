"""The schemas llama.cpp's server can turn into a grammar.

Rules: no patterns and no large repetitions, which fail to parse or leave the answer unconstrained
(ggml-org/llama.cpp issues 10920, 19051, 21600); a schema that says nothing of the type is "unrecognized";
beside `$ref`, `anyOf` and `oneOf` everything else is ignored, so it is moved into the branches; `items`
takes the place of `prefixItems`.
"""

from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import TYPES, Schema
from beckon_contract.schema.shapes import (
    absorbed,
    alternatives,
    describe,
    distribute,
    items_of,
    lower_whole,
    without_alternatives,
)

MAX_REPETITIONS = 100
_AS_IT_IS = frozenset({
    "const", "default", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "type",
})  # fmt: skip
_COUNTS = ("maxItems", "maxLength", "minItems", "minLength")
_FORMATS = ("date", "date-time", "time", "uuid")
_IN_WORDS = frozenset({*_COUNTS, "format", "multipleOf", "pattern", "uniqueItems"})
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
        if description := describe(node, _IN_WORDS - supported):
            lowered["description"] = description
        return lowered

    def _union(self, base: Schema, branches: list[tuple[Schema, Stack]], stack: Stack) -> Schema:
        if "properties" in base:
            return self.members(*absorbed(base, branches, stack))
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
        return value in _FORMATS
    return keyword in _AS_IT_IS or (keyword == "enum" and bool(value))
