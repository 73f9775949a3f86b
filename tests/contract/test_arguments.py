"""Arguments as models write them: read, repaired, split or refused with words to act on."""

import json
import math
from typing import Any

import pytest

from beckon_contract.schema.arguments import (
    Arguments,
    InvalidArguments,
    Validator,
    read_arguments,
    split_arguments,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where it is"},
        "days": {"type": "integer", "minimum": 1},
        "metric": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "box": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
VALIDATOR = Validator(SCHEMA)
ANYTHING = Validator({"type": "object"})


def refused(raw: Any, validator: Validator = VALIDATOR) -> str:
    """Return the problems in the message for the model."""
    with pytest.raises(InvalidArguments) as caught:
        read_arguments(raw, validator)
    assert caught.value.problems
    return "; ".join(caught.value.problems)


@pytest.mark.parametrize("raw", [None, "", " \n", "null", "None", '""', b"", {}], ids=range(8))
def test_nothing_at_all_means_no_arguments(raw: Any) -> None:
    assert read_arguments(raw, ANYTHING).value == {}


@pytest.mark.parametrize("raw", [None, "{}"])
def test_nothing_is_refused_where_something_is_required(raw: Any) -> None:
    assert refused(raw) == "`city` is required and missing (string: Where it is)"


@pytest.mark.parametrize(
    ("raw", "value", "repaired"),
    [
        ('{"city":"Paris"}', {"city": "Paris"}, ()),
        (b'{"city":"Paris"}', {"city": "Paris"}, ()),
        ({"city": "Paris"}, {"city": "Paris"}, ()),
        ('```json\n{"city":"Paris"}\n```', {"city": "Paris"}, ("fence",)),
        ('```{"city":"Paris"}', {"city": "Paris"}, ("fence",)),
        ('json\n{"city":"Paris"}', {"city": "Paris"}, ("fence",)),
        ("{'city': 'Paris',}", {"city": "Paris"}, ("python_literal",)),
        (
            "{'city': 'L\\'Haÿ', 'metric': True, 'note': None}",
            {"city": "L'Haÿ", "metric": True, "note": None},
            ("python_literal",),
        ),
        ("{'city': 'Paris', 'metric': true}", {"city": "Paris", "metric": True}, ("python_literal",)),
        ("{'city': 'P', 'tags': ('a', 'b')}", {"city": "P", "tags": ["a", "b"]}, ("python_literal",)),
        ("{'city': '\\ud83d\\ude00'}", {"city": "😀"}, ("python_literal",)),
        ('"{\\"city\\": \\"Paris\\"}"', {"city": "Paris"}, ("double_encoding",)),
        ('\'{"city": "Paris"}\'', {"city": "Paris"}, ("python_literal", "double_encoding")),
        ("\"{'city': 'Paris'}\"", {"city": "Paris"}, ("double_encoding", "python_literal")),
        ("```\n{'city': 'Paris'}\n```", {"city": "Paris"}, ("fence", "python_literal")),
        ('{city: "Paris"}', {"city": "Paris"}, ("json_repair",)),
        ('{"city": "say "hi" now"}', {"city": 'say "hi" now'}, ("json_repair",)),
        ('{"city": "Paris"}}', {"city": "Paris"}, ("json_repair",)),
        ('{"city": "Paris" "days": 3}', {"city": "Paris", "days": 3}, ("json_repair",)),
    ],
)
def test_damaged_spelling_is_mended_and_the_repair_is_named(
    raw: Any, value: dict[str, Any], repaired: tuple[str, ...]
) -> None:
    assert read_arguments(raw, VALIDATOR) == Arguments(value, repaired)


@pytest.mark.parametrize(
    ("extra", "expected", "repaired"),
    [
        ({"days": "5"}, {"days": 5}, "type"),
        ({"days": 5.0}, {"days": 5.0}, None),
        ({"metric": "true"}, {"metric": True}, "type"),
        ({"metric": "False"}, {"metric": False}, "type"),
        ({"city": 75001}, {"city": "75001"}, "type"),
        ({"city": 10**30}, {"city": str(10**30)}, "type"),
        ({"tags": "a"}, {"tags": ["a"]}, "single_value"),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}, "type"),
        ({"tags": "['a', 'b']"}, {"tags": ["a", "b"]}, "type"),
        ({"tags": [1, 2]}, {"tags": ["1", "2"]}, "type"),
        ({"unit": " Celsius"}, {"unit": "celsius"}, "enum_spelling"),
        ({"box": '{"x": "1.5"}'}, {"box": {"x": 1.5}}, "type"),
        ({"limit": "7"}, {"limit": 7}, "type"),
        ({"limit": None}, {"limit": None}, None),
        ({"note": None}, {"note": None}, None),
        ({"note": ""}, {"note": ""}, None),
        ({"days": None}, {}, "empty_left_out"),
        ({"unit": ""}, {}, "empty_left_out"),
        ({"box": None}, {}, "empty_left_out"),
        ({"$task": "weather"}, {}, "unknown_dropped"),
    ],
    ids=str,
)
def test_values_are_moved_towards_the_schema_only_where_they_fail_it(
    extra: dict[str, Any], expected: dict[str, Any], repaired: str | None
) -> None:
    found = read_arguments({"city": "Paris", **extra}, VALIDATOR)
    assert found.value == {"city": "Paris", **expected}
    assert found.repaired == ((repaired,) if repaired else ())


