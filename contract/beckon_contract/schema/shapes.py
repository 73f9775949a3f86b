"""Parts of a schema for lowering, and constraints as words of a description.

A provider does not take these constraints as keywords.
"""

import json
from collections.abc import Callable
from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack, absorb, conjunction
from beckon_contract.schema.keywords import Schema, stated_types

MAX_VALUES = 20  # more values than that are noise in a description


def _one_of(values: Any) -> str | None:
    if not isinstance(values, list) or not 0 < len(values) <= MAX_VALUES:
        return None
    return "one of " + ", ".join(_literal(value) for value in values)


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _always(value: Any) -> str:
    return f"always {_literal(value)}"


def _default(value: Any) -> str:
    return f"default: {_literal(value)}"


def _unique(value: Any) -> str | None:
    return "no item twice" if value else None


def _plain(text: str) -> Callable[[Any], str]:
    return text.format


_PHRASES: dict[str, Callable[[Any], str | None]] = {
    "enum": _one_of,
    "const": _always,
    "format": _plain("format: {}"),
    "pattern": _plain("matches {}"),
    "minLength": _plain("at least {} characters"),
    "maxLength": _plain("at most {} characters"),
    "minimum": _plain("at least {}"),
    "maximum": _plain("at most {}"),
    "exclusiveMinimum": _plain("more than {}"),
    "exclusiveMaximum": _plain("less than {}"),
    "multipleOf": _plain("a multiple of {}"),
    "minItems": _plain("at least {} items"),
    "maxItems": _plain("at most {} items"),
    "uniqueItems": _unique,
    "minProperties": _plain("at least {} properties"),
    "maxProperties": _plain("at most {} properties"),
    "default": _default,
}


def describe(schema: Schema, dropped: frozenset[str] | set[str]) -> str:
    """Return the description of a schema, with constraints in words.

    They are the `dropped` ones. A schema without a description has its title instead.
    """
    text = schema.get("description") or schema.get("title") or ""
    phrases = [
        _PHRASES[keyword](schema[keyword]) for keyword in _PHRASES if keyword in dropped and keyword in schema
    ]
    if schema.get("not") == {}:
        phrases.append("must not be given")
    said = "; ".join(phrase for phrase in phrases if phrase)
    if not said:
        return str(text)
    return f"{text} ({said})" if text else said[0].upper() + said[1:]


def choices(branches: list[Schema]) -> str:
    """Return in words the combinations of properties to give, if stated."""
    groups = [branch.get("required") for branch in branches]
    named = [" and ".join(group) for group in groups if isinstance(group, list) and group]
    if len(named) < 2 or len(named) != len(groups) or len(named) > MAX_VALUES:
        return ""
    return "Give " + ", or ".join(named) + "."


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
