"""Arguments as a model might write them, made from a tool's own schema.

`hypothesis-jsonschema` no longer works with today's hypothesis; the normal form of the contract needs little.
"""

import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import Schema, stated_types

_TEXT = st.text(st.sampled_from("abcXYZ019 _-.é世&=+?#%;,/"), min_size=1, max_size=8).filter(
    lambda text: text.strip("./ ;") != ""
)
_PLAIN = st.text(st.sampled_from("abcXYZ019_-"), min_size=1, max_size=8)
_FORMATS = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda when: f"{when.replace(microsecond=0).isoformat()}Z"),
    "uri": _PLAIN.map(lambda text: f"https://example.com/{text}"),
    "url": _PLAIN.map(lambda text: f"https://example.com/{text}"),
    "email": _PLAIN.map(lambda text: f"a{text}@example.com"),
    "uuid": st.uuids().map(str),
    "byte": st.just("YWJj"),
}


def arguments(parameters: Schema) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for what satisfies the parameters of a tool, optional ones there or not."""
    validator = jsonschema_rs.Draft202012Validator(parameters)
    return _values(parameters, Expansion(parameters), Stack()).filter(validator.is_valid)


def _values(node: Any, expansion: Expansion, outer: Stack) -> st.SearchStrategy[Any]:
    schema, stack = expansion.expand(node, outer)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list) and "properties" not in schema:
        return st.one_of([_values(branch, expansion, stack) for branch in branches])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    kinds = stated_types(schema) or (("object",) if "properties" in schema else ("string",))
    return st.one_of([_of_type(kind, schema, expansion, stack) for kind in kinds])


def _of_type(kind: str, schema: Schema, expansion: Expansion, stack: Stack) -> st.SearchStrategy[Any]:
    match kind:
        case "object":
            return _objects(schema, expansion, stack)
        case "array":
            items = _values(schema.get("items", {"type": "string"}), expansion, stack)
            least = schema.get("minItems", 0)
            return st.lists(items, min_size=least, max_size=min(schema.get("maxItems", 3), least + 3))
        case "integer":
            return st.integers(schema.get("minimum", 0), schema.get("maximum", 2**31 - 1))
        case "number":
            return st.integers(int(schema.get("minimum", 0)), int(schema.get("maximum", 90))).map(float)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return _texts(schema)


def _objects(schema: Schema, expansion: Expansion, stack: Stack) -> st.SearchStrategy[dict[str, Any]]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    made = {name: _values(inner, expansion, stack) for name, inner in properties.items()}
    required = {name: made[name] for name in schema.get("required", []) if name in made}
    for branch in (schema.get("anyOf") or [])[:1]:
        required |= {name: made[name] for name in branch.get("required", []) if name in made}
    return st.fixed_dictionaries(required, optional={n: v for n, v in made.items() if n not in required})


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(re.compile(str(schema["pattern"])))
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1000)
    return _TEXT.filter(lambda text: len(text) <= most).map(lambda text: text.ljust(least, "x"))