def test_unknown_names_stay_where_the_schema_allows_them() -> None:
    assert read_arguments('{"$task": 1}', ANYTHING) == Arguments({"$task": 1})


def test_a_misspelt_parameter_is_refused_rather_than_dropped() -> None:
    assert refused('{"city": "Paris", "unitt": "celsius"}') == (
        'there is no "unitt" in the arguments; did you mean "unit"?'
    )


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"city": "P", "days": "soon"}', '`days` must be integer, got "soon"'),
        ('{"city": "P", "days": 0}', "`days`: 0 is less than the minimum of 1, got 0"),
        ('{"city": "P", "unit": "kelvin"}', '`unit` must be one of "celsius", "fahrenheit", got "kelvin"'),
        ('{"city": null}', "`city` must be string, got null"),
        ('{"city": "P", "tags": [["a"]]}', "`tags[0]` must be string, got an array of 1"),
        ('{"city": "P", "box": {}}', "`box.x` is required and missing (number)"),
        ('{"city": "P", "limit": "x"}', "`limit` fits none of its alternatives: `limit` must be integer"),
        ("[1]", "the arguments must be an object, got an array of 1"),
        ('"Paris"', 'the arguments must be an object, got "Paris"'),
        ("Paris", "the arguments are not JSON"),
        ('{"city": "Par', "the arguments are not JSON: Unterminated string"),
        ('{"city": "P", "box": {"x": 1}', "the arguments are not JSON"),
        ('{"city": "a"}{"city": "b"}', "several JSON values one after the other"),
        ('{"city": "a"} | call_rag_server', "the arguments are not JSON"),
        ('{"city": "a", "city": "b"}', "`city` is given twice"),
        ("{'city': 'a', 'city': 'b'}", "`city` is given twice"),
        ('{"city": "P", "days": NaN}', "NaN is not a JSON number"),
        ('{"city": "P", "days": 1e999}', "1e999 is too large"),
        ('{"city": "P", "days": 1' + "0" * 30 + "}", "does not fit into 64 bits"),
        ('{"city": "P", "days": 1' + "0" * 5000 + "}", "too large for a number"),
        ('{"city": "\\ud800"}', "not JSON"),
        ({"city": math.inf}, "not JSON"),
        ({"city": {"a": {1}}}, "not JSON"),
        ({1: "a"}, "every name in the arguments must be a string"),
        (b"\xff", "not UTF-8"),
    ],
    ids=range(25),
)
def test_a_refusal_shows_the_model_what_to_change(raw: Any, said: str) -> None:
    assert said in refused(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "{'p': 'C:\\apps'}",
        '{"p": "a"\n "b"}',
        "{'p': 0x10}",
        "{'p': 007.5}",
        "{'p': 1_000}",
        "{'p': b'x'}",
        "{'p': {1}}",
        "{'p': f()}",
        "{'p': 1 + 2}",
        "{'p': undefined}",
        '{"p": "a" + "b"}',
        '{"p": 2024-10-18}',
        '{"p": 0123}',
        '{"p": }',
        "{'p': 'it's'}",
        '{"p": "72""}',
        '{"p": "x" // why\n}',
        '{"p": [{}{}]}',
        '{"p": [1, 2',
    ],
    ids=range(19),
)
def test_what_could_have_two_meanings_is_refused(raw: str) -> None:
    refused(raw, ANYTHING)


