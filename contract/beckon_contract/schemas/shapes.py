"""Parts of a schema for lowering: types, alternatives, tuple items."""

from collections.abc import Callable
from typing import Any

from beckon_contract.schemas.expansion import Expansion, Stack
from beckon_contract.schemas.keywords import Schema, stated_types
from beckon_contract.schemas.merging import absorb, conjunction
from beckon_contract.schemas.wording import choices

_SPEAKING = ("description", "title", "default", "examples")
_NOT_AT_ROOT = ("$defs", "const", "enum", "properties", "type")
_HINTS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties")),
    ("array", ("items", "prefixItems")),
)


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the types of a schema, stated or inferred.

    They are inferred from its values and keywords; the result is empty if these show none.
    """
    stated = stated_types(schema)
    if stated:
        return stated
    values = schema["enum"] if isinstance(schema.get("enum"), list) else None
    if values is None and "const" in schema:
        values = [schema["const"]]
    if values:
        return tuple(dict.fromkeys(_type_of(value) for value in values))
    return tuple(name for name, keywords in _HINTS if any(keyword in schema for keyword in keywords))[:1]


def alternatives(schema: Schema, expansion: Expansion, stack: Stack) -> list[tuple[Schema, Stack]]:
    """Return the expanded branches of `anyOf`, else of `oneOf`, if any."""
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list):
        return []
    return [expansion.expand(branch, stack) for branch in branches]


def without_alternatives(schema: Schema) -> Schema:
    """Return the schema without `anyOf` and `oneOf`."""
    return {keyword: value for keyword, value in schema.items() if keyword not in ("anyOf", "oneOf")}


def absorbed(base: Schema, branches: list[tuple[Schema, Stack]], stack: Stack) -> tuple[Schema, Stack]:
    """Return an object with its alternatives absorbed.

    Its description says which of them go together.
    """
    plain = [branch for branch, _ in branches]
    merged = absorb(base, plain)
    if said := " ".join(text for text in (base.get("description"), choices(plain)) if text):
        merged["description"] = said
    return merged, stack.beside(inside for _, inside in branches)


def rooted(schema: Schema, expansion: Expansion) -> tuple[Schema, Stack]:
    """Return the root as one object: its references written out, its alternatives absorbed."""
    root, stack = expansion.expand(schema, Stack())
    branches = alternatives(root, expansion, stack)
    if branches:
        root, stack = absorbed(without_alternatives(root), branches, stack)
    rest = {keyword: value for keyword, value in root.items() if keyword not in _NOT_AT_ROOT}
    return {"type": "object", "properties": root.get("properties", {}), **rest}, stack


def lower_whole(schema: Schema, expansion: Expansion, members: Callable[[Schema, Stack], Schema]) -> Schema:
    """Return the root lowered by `members`, with its definitions.

    Only definitions that are still referred to are included.
    """
    root = members(*rooted(schema, expansion))
    return root | expansion.lowered_definitions(members)


def distribute(base: Schema, branch: Schema) -> Schema:
    """Return one branch with the schema around it, its own words first."""
    described = {keyword: branch[keyword] for keyword in _SPEAKING if keyword in branch}
    return {**conjunction([base, branch]), **described}


def items_of(schema: Schema) -> Any:
    """Return one schema for every item of an array.

    The items of a tuple are included. The result is `None` if nothing is said.
    """
    leading = schema.get("prefixItems")
    rest = schema.get("items")
    if not isinstance(leading, list) or not leading:
        return rest
    if rest is None or rest is True:
        return {}
    several = [*leading] if rest is False else [*leading, rest]
    unique = [entry for number, entry in enumerate(several) if entry not in several[:number]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"
