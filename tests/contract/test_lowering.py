"""What is sent to each provider, by example."""

import json
from typing import Any

import pytest

from beckon_contract.schema.lowering import MAX_CHARACTERS, Profile, lower, lower_strict
from beckon_contract.schema.parameters import normalise


def sent(parameter: object, profile: str, **keywords: Any) -> Any:
    """Return how one required parameter is sent."""
    document = {"type": "object", "properties": {"p": parameter}, "required": ["p"], **keywords}
    return lower(normalise(document), profile)["properties"]["p"]


def test_a_plain_schema_is_sent_to_openai_as_it_is() -> None:
    schema = normalise(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "pattern": "^x", "format": "date"},
                "n": {"enum": [1]},
            },
            "required": ["city"],
            "additionalProperties": False,
        }
    )
    assert lower(schema, Profile.OPENAI) == schema


@pytest.mark.parametrize("profile", list(Profile))
def test_no_parameters_are_an_empty_object(profile: str) -> None:
    lowered = lower(normalise(None), profile)
    assert (lowered["type"], lowered["properties"]) == ("object", {})


def test_an_unknown_profile_is_an_error() -> None:
    with pytest.raises(ValueError, match="openia"):
        lower(normalise(None), "openia")


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_alternatives_of_the_whole_become_optional_parameters_and_a_sentence(
    keyword: str, profile: str
) -> None:
    schema = normalise(
        {
            "type": "object",
            "properties": {"note": {"type": "string"}},
            keyword: [
                {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
                {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            ],
        }
    )
    lowered = lower(schema, profile)
    assert list(lowered["properties"]) == ["note", "id", "name"]
    assert lowered["description"] == "Give id, or name."
    assert not {"anyOf", "oneOf", "required"} & lowered.keys()


def test_all_parts_of_an_allof_are_merged() -> None:
    schema = normalise(
        {
            "allOf": [
                {"$ref": "#/$defs/paged"},
                {"properties": {"q": {"type": "string"}, "size": {"maximum": 50}}, "required": ["q"]},
            ],
            "$defs": {
                "paged": {"properties": {"size": {"type": "integer", "maximum": 100}}, "required": ["size"]}
            },
        }
    )
    assert lower(schema, "openai") == {
        "type": "object",
        "properties": {"size": {"type": "integer", "maximum": 50}, "q": {"type": "string"}},
        "required": ["size", "q"],
    }


def test_openai_is_given_items_for_every_array() -> None:
    assert sent({"type": "array"}, "openai") == {"type": "array", "items": {}}


def test_strict_mode_requires_every_property_and_lets_the_optional_ones_be_null() -> None:
    schema = normalise(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "first"},
                "b": {"type": "integer", "minimum": 1},
                "c": {"enum": ["x", "y"]},
                "d": {"type": "object", "properties": {"e": {"type": "boolean"}}},
                "f": {"$ref": "#/$defs/f"},
            },
            "required": ["a"],
            "$defs": {"f": {"type": "object", "properties": {"f": {"$ref": "#/$defs/f"}}}},
        }
    )
    optional_f = {"anyOf": [{"$ref": "#/$defs/f"}, {"type": "null"}]}
    closed = {
        "type": "object",
        "properties": {"f": optional_f},
        "required": ["f"],
        "additionalProperties": False,
    }
    inner = {"e": {"type": ["boolean", "null"]}}
    assert lower_strict(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "first"},
            "b": {"type": ["integer", "null"], "description": "At least 1"},
            "c": {"type": ["string", "null"], "enum": ["x", "y", None]},
            "d": {
                "anyOf": [
                    {"type": "object", "properties": inner, "required": ["e"], "additionalProperties": False},
                    {"type": "null"},
                ]
            },
            "f": optional_f,
        },
        "required": ["a", "b", "c", "d", "f"],
        "additionalProperties": False,
        "$defs": {"f": closed},
    }


@pytest.mark.parametrize(
    "parameter",
    [
        {},
        {"type": "array"},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "array", "items": {}},
        False,
    ],
    ids=str,
)
def test_what_strict_mode_cannot_say_is_sent_without_it(parameter: object) -> None:
    schema = normalise({"type": "object", "properties": {"p": parameter}})
    assert lower_strict(schema) is None
    assert lower(schema, Profile.OPENAI_STRICT) == lower(schema, Profile.OPENAI)


def test_gemini_is_reported_in_words_what_it_has_no_keyword_for() -> None:
    parameter = {"type": "string", "pattern": "^a", "maxLength": 9, "description": "A code", "default": "a"}
    assert sent(parameter, "gemini") == {
        "type": "string",
        "description": 'A code (matches ^a; at most 9 characters; default: "a")',
    }
    assert sent({"type": "integer", "enum": [3, 5]}, "gemini") == {
        "type": "integer",
        "description": "One of 3, 5",
    }
    assert sent({"const": "x"}, "gemini") == {"type": "string", "description": 'Always "x"'}


def test_gemini_has_one_type_and_nullable_beside_it() -> None:
    assert sent({"type": ["string", "null"]}, "gemini") == {"type": "string", "nullable": True}
    union = {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "description": "either"}
    assert sent(union, "gemini") == {
        "anyOf": [
            {"type": "integer", "description": "either", "nullable": True},
            {"type": "string", "description": "either", "nullable": True},
        ]
    }


def test_gemini_is_sent_references_written_out_and_cut_where_they_recurse() -> None:
    definitions = {
        "n": {"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/n"}}}
    }
    assert sent({"$ref": "#/$defs/n"}, "gemini", **{"$defs": definitions}) == {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "n": {"type": "object"}},
    }


def test_llama_cpp_is_sent_no_patterns_and_no_large_repetitions() -> None:
    parameter = {"type": "string", "pattern": "\\d+", "maxLength": 5000, "minLength": 1}
    assert sent(parameter, "llama_cpp") == {
        "type": "string",
        "minLength": 1,
        "description": "Matches \\d+; at most 5000 characters",
    }


def test_llama_cpp_is_sent_a_type_for_everything() -> None:
    assert set(sent({"description": "anything"}, "llama_cpp")["type"]) == {
        "array",
        "boolean",
        "integer",
        "null",
        "number",
        "object",
        "string",
    }


@pytest.mark.parametrize("profile", list(Profile))
def test_descriptions_are_shortened_when_a_schema_would_fill_the_prompt(profile: str) -> None:
    wordy = {f"p{n}": {"type": "string", "description": "x" * 1200} for n in range(200)}
    lowered = lower(normalise(wordy), profile)
    assert list(lowered["properties"]) == list(wordy)
    assert len(json.dumps(lowered)) <= MAX_CHARACTERS
    single = lower(normalise({"p": {"type": "string", "description": "x" * 3000}}), profile)
    assert len(single["properties"]["p"]["description"]) == 1024


@pytest.mark.parametrize("profile", list(Profile))
def test_definitions_that_multiply_when_written_out_are_lowered_within_bounds(profile: str) -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {
            "allOf": [{"properties": {f"{s}{n}": {"$ref": f"#/$defs/d{n + 1}", "title": s} for s in "lr"}}]
        }
        for n in range(30)
    }
    definitions["d30"] = {"type": "string"}
    lowered = lower(normalise({"p": {"$ref": "#/$defs/d0"}, "$defs": definitions}), profile)
    assert list(lowered["properties"]) == ["p"]
    assert len(json.dumps(lowered)) < 2_000_000
