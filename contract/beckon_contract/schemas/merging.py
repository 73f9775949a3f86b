"""The merging of several schemas into one, for lowering.

The result accepts at least what they accepted. It is loose on purpose: what cannot be said in one schema is
left out, since arguments are checked against the original.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from beckon_contract.schemas.keywords import Schema, stated_types

_LINKED = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
)
"""Keywords that mean something only beside each other, so that two schemas' must not be mixed."""


def conjunction(parts: Sequence[Schema]) -> Schema:
    """Return one schema for the conjunction of all parts.

    The first part's words and order win.

    The parts hold no `$ref` and no `allOf` of their own (`schemas.expansion` sees to that).
    """
    merged: Schema = {}
    for part in parts:
        merged = _both(merged, part)
    return merged


def absorb(base: Schema, branches: Sequence[Schema]) -> Schema:
    """Return an object schema for `base` with one of the branches, without saying `anyOf`.

    Each property that any branch has becomes one of the object; required is what all branches require. A
    property that only some branches describe is taken as they describe it.
    """
    found: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in _map(branch, "properties").items():
            if schema not in found.setdefault(name, []):
                found[name].append(schema)
    offered = {
        name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas} for name, schemas in found.items()
    }
    merged = _both(base, {"properties": offered} if offered else {})
    everywhere = [name for name in _names(branches[0]) if all(name in _names(branch) for branch in branches)]
    required = list(dict.fromkeys([*_names(base), *everywhere]))
    if required:
        merged["required"] = required
    closed = all(branch.get("additionalProperties") is False for branch in branches)
    if closed and not any("patternProperties" in branch for branch in branches):
        merged["additionalProperties"] = False
    return merged


def _both(first: Schema, second: Schema) -> Schema:
    merged = dict(first)
    for keyword, value in _apart(first, second).items():
        if keyword not in merged:
            merged[keyword] = value
        elif keyword in _COMBINE:
            merged[keyword] = _COMBINE[keyword](merged[keyword], value)
    return merged


def _apart(first: Schema, second: Schema) -> Schema:
    """Drop the first schema's groups of keywords from the second."""
    taken = {keyword for group in _LINKED if first.keys() & set(group) for keyword in group}
    return {keyword: value for keyword, value in second.items() if keyword not in taken}


def _named(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for name, schema in second.items():
        merged[name] = _schemas(merged[name], schema) if name in merged else schema
    return merged


def _schemas(first: Any, second: Any) -> Any:
    if first == second or second is True:
        return first
    if first is True:
        return second
    return {"allOf": [first, second]}


def _closer(first: Any, second: Any) -> Any:
    """Combine `additionalProperties`: whichever closes the object."""
    return False if second is False else first


def _types(first: Any, second: Any) -> Any:
    one, other = stated_types({"type": first}), stated_types({"type": second})
    common = [name for name in one if name in other or (name == "integer" and "number" in other)]
    common += [name for name in other if name == "integer" and "number" in one and name not in common]
    if not common:
        return first
    return common[0] if len(common) == 1 else common


def _values(first: list[Any], second: list[Any]) -> list[Any]:
    common = [value for value in first if any(_same(value, other) for other in second)]
    return common or first


def _same(one: Any, other: Any) -> bool:
    """Return True if two values are equal as JSON; `true` is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _names_of_both(first: list[str], second: list[str]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "additionalProperties": _closer,
    "enum": _values,
    "exclusiveMaximum": min,
    "exclusiveMinimum": max,
    "items": _schemas,
    "maxItems": min,
    "maxLength": min,
    "maxProperties": min,
    "maximum": min,
    "minItems": max,
    "minLength": max,
    "minProperties": max,
    "minimum": max,
    "patternProperties": _named,
    "properties": _named,
    "required": _names_of_both,
    "type": _types,
}


def _map(schema: Schema, keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _names(schema: Schema) -> list[str]:
    value = schema.get("required")
    return value if isinstance(value, list) else []
