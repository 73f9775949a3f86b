"""Every form in which parameters may be written, and the rule that distinguishes them."""

import json
from typing import Any

import pytest

from beckon_contract.schema.keywords import DIALECT
from beckon_contract.schema.lowering import Profile, lower
from beckon_contract.schema.parameters import (
    SchemaError,
    normalise,
    normalise_result,
    normalise_text,
    parameters_changed,
)
from tests.contract.oracle import check_schema
from tests.shared_data import shared_data

NOTHING = {"type": "object", "properties": {}}


def properties(document: object) -> dict[str, Any]:
    """Normalise, check the result against the metaschema, and return the properties."""
    schema = normalise(document)
    check_schema(schema)
    assert schema["type"] == "object"
    found: dict[str, Any] = schema["properties"]
    return found


@pytest.mark.parametrize("document", [None, {}, {"type": "object"}, {"properties": {}}, {"properties": None}])
def test_an_empty_or_missing_schema_means_no_parameters(document: object) -> None:
    assert normalise(document) == NOTHING


@pytest.mark.parametrize("text", ["", "  \n", "null", "{}", b"\xef\xbb\xbf{}"])
def test_a_blank_text_means_no_parameters(text: str | bytes) -> None:
    assert normalise_text(text) == NOTHING


def test_the_bare_map_of_knatives_blog_is_read_as_optional_parameters() -> None:
    text = (
        '{"location":{"type":"string","description":"The city"},'
        '"unit":{"type":"string","description":"One of [celsius, farenheit]"}}'
    )
    schema = normalise_text(text)
    assert schema["properties"]["location"] == {"type": "string", "description": "The city"}
    assert list(schema["properties"]) == ["location", "unit"]
    assert "required" not in schema


def test_a_full_schema_keeps_its_keywords() -> None:
    document = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1, "pattern": "^x"}, "b": {"const": 5}},
        "required": ["a"],
        "additionalProperties": False,
        "minProperties": 1,
    }
    assert normalise(document) == document


@pytest.mark.parametrize(
    ("notation", "schema"),
    [
        ("string", {"type": "string"}),
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("dict", {"type": "object"}),
        ("tuple", {"type": "array"}),
        ("list", {"type": "array"}),
        ("any", {}),
        ("STRING", {"type": "string"}),
        ("list:string", {"type": "array", "items": {"type": "string"}}),
        ("list:int", {"type": "array", "items": {"type": "integer"}}),
        ("list:list:float", {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("int|float", {"type": ["integer", "number"]}),
        (
            "string|list:string",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        ),
        ("date", {"type": "string", "format": "date"}),
    ],
)
def test_type_names_of_python_and_of_the_prototype_are_understood(notation: str, schema: object) -> None:
    assert properties({"p": {"type": notation}}) == {"p": schema}
    assert properties({"p": notation}) == {"p": schema}
    assert properties({"type": "object", "properties": {"p": notation}}) == {"p": schema}


def test_a_parameter_of_type_enum_lists_its_values() -> None:
    notes = json.loads(shared_data("examples", "declaration-notes.json").read_text())
    status = properties(notes["enum_with_values"])["status"]
    assert status == {
        "type": "string",
        "enum": ["now_playing", "upcoming"],
        "description": "Which list of films",
    }
    assert properties({"n": {"type": "enum", "values": [1, 2]}}) == {"n": {"enum": [1, 2]}}


def test_properties_without_a_type_accept_anything() -> None:
    tools = json.loads(shared_data("examples", "chatglm3-tools.json").read_text())
    assert properties(tools[0]["parameters"]) == {"symbol": {"description": "需要追踪的股票代码"}}
    assert properties({"type": "object", "properties": {"a": None, "b": True, "c": {}}}) == {
        "a": {},
        "b": True,
        "c": {},
    }


@pytest.mark.parametrize(
    "name",
    [
        "type",
        "properties",
        "required",
        "$ref",
        "items",
        "description",
        "enum",
        "allOf",
        "if",
        "$defs",
        "definitions",
        "additionalProperties",
        "default",
        "title",
        "$schema",
        "nullable",
        "values",
        "const",
        "not",
    ],
)
def test_a_parameter_may_be_called_like_any_keyword(name: str) -> None:
    parameter = {"type": "string", "description": "not a keyword"}
    other = {"type": "integer"}
    assert properties({name: parameter}) == {name: parameter}
    assert properties({name: parameter, "other": other}) == {name: parameter, "other": other}
    assert properties({"type": "object", "properties": {name: parameter}, "required": [name]}) == {
        name: parameter
    }


def test_nested_properties_may_be_called_like_keywords_too() -> None:
    inner = {"type": "object", "properties": {"type": {"type": "string"}, "properties": {"type": "object"}}}
    assert properties({"properties": inner, "type": inner}) == {"properties": inner, "type": inner}


def test_a_map_of_schemas_under_properties_makes_the_document_a_schema() -> None:
    assert properties({"properties": {"type": {"type": "string"}}}) == {"type": {"type": "string"}}


def test_a_schema_under_properties_makes_it_a_parameter_of_that_name() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert properties({"properties": inner}) == {"properties": inner}


def test_keywords_beside_the_parameters_of_a_bare_map_keep_their_meaning() -> None:
    document = {
        "city": {"$ref": "#/$defs/city"},
        "required": ["city"],
        "additionalProperties": False,
        "description": "Where it is",
        "$defs": {"city": {"type": "string"}},
        "x-owner": "weather",
    }
    assert normalise(document) == {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/city"}},
        "required": ["city"],
        "additionalProperties": False,
        "description": "Where it is",
        "$defs": {"city": {"type": "string"}},
        "x-owner": "weather",
    }


def test_keywords_for_programs_are_in_the_normal_form_and_in_no_declaration() -> None:
    document = {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "city": {"$ref": "#city", "x-mcp-header": "City"},
            "same": {"$ref": "#/properties/again"},
            "again": {"type": "string", "$anchor": "again", "x-order": 1},
        },
        "$defs": {"place": {"type": "string", "$anchor": "city", "x-note": {"type": 1}}},
    }
    normal = normalise(document)
    assert normal["$schema"] == document["$schema"]
    assert normal["properties"]["city"] == {"$ref": "#/$defs/place", "x-mcp-header": "City"}
    assert normal["properties"]["again"] == {"type": "string", "$anchor": "again", "x-order": 1}
    assert normal["$defs"] == {
        "place": {"type": "string", "$anchor": "city", "x-note": {"type": 1}},
        "again": {"type": "string", "x-order": 1},
    }
    for profile in Profile:
        text = json.dumps(lower(normal, profile))
        assert not any(word in text for word in ("$schema", "$anchor", "x-")), text


def test_an_anchor_that_is_no_name_is_left_out() -> None:
    assert properties({"type": "object", "properties": {"a": {"$anchor": "1 2"}}}) == {"a": {}}


def test_keywords_for_programs_are_no_change_of_parameters() -> None:
    plain = {"type": "object", "properties": {"a": {"type": "string"}}}
    more = {"$schema": DIALECT, "type": "object", "properties": {"a": {"type": "string", "x-order": 1}}}
    assert parameters_changed(normalise(plain), more) == ""
    assert parameters_changed(normalise(more), plain) == ""


def test_the_schema_of_a_result_may_be_of_any_type() -> None:
    assert normalise_result({"type": "array", "items": {"type": "int"}}) == {
        "type": "array",
        "items": {"type": "integer"},
    }
    sent_back = {"type": "object", "properties": {"id": {"readOnly": True}}, "required": ["id"]}
    assert normalise_result(sent_back) == sent_back


@pytest.mark.parametrize("document", [None, True, [], "string", {"type": "object", "properties": {"a": 5}}])
def test_a_schema_of_results_that_cannot_be_used_is_refused(document: object) -> None:
    with pytest.raises(SchemaError):
        normalise_result(document)


def test_older_spellings_are_translated() -> None:
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "items": [{"type": "string"}, {"type": "integer"}],
                "additionalItems": False,
            },
            "above": {"type": "number", "minimum": 5, "exclusiveMinimum": True},
            "below": {"type": "number", "maximum": 5, "exclusiveMaximum": False},
            "card": {"$ref": "#/definitions/card", "description": "hidden by the reference in draft 7"},
        },
        "dependencies": {"pair": ["card"], "above": {"required": ["below"]}},
        "definitions": {"card": {"type": "string"}, "unused": {"type": "null"}},
    }
    assert normalise(document) == {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "string"}, {"type": "integer"}],
                "items": False,
            },
            "above": {"type": "number", "exclusiveMinimum": 5},
            "below": {"type": "number", "maximum": 5},
            "card": {"$ref": "#/$defs/card"},
        },
        "dependentRequired": {"pair": ["card"]},
        "dependentSchemas": {"above": {"required": ["below"]}},
        "$defs": {"card": {"type": "string"}},
    }


