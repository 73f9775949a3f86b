"""Parameters that cannot be used are refused with a reason, the place, and what to write instead."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.schema.parameters import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PROPERTIES,
    SchemaError,
    normalise,
    normalise_text,
)


def refusal(document: object) -> SchemaError:
    """Return why a document is refused."""
    with pytest.raises(SchemaError) as caught:
        normalise(document)
    return caught.value


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("document", "reason", "path", "cure"),
    [
        ([{"type": "string"}], "NotAnObject", "", "write {"),
        ("string", "NotAnObject", "", "write them as a JSON object"),
        (True, "NotAnObject", "", "write {"),
        ({"a": 5}, "NotASchema", "/a", '{"type": "string"'),
        ({"a": "a city"}, "NotASchema", "/a", '{"type": "string"'),
        ({"type": "object", "properties": {"a": ["x"]}}, "NotASchema", "/properties/a", "expected a schema"),
        ({"type": "object", "city": {"type": "string"}}, "MisplacedParameters", "/city", "`properties`"),
        (
            {"name": "f", "description": "d", "parameters": {"type": "object"}},
            "MisplacedParameters",
            "/parameters",
            "only",
        ),
        ({"type": "function", "function": {"name": "f"}}, "MisplacedParameters", "/function", "only"),
        ({"type": "string"}, "RootNotObject", "/type", '{"type": {"type": "string"}}'),
        ({"type": ["array", "null"]}, "RootNotObject", "/type", "properties"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}, "RootNotObject", "/type", "properties"),
        ({"a": {"type": "strin"}}, "UnknownType", "/properties/a/type", "write string, integer"),
        ({"a": {"type": "list:strin"}}, "UnknownType", "/properties/a/type", "write string, integer"),
        ({"a": {"$ref": "https://example.com/a.json"}}, "RemoteReference", "/properties/a/$ref", "`$defs`"),
        ({"a": {"$ref": "other.json#/a"}}, "RemoteReference", "/properties/a/$ref", "`$defs`"),
        ({"a": {"$ref": "#/$defs/a"}}, "UnresolvableReference", "/properties/a/$ref", "`$defs`"),
        ({"a": {"$ref": "#nowhere"}}, "UnresolvableReference", "/properties/a/$ref", "`$defs`"),
        ({"a": {"$ref": 5}}, "InvalidSchema", "/properties/a/$ref", "#/$defs/NAME"),
        ({"a": {"$dynamicRef": "#a"}}, "UnsupportedKeyword", "/properties/a/$dynamicRef", "`$ref`"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "UnsupportedDialect", "/$schema", "2020-12"),
        ({"a": {"type": "enum"}}, "InvalidSchema", "/properties/a", '{"enum": ["a", "b"]}'),
        ({"a": {"minLength": -1}}, "InvalidSchema", "/properties/a/minLength", ""),
        ({"a": {"pattern": "("}}, "InvalidSchema", "/properties/a/pattern", "regular expression"),
        ({"a": {"description": 5}}, "InvalidSchema", "/properties/a/description", ""),
        ({"type": "object", "required": "a"}, "InvalidSchema", "/required", ""),
        ({"a": {"minimum": math.nan}}, "NotJson", "", "JSON"),
        ({"a": {"default": {1, 2}}}, "NotJson", "", "JSON"),
        ({1: {"type": "string"}}, "NotJson", "", "quotes"),
    ],
)
def test_a_refusal_names_the_reason_the_place_and_the_cure(
    document: object, reason: str, path: str, cure: str
) -> None:
    error = refusal(document)
    assert (error.reason, error.path) == (reason, path)
    assert cure in error.message
    assert str(error).endswith(error.message)


@pytest.mark.parametrize(
    "text", ["{", "{'a': 1}", "location: string", '{"a": NaN}', '{"a": {}, "a": {}}', b"\xff"]
)
def test_a_text_that_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(SchemaError) as caught:
        normalise_text(text)
    assert caught.value.reason == "NotJson"
    assert "write JSON" in caught.value.message


def test_an_unresolvable_reference_lists_what_there_is() -> None:
    error = refusal({"a": {"$ref": "#/$defs/citty"}, "$defs": {"city": {"type": "string"}}})
    assert "'city'" in error.message


def test_documents_over_the_limits_are_refused() -> None:
    assert refusal({"a": {"description": "x" * MAX_BYTES}}).reason == "TooLarge"
    assert refusal({"a": nested(MAX_DEPTH)}).reason == "TooDeep"
    many = {f"p{number}": {"type": "string"} for number in range(MAX_PROPERTIES + 1)}
    assert refusal(many).reason == "TooManyProperties"
    assert refusal({"type": "object", "properties": many}).reason == "TooManyProperties"


def test_a_document_that_repeats_itself_without_end_is_refused() -> None:
    doubled: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        doubled = {"a": doubled, "b": doubled}  # as YAML's aliases do: small to write, a billion to read
    assert refusal({"p": doubled}).reason == "TooLarge"
    itself: dict[str, Any] = {}
    itself["properties"] = itself
    assert refusal(itself).reason == "TooDeep"


def test_documents_within_the_limits_are_accepted() -> None:
    normalise({"a": nested(MAX_DEPTH - 3)})
    normalise({f"p{number}": {"type": "string"} for number in range(MAX_PROPERTIES)})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 200_000, "NotJson"),
        ('{"a":' * 40_000, "NotJson"),
        (" " * (MAX_BYTES + 1), "TooLarge"),
        ('{"a":' * 500 + "{}" + "}" * 500, "TooDeep"),
    ],
    ids=["brackets", "braces", "blank", "deep"],
)
def test_a_text_made_to_exhaust_the_reader_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        normalise_text(text)
    assert caught.value.reason in {reason, "TooDeep"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "$ref",
                    "$defs",
                    "required",
                    "items",
                    "allOf",
                    "anyOf",
                    "enum",
                    "a",
                    "b",
                    "nullable",
                    "definitions",
                    "$id",
                    "$anchor",
                    "dependencies",
                    "exclusiveMinimum",
                    "minimum",
                    "examples",
                ]
            ),
            inner | st.sampled_from(["object", "string", "#", "#/$defs/a", "enum", "list:int"]),
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(json_values)
def test_whatever_is_given_is_normalised_or_refused_with_a_reason(document: object) -> None:
    try:
        schema = normalise(document)
    except SchemaError as error:
        said = error.reason, error.message
    else:
        assert schema["type"] == "object"
        assert normalise(json.loads(json.dumps(schema))) == schema
        return
    assert all(said)


def test_properties_that_are_null_count_as_absent() -> None:
    parameters = normalise({"properties": None, "city": "string"})

    assert parameters["properties"] == {"city": {"type": "string"}}
