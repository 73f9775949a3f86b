"""The `parameters` accepted by OpenAI and compatible servers.

Rules: the root is an object without `anyOf`, `oneOf`, `allOf`, `enum` or `not`
(langchain-ai/langchainjs#9804), an array names its `items`. All else is left as it is, save what cannot be
loosened inside and stay true: `not`, `if`, `oneOf` (said as `anyOf`) and the `unevaluated…` keywords.
"""

from typing import Any

from beckon_contract.schemas.expansion import Expansion, Stack
from beckon_contract.schemas.keywords import Schema, rebuild
from beckon_contract.schemas.shapes import lower_whole, types_of
from beckon_contract.schemas.wording import describe

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