def test_openapi_spellings_are_translated() -> None:
    document = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "string", "readOnly": True, "xml": {"attribute": True}},
            "name": {"type": "string", "nullable": True, "example": "Ada", "x-order": 1},
            "size": {"type": "string", "enum": ["s", "l"], "nullable": True},
            "owner": {"allOf": [{"$ref": "#/$defs/Owner"}], "nullable": True, "description": "who"},
            "pet": {"oneOf": [{"$ref": "#/$defs/Owner"}], "discriminator": {"propertyName": "kind"}},
        },
        "$defs": {"Owner": {"type": "object"}},
    }
    assert normalise(document) == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": ["string", "null"], "examples": ["Ada"], "x-order": 1},
            "size": {"type": ["string", "null"], "enum": ["s", "l", None]},
            "owner": {
                "description": "who",
                "anyOf": [{"allOf": [{"$ref": "#/$defs/Owner"}]}, {"type": "null"}],
            },
            "pet": {"oneOf": [{"$ref": "#/$defs/Owner"}]},
        },
        "$defs": {"Owner": {"type": "object"}},
    }


def test_a_required_flag_on_a_property_moves_to_the_list() -> None:
    schema = normalise(
        {"a": {"type": "string", "required": True}, "b": {"type": "string", "required": False}}
    )
    assert schema["required"] == ["a"]
    assert schema["properties"] == {"a": {"type": "string"}, "b": {"type": "string"}}


def test_what_is_written_in_yaml_with_nothing_after_it_is_left_out() -> None:
    assert properties({"type": "object", "properties": {"a": {"type": "string", "description": None}}}) == {
        "a": {"type": "string"}
    }
    lowered = properties({"a": {"enum": ["x", None], "default": None}})
    assert lowered == {"a": {"enum": ["x", None], "default": None}}


def test_a_nullable_root_is_still_an_object() -> None:
    assert normalise({"type": ["object", "null"], "properties": {"a": {}}}) == {
        "type": "object",
        "properties": {"a": {}},
    }


def test_normalising_twice_changes_nothing() -> None:
    document = {
        "a": {"type": "list:int", "nullable": True},
        "b": {"$ref": "#/$defs/x"},
        "$defs": {"x": {"type": "str"}},
    }
    once = normalise(document)
    assert normalise(once) == once
    assert normalise_text(json.dumps(once)) == once


def test_the_document_given_is_not_changed() -> None:
    document = {"a": {"type": "enum", "values": ["x"]}, "required": ["a"]}
    before = json.dumps(document)
    normalise(document)
    assert json.dumps(document) == before