def test_the_same_key_twice_with_the_same_value_does_no_harm() -> None:
    assert read_arguments('{"a": 1, "a": 1}', ANYTHING).value == {"a": 1}


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 100_000,
        '{"a":' * 5_000,
        "(" * 60_000,
        "-" * 60_000 + "1",
        "{'a':" * 60 + "1",
        '{"a": "' + "\\" * 60_000,
        "{q: '" + "x" * 60_000 + "}",
        "{" + "a:b," * 1_000 + "}",
        '"' * 4_000,
        "`" * 100_000,
        "{" + "'" * 60_000,
        "\\u" * 30_000,
        "{'a': " + "not " * 10_000 + "1}",
    ],
    ids=range(13),
)
def test_texts_made_to_exhaust_the_reader_are_refused(raw: str) -> None:
    assert len(refused(raw, ANYTHING)) < 500


def test_a_megabyte_of_valid_arguments_is_read_and_more_is_refused() -> None:
    raw = json.dumps({"city": "x" * 900_000})
    assert len(read_arguments(raw, VALIDATOR).value["city"]) == 900_000
    assert "1000000" in refused(json.dumps({"city": "x" * 1_000_000}))


def test_problems_are_short_and_few_however_long_the_arguments() -> None:
    problems = refused({"city": "P", "tags": [{"y" * 1_000: "x" * 10_000}] * 500})
    assert len(problems) < 4_000
    assert problems.endswith("and 490 more")


def test_calls_that_a_server_joined_are_split_when_each_part_fits() -> None:
    parts = [{"city": "a"}, {"city": "b"}]
    assert split_arguments('{"city": "a"}{"city": "b"}', VALIDATOR) == parts
    assert split_arguments('{"city": "a"},\n {"city": "b"}', SCHEMA) == parts
    assert split_arguments('```json\n{"city": "a"}\n{"city": "b"}\n```', VALIDATOR) == parts


@pytest.mark.parametrize(
    "raw",
    [
        '{"city": "a"}',
        '{"city": "a"}{"town": "b"}',
        '{"city": "a"}{"city": "b"',
        '{"city": "a"} and',
        "",
        "[1][2]",
        '[{"city": "a"}, {"city": "b"}]',
        '{"city": "a"}' * 200,
    ],
    ids=range(8),
)
def test_anything_else_is_not_split(raw: str) -> None:
    assert split_arguments(raw, VALIDATOR) is None


def test_arguments_given_as_an_object_are_not_changed_in_place() -> None:
    given = {"city": "Paris", "days": "5", "box": {"x": "1"}}
    read_arguments(given, VALIDATOR)
    assert given == {"city": "Paris", "days": "5", "box": {"x": "1"}}


def test_formats_are_advice_for_the_model_and_not_a_reason_to_refuse() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}
    assert read_arguments('{"at": "tomorrow"}', schema).value == {"at": "tomorrow"}


@pytest.mark.parametrize("digits", ["１２", "٣", "१", "１.５", "−3"])
def test_digits_of_other_scripts_are_not_made_numbers(digits: str) -> None:
    for schema in ("integer", "number"):
        validator = Validator({"properties": {"n": {"type": schema}}})
        assert schema in refused(json.dumps({"n": digits}), validator)
        assert refused(f"{{'n': {digits}}}", validator)


def test_a_whole_float_for_an_integer_is_that_integer() -> None:
    number = {"type": "integer", "minimum": 1}
    schema = {
        "properties": {
            "plain": number,
            "list": {"items": {"$ref": "#/$defs/number"}},
            "either": {"anyOf": [{"type": "string"}, number]},
            "optional": {"type": ["integer", "null"]},
            "float": {"type": "number"},
            "both": {"type": ["integer", "number"]},
        },
        "$defs": {"number": number},
    }
    text = '{"plain": 3.0, "list": [1e3, 2], "either": 4.0, "optional": 5E0, "float": 6.0, "both": 7.0}'
    read = read_arguments(text, schema)
    wanted = {"plain": 3, "list": [1000, 2], "either": 4, "optional": 5, "float": 6.0, "both": 7.0}
    assert (repr(read.value), read.repaired) == (repr(wanted), ())
    assert "64 bits" in refused('{"plain": 1e30}', Validator(schema))
