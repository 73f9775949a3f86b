"""Older and freer spellings of JSON Schema in that of 2020-12, the names of types among them."""

from typing import Any

import pytest

from beckon_contract.schema.parameters import SchemaError
from beckon_contract.schema.respelling import read_type, respell


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("STRING", {"type": "string"}),
        (" int ", {"type": "integer"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("any", {}),
        ("list: int", {"type": "array", "items": {"type": "integer"}}),
        ("list[list[string]]", {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        ("array<any>", {"type": "array", "items": {}}),
        ("string|null|string", {"type": ["string", "null"]}),
        ("date | integer", {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}),
    ],
)
def test_a_name_becomes_a_schema(name: str, schema: dict[str, Any]) -> None:
    assert read_type(name) == schema


@pytest.mark.parametrize(
    "name",
    ["", "colour", "string[colour]", "list[colour]", "string|colour", "list[" * 20 + "int" + "]" * 20],
)
def test_another_name_becomes_none(name: str) -> None:
    assert read_type(name) is None


@pytest.mark.parametrize(
    ("node", "schema"),
    [
        ({"type": "enum", "values": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "enum", "enum": [1, "b"]}, {"enum": [1, "b"]}),
        ({"type": ["int", "any"]}, {}),
        ({"type": ["int", "date"]}, {"anyOf": [{"type": "integer"}, {"type": "string", "format": "date"}]}),
        (
            {"type": "int|date", "anyOf": [{"minimum": 1}]},
            {
                "anyOf": [{"minimum": 1}],
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string", "format": "date"}]}],
            },
        ),
        ({"type": {}}, {"type": {}}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"items": [{}], "additionalItems": False}, {"prefixItems": [{}], "items": False}),
        ({"items": [], "additionalItems": {"type": "string"}}, {"items": {"type": "string"}}),
        (
            {"dependencies": {"a": ["b"], "c": {"minProperties": 2}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"minProperties": 2}}},
        ),
        ({"dependencies": 7}, {}),
        ({"required": True}, {}),
        ({"required": "a", "properties": {}}, {"required": "a", "properties": {}}),
        ({"examples": {"one": {"value": 1}}}, {"examples": [{"value": 1}]}),
        ({"nullable": True}, {}),
        ({"nullable": True, "minimum": 1}, {"anyOf": [{"minimum": 1}, {"type": "null"}]}),
        (
            {"nullable": True, "type": ["string"], "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"minLength": 2.0, "maxLength": 2.5}, {"minLength": 2, "maxLength": 2.5}),
    ],
)
def test_a_keyword_has_the_spelling_of_today(node: dict[str, Any], schema: dict[str, Any]) -> None:
    assert respell(node, (), openapi=False) == schema


@pytest.mark.parametrize(
    ("node", "mistake"),
    [
        ({"type": "colour"}, "'colour' is no type"),
        ({"type": ["string", "colour"]}, "'colour' is no type"),
        ({"type": "enum"}, "lists its values"),
        ({"type": "enum", "values": []}, "lists its values"),
        ({"$dynamicRef": "#x"}, "dynamic references are not supported"),
    ],
)
def test_what_has_no_counterpart_is_refused(node: dict[str, Any], mistake: str) -> None:
    with pytest.raises(SchemaError, match=mistake):
        respell(node, (), openapi=False)
