"""Every lowered schema satisfies its provider's rules, keeps the names, and only loosens."""

import json
from collections import ChainMap
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from beckon_contract.schema.keywords import Schema, children
from beckon_contract.schema.lowering import Profile, lower, lower_strict
from beckon_contract.schema.parameters import SchemaError, normalise
from tests.contract.schema_family import Pair, parameters, scalars
from tests.shared_data import shared_data

GEMINI_KEYWORDS = {
    "type",
    "nullable",
    "description",
    "enum",
    "format",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "anyOf",
}
GEMINI_FORMATS = {
    ("integer", "int32"),
    ("integer", "int64"),
    ("number", "float"),
    ("number", "double"),
    ("string", "date-time"),
}
STRICT_KEYWORDS = {
    "type",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "description",
}
LLAMA_FORBIDDEN = {
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "contains",
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedProperties",
    "unevaluatedItems",
}


def nodes(schema: object) -> Iterator[Schema]:
    """Yield a schema and every schema in it; none may be a boolean except under additionalProperties."""
    assert isinstance(schema, dict)
    yield schema
    for path, child in children(schema):
        if path != ("additionalProperties",) or not isinstance(child, bool):
            yield from nodes(child)


def check_root(lowered: Schema) -> None:
    assert lowered["type"] == "object"
    assert isinstance(lowered["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref", "if"} & lowered.keys()


def check_openai(lowered: Schema) -> None:
    check_root(lowered)
    for node in nodes(lowered):
        assert not {"allOf", "oneOf", "not", "if", "unevaluatedProperties"} & node.keys()
        assert node.get("enum") != []
        if node.get("type") == "array":
            assert "items" in node
        if "$ref" in node:
            assert node.keys() == {"$ref"}


def check_strict(lowered: Schema) -> None:
    check_root(lowered)
    for node in nodes({key: value for key, value in lowered.items() if key != "$defs"}):
        check_strict_node(node)
    for definition in lowered.get("$defs", {}).values():
        for node in nodes(definition):
            check_strict_node(node)


def check_strict_node(node: Schema) -> None:
    if "$ref" in node:
        assert node.keys() == {"$ref"}
        return
    assert node.keys() <= STRICT_KEYWORDS
    assert "type" in node or "anyOf" in node
    if node.get("type") == "object":
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    if node.get("type") == "array":
        assert node["items"]


def check_gemini(lowered: Schema) -> None:
    check_root(lowered)
    for node in nodes(lowered):
        assert node.keys() <= GEMINI_KEYWORDS
        if "anyOf" in node:
            assert node.keys() == {"anyOf"}
            continue
        assert node["type"] in {"string", "number", "integer", "boolean", "array", "object"}
        check_gemini_members(node)


def check_gemini_members(node: Schema) -> None:
    assert ("items" in node) == (node["type"] == "array")
    assert node.keys().isdisjoint({"properties", "required"}) or node["type"] == "object"
    assert set(node.get("required", ())) <= set(node.get("properties", ()))
    if "enum" in node:
        assert node["type"] == "string"
        assert all(isinstance(value, str) and value for value in node["enum"])
    assert "format" not in node or (node["type"], node["format"]) in GEMINI_FORMATS


def check_llama_cpp(lowered: Schema) -> None:
    check_root(lowered)
    for node in nodes(lowered):
        assert not LLAMA_FORBIDDEN & node.keys()
        assert (
            max((node.get(key, 0) for key in ("minItems", "maxItems", "minLength", "maxLength")), default=0)
            <= 100
        )
        if "$ref" in node or "anyOf" in node:
            assert node.keys() <= {"$ref", "anyOf", "description"}
        else:
            assert node.keys() & {"type", "enum", "const", "properties", "items", "additionalProperties"}


CHECKS = {
    Profile.OPENAI: check_openai,
    Profile.GEMINI: check_gemini,
    Profile.LLAMA_CPP: check_llama_cpp,
}


def real_schemas() -> list[Schema]:
    documents = [
        json.loads(line)["schema"]
        for line in shared_data("openapi-tools", "tools.jsonl").read_text().splitlines()
    ]
    for path in sorted(shared_data("bfcl").glob("*.json")):
        lines = path.read_text().splitlines()
        documents += [function["parameters"] for line in lines for function in json.loads(line)["function"]]
    return [schema for document in documents for schema in usable(document)]


def usable(document: object) -> Iterator[Schema]:
    try:
        yield normalise(document)
    except SchemaError:
        return


def test_real_schemas_lowered_satisfy_the_rules_of_every_provider() -> None:
    strict = 0
    schemas = real_schemas()
    for schema in schemas:
        for profile, check in CHECKS.items():
            lowered = lower(schema, profile)
            check(lowered)
            assert set(schema["properties"]) <= set(lowered["properties"])
        in_strict_mode = lower_strict(schema)
        if in_strict_mode is not None:
            check_strict(in_strict_mode)
            strict += 1
    assert (len(schemas), strict) == (2215, 2156)


@pytest.mark.parametrize("stem", ["draft2020-12", "draft7"])
def test_lowering_never_fails_on_the_schemas_of_the_official_suite(stem: str) -> None:
    for path in sorted(shared_data("json-schema", "tests", stem).glob("*.json")):
        for group in json.loads(path.read_text()):
            for schema in usable({"type": "object", "properties": {"value": group["schema"]}}):
                for profile, check in CHECKS.items():
                    check(lower(schema, profile))


@given(parameters())
def test_every_lowered_schema_satisfies_its_providers_rules_and_keeps_the_names(pair: Pair) -> None:
    schema = normalise(pair[0])
    for profile, check in CHECKS.items():
        lowered = lower(schema, profile)
        check(lowered)
        assert list(lowered["properties"]) == list(schema["properties"])
    strict = lower_strict(schema)
    if strict is not None:
        check_strict(strict)
        assert list(strict["properties"]) == list(schema["properties"])


@given(parameters())
def test_lowering_is_deterministic_and_leaves_the_schema_alone(pair: Pair) -> None:
    schema = normalise(pair[0])
    before = json.dumps(schema)
    for profile in Profile:
        assert json.dumps(lower(schema, profile)) == json.dumps(lower(json.loads(before), profile))
    assert json.dumps(schema) == before


def from_gemini(node: Any) -> Any:
    """Return what Gemini's dialect means in JSON Schema."""
    meant = {
        key: value for key, value in node.items() if key not in ("nullable", "properties", "items", "anyOf")
    }
    if "properties" in node:
        meant["properties"] = {name: from_gemini(entry) for name, entry in node["properties"].items()}
    if "items" in node:
        meant["items"] = from_gemini(node["items"])
    if "anyOf" in node:
        meant["anyOf"] = [from_gemini(branch) for branch in node["anyOf"]]
    if node.get("nullable"):
        return {"anyOf": [meant, {"type": "null"}]}
    return meant


def accepts(schema: Schema, instance: object) -> bool:
    return jsonschema_rs.Draft202012Validator(schema).is_valid(instance)


@given(parameters())
def test_arguments_valid_for_the_original_are_valid_for_what_was_sent(pair: Pair) -> None:
    schema, instance = normalise(pair[0]), pair[1]
    assert accepts(schema, instance)
    assert accepts(lower(schema, Profile.OPENAI), instance)
    assert accepts(lower(schema, Profile.LLAMA_CPP), instance)
    assert accepts(from_gemini(lower(schema, Profile.GEMINI)), instance)


def fragments(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Return strategies for one or a few keywords that belong to each other."""
    return st.one_of(
        st.builds(lambda name, child: {"properties": {name: child}}, st.sampled_from("ab"), inner),
        st.builds(lambda child: {"properties": {"a": child}, "additionalProperties": False}, inner),
        st.builds(lambda child: {"additionalProperties": child}, inner),
        st.builds(lambda child: {"patternProperties": {"^a": child}, "additionalProperties": False}, inner),
        st.builds(lambda child: {"items": child}, inner),
        st.builds(lambda child, rest: {"prefixItems": [child], "items": rest}, inner, inner),
        st.builds(lambda one, two: {"allOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"anyOf": [one, two]}, scalars.map(lambda pair: pair[0]), inner),
        st.builds(lambda child: {"not": child}, inner),
        st.builds(lambda one, two: {"if": one, "then": two}, inner, inner),
        st.builds(lambda child, limit: {"contains": child, "maxContains": limit}, inner, st.integers(1, 2)),
        st.builds(lambda child: {"dependentSchemas": {"a": child}}, inner),
        st.builds(lambda child: {"propertyNames": child}, inner),
    )


SIMPLE = st.sampled_from(
    [
        {},
        {"type": "object"},
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": ["object", "array"]},
        {"required": ["a"]},
        {"enum": ["a", 1, None, []]},
        {"const": "a"},
        {"maxLength": 1},
        {"minItems": 1},
        {"maxItems": 1},
        {"minProperties": 1},
        {"uniqueItems": True},
        {"unevaluatedProperties": False},
        {"dependentRequired": {"a": ["b"]}},
    ]
)
GRAMMAR = st.recursive(
    SIMPLE,
    lambda inner: st.lists(fragments(inner), min_size=1, max_size=2).map(
        lambda parts: dict(ChainMap(*parts))
    ),
    max_leaves=5,
)
INSTANCES = st.recursive(
    st.sampled_from(["", "a", "abc", 1, 2, None, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from("ab"), GRAMMAR, max_size=2),
    GRAMMAR,
    st.dictionaries(st.sampled_from("abc"), INSTANCES, max_size=2),
)
def test_lowering_loosens_whatever_keywords_are_combined(
    properties: dict[str, Schema], part: Schema, instance: dict[str, Any]
) -> None:
    schema = normalise({"type": "object", "properties": properties, "allOf": [part]})
    assume("anyOf" not in part)  # alternatives of the whole are absorbed, which has a rule of its own
    assume(accepts(schema, instance))
    assert accepts(lower(schema, Profile.OPENAI), instance)
    assert accepts(lower(schema, Profile.LLAMA_CPP), instance)


@given(parameters())
def test_what_strict_mode_sends_describes_valid_arguments_once_nulls_are_left_out(pair: Pair) -> None:
    schema, instance = normalise(pair[0]), pair[1]
    strict = lower_strict(schema)
    assume(strict is not None)
    assert strict is not None
    full = {**dict.fromkeys(schema["properties"]), **instance}
    known = {name: value for name, value in full.items() if name in schema["properties"]}
    if not any(isinstance(value, dict | list) for value in known.values()):
        assert accepts(strict, known)
