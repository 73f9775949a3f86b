"""Repair never invents: damage gives back the same arguments or a refusal, and valid JSON is left alone."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beckon_contract.schema.arguments import InvalidArguments, Validator, read_arguments
from beckon_contract.schema.parameters import normalise
from tests.contract.oracle import is_valid
from tests.contract.schema_family import Pair, parameters
from tests.shared_data import shared_data

ANYTHING = Validator({"type": "object"})


def trailing_comma(instance: dict[str, Any]) -> str:
    return json.dumps(instance)[:-1] + ",}"


def bare_keys(instance: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in instance.items()) + "}"


def swapped_quotes(instance: dict[str, Any]) -> str:
    return json.dumps(instance).replace('"', "'")


DAMAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "fence": lambda instance: f"```json\n{json.dumps(instance)}\n```",
    "open fence": lambda instance: f"```\n{json.dumps(instance)}",
    "label": lambda instance: f"json\n{json.dumps(instance)}",
    "python": repr,
    "fenced python": lambda instance: f"```python\n{instance!r}\n```",
    "quotes": swapped_quotes,
    "encoded": lambda instance: json.dumps(json.dumps(instance)),
    "encoded python": lambda instance: json.dumps(repr(instance)),
    "comma": trailing_comma,
    "bare keys": bare_keys,
    "brace": lambda instance: json.dumps(instance) + "}",
    "cut": lambda instance: json.dumps(instance)[:-1],
}
MENDED = {"fence", "open fence", "label", "python", "fenced python", "encoded", "encoded python", "comma"}


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON; `1`, `1.0` and `true` differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(parameters(), st.sampled_from(sorted(DAMAGES)))
def test_damage_is_repaired_to_the_same_arguments_or_refused(pair: Pair, damage: str) -> None:
    schema, instance = normalise(pair[0]), pair[1]
    assume(bool(instance))
    try:
        found = read_arguments(DAMAGES[damage](instance), schema).value
    except InvalidArguments:
        assert damage not in MENDED
    else:
        assert same(found, instance)


@given(parameters(), st.booleans())
def test_valid_json_is_never_changed(pair: Pair, indented: bool) -> None:
    schema, instance = normalise(pair[0]), pair[1]
    found = read_arguments(json.dumps(instance, indent=2 if indented else None), schema)
    assert same(found.value, instance)
    assert found.repaired == ()
    assert same(read_arguments(instance, schema).value, instance)


def stringified(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stringified(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [stringified(entry) for entry in value]
    return value if isinstance(value, str) else json.dumps(value)


@given(parameters())
def test_stringified_numbers_never_give_invalid_arguments(pair: Pair) -> None:
    schema, instance = normalise(pair[0]), pair[1]
    try:
        found = read_arguments(stringified(instance), schema)
    except InvalidArguments:
        return
    assert is_valid(schema, found.value)


FLAT = st.dictionaries(
    st.sampled_from("abcd"), st.integers(-9, 9) | st.booleans() | st.floats(-9, 9), min_size=1
)
TYPES = {bool: "boolean", int: "integer", float: "number"}


@given(FLAT)
def test_stringified_numbers_and_booleans_come_back_as_what_they_were(instance: dict[str, Any]) -> None:
    properties = {name: {"type": TYPES[type(value)]} for name, value in instance.items()}
    schema = {"type": "object", "properties": properties, "required": list(instance)}
    assert read_arguments(stringified(instance), schema).value == instance


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["5", "true", "red", "[1]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "type", "zz"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    parameters(),
    st.dictionaries(st.sampled_from(["a", "b", "type", "properties", "zz"]), anything, max_size=4),
)
def test_whatever_is_given_is_valid_afterwards_or_refused(pair: Pair, instance: dict[str, Any]) -> None:
    schema = normalise(pair[0])
    try:
        found = read_arguments(instance, schema)
    except InvalidArguments as error:
        problems = error.problems
    else:
        assert is_valid(schema, found.value)
        json.dumps(found.value, allow_nan=False).encode()
        return
    assert all(problems)


@given(st.text(max_size=40) | st.text(st.sampled_from("{}[]:,'\"\\ a1eE+-.ntu`"), max_size=40))
def test_any_text_gives_an_object_or_a_refusal(text: str) -> None:
    try:
        found = read_arguments(text, ANYTHING)
    except InvalidArguments:
        return
    assert isinstance(found.value, dict)
    if not found.repaired and text.strip() not in ("", "null", '""'):
        assert json.loads(text) == found.value


def test_of_360_broken_texts_none_is_repaired_to_something_else() -> None:
    counted: Counter[str] = Counter()
    for pair in json.loads(shared_data("json-fuzz", "jsonrepair-pairs.json").read_text()):
        try:
            expected = json.loads(pair["expected"])
        except ValueError:
            continue  # several values: no arguments
        whole = isinstance(expected, dict)
        raw, meant = (pair["input"], expected) if whole else (f'{{"v": {pair["input"]}}}', {"v": expected})
        try:
            found = read_arguments(raw, ANYTHING).value
        except InvalidArguments:
            counted["refused"] += 1
            continue
        assert found == meant, raw
        counted["same"] += 1
    assert counted == {"same": 114, "refused": 246}


def first_answers(accepted: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the first accepted value of each parameter; an empty one means that it may be left out."""
    chosen = {name: values[0] for name, values in accepted.items() if values[0] != ""}
    return {name: first(value) for name, value in chosen.items()}


def first(value: Any) -> Any:
    if isinstance(value, dict):
        return first_answers(value)
    return [first(entry) for entry in value] if isinstance(value, list) else value


MISTAKEN = {
    "linear_regression_fit": "names of columns for numbers",
    "sort_list": "strings for integers",
    "calculate_emissions": "a required parameter is missing",
}


@pytest.mark.parametrize("name", ["simple_python", "multiple", "parallel", "parallel_multiple"])
def test_the_accepted_answers_of_the_berkeley_leaderboard_need_no_repair(name: str) -> None:
    questions = shared_data("bfcl", f"BFCL_v4_{name}.json").read_text().splitlines()
    answers = shared_data("bfcl", "possible_answer", f"BFCL_v4_{name}.json").read_text().splitlines()
    read = 0
    for question, answer in zip(map(json.loads, questions), map(json.loads, answers), strict=True):
        functions = {function["name"]: function["parameters"] for function in question["function"]}
        for called, accepted in (item for call in answer["ground_truth"] for item in call.items()):
            if called in MISTAKEN:
                continue
            arguments = first_answers(accepted)
            found = read_arguments(json.dumps(arguments), normalise(functions[called]))
            assert same(found.value, arguments)
            assert found.repaired == ()
            read += 1
    assert read >= 190
