import json
from typing import Any

import pytest

from beckon_contract.knative.cesql import MAX_DEPTH, MAX_LENGTH, CesqlSyntaxError, ErrorKind, parse
from beckon_contract.knative.cesql.expression import Value
from tests.shared_data import shared_data

EVENT = {"specversion": "1.0", "id": "myId", "source": "localhost.localdomain", "type": "myType"}
CASES = [
    json.loads(line)
    for line in shared_data("cesql-tck", "tck.normalised.jsonl").read_text("utf-8").splitlines()
]


def evaluate(expression: str, **attributes: Value) -> tuple[Value, list[ErrorKind]]:
    evaluation = parse(expression).evaluate({**EVENT, **attributes})
    return evaluation.value, [error.kind for error in evaluation.errors]


def test_the_whole_conformance_kit_is_here() -> None:
    assert len(CASES) == 275


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}:{case['name']}")
def test_the_conformance_kit_of_cloudevents_agrees(case: dict[str, Any]) -> None:
    if case.get("error") == "parse":
        with pytest.raises(CesqlSyntaxError):
            parse(case["expression"])
        return

    event = {**case.get("event", EVENT), **case.get("eventOverrides", {})}
    evaluation = parse(case["expression"]).evaluate(event)

    assert evaluation.value == case["result"]
    assert type(evaluation.value) is type(case["result"])
    assert [error.kind for error in evaluation.errors] == ([case["error"]] if "error" in case else [])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 = 7", True),
        ("10 - 2 - 3", 5),
        ("100 / 10 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("4 +1", 5),
        ("4-1", 3),
        ("4 - -1", 5),
        ("+5", 5),
        ("true OR true AND false", False),
        ("1 < 2 = true", True),
        ("NOT id = 'x'", False),
        ("NOT (id = 'x')", True),
        ("NOT false AND false", False),
        ("'a' IN ('a') AND 'b' LIKE 'b'", True),
        ("EXISTS id = true", True),
        ("iNt('3')", 3),
        ("ID = 'myId'", True),
    ],
)
def test_operators_bind_in_the_order_of_the_specification(expression: str, value: Value) -> None:
    assert evaluate(expression)[0] == value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("2147483647 + 1", (0, [ErrorKind.MATH])),
        ("-2147483648 - 1", (0, [ErrorKind.MATH])),
        ("65536 * 65536", (0, [ErrorKind.MATH])),
        ("-2147483648 / -1", (0, [ErrorKind.MATH])),
        ("--2147483648", (0, [ErrorKind.MATH])),
        ("-2147483648", (-2147483648, [])),
        ("INT('2147483648')", (0, [ErrorKind.CAST])),
        ("INT('-2147483648')", (-2147483648, [])),
        ("INT('+007')", (7, [])),
        ("INT('1_000')", (0, [ErrorKind.CAST])),
        ("INT(' 1')", (0, [ErrorKind.CAST])),
        ("INT('\u0661')", (0, [ErrorKind.CAST])),
    ],
)
def test_integers_have_32_bits(expression: str, expected: tuple[Value, list[ErrorKind]]) -> None:
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("LENGTH(missing)", (0, [ErrorKind.MISSING_ATTRIBUTE])),
        ("UPPER(missing)", ("", [ErrorKind.MISSING_ATTRIBUTE])),
        ("missing IN ('a')", (False, [ErrorKind.MISSING_ATTRIBUTE])),
        ("'a' IN ('a', missing)", (True, [])),
        ("'a' IN (missing, 'a')", (False, [ErrorKind.MISSING_ATTRIBUTE])),
        ("missing NOT LIKE 'a'", (False, [ErrorKind.MISSING_ATTRIBUTE])),
        ("missing OR true", (False, [ErrorKind.MISSING_ATTRIBUTE])),
        ("true XOR missing", (False, [ErrorKind.MISSING_ATTRIBUTE])),
        ("true OR missing", (True, [])),
        ("false AND missing", (False, [])),
        ("1 + LEFT('abc', -1)", (0, [ErrorKind.FUNCTION_EVALUATION])),
        ("SUBSTRING('abc', 1, -1)", ("", [ErrorKind.FUNCTION_EVALUATION])),
        ("NOPE(1)", (False, [ErrorKind.MISSING_FUNCTION])),
        ("ABS(1, 2)", (False, [ErrorKind.MISSING_FUNCTION])),
        ("ABS('x')", (0, [ErrorKind.CAST])),
        ("'x' AND true", (False, [ErrorKind.CAST])),
    ],
)
def test_an_error_ends_the_evaluation_with_the_zero_value_of_the_outer_operator(
    expression: str, expected: tuple[Value, list[ErrorKind]]
) -> None:
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("LENGTH('zürich \U0001f600')", 8),
        ("'zürich' LIKE 'z_rich'", True),
        ("'a\nb' LIKE 'a%b'", True),
        ("'a.c' LIKE 'a.c'", True),
        ("'abc' LIKE 'a.c'", False),
        ("'' LIKE '%'", True),
        ("'' LIKE ''", True),
        ("'ab' LIKE 'ab%b'", False),
        ("'abab' LIKE '%ab'", True),
        ("'a%' LIKE 'a\\%'", True),
        ("'ab' LIKE 'a\\%'", False),
        ("TRIM('\u2003 a\u0085')", "a"),
        ("TRIM('\x1fa')", "\x1fa"),
        ("IS_INT('12') AND NOT IS_INT('x')", True),
        ("IS_BOOL('TRUE') AND NOT IS_BOOL('x')", True),
        ("RIGHT('abc', 0)", ""),
        ("SUBSTRING('abc', 2, 2147483647)", "bc"),
        (r"'it\'s' = " + '"it\'s"', True),
    ],
)
def test_strings_are_sequences_of_characters(expression: str, value: Value) -> None:
    assert evaluate(expression) == (value, [])


def test_an_integer_attribute_beyond_32_bits_is_a_string() -> None:
    assert evaluate("big", big=2**40) == (str(2**40), [])


def test_attributes_keep_their_types() -> None:
    assert evaluate("n + 1", n=4) == (5, [])
    assert evaluate("flag", flag=True) == (True, [])
    assert evaluate("n = '4'", n=4) == (True, [])


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("type = ", 7),
        ("this is wrong", 5),
        ("id = 'abc", 5),
        ("(id = 'abc'", 11),
        ("id == 'abc'", 4),
        ("id & 'abc'", 3),
        ("id IN ()", 7),
        ("id LIKE type", 8),
        ("EXISTS 'id'", 7),
        ("", 0),
    ],
)
def test_a_syntax_error_shows_its_place(text: str, position: int) -> None:
    with pytest.raises(CesqlSyntaxError) as caught:
        parse(text)

    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2147483648 = 1", "2147483647"),
        ("-(2147483648)", "2147483647"),
        ("-2147483649", "2147483647"),
        ("my_name = 1", "'my_name'"),
        ("f1()", "F1"),
        ("'it''s'", "column 5"),
        ("a" * (MAX_LENGTH + 1), str(MAX_LENGTH)),
        ("(" * MAX_LENGTH, "too early"),
        ("(" * 100 + "1" + ")" * 100, str(MAX_DEPTH)),
        ("NOT " * 500 + "true", str(MAX_DEPTH)),
        ("ABS(" * 100 + "1" + ")" * 100, str(MAX_DEPTH)),
    ],
)
def test_what_is_refused_is_reported_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(CesqlSyntaxError, match=message):
        parse(text)


def test_a_long_chain_is_not_deep() -> None:
    terms = " OR ".join(f"id = '{number}'" for number in range(240))

    assert len(terms) < MAX_LENGTH
    assert evaluate(terms + " OR id = 'myId'") == (True, [])
    assert evaluate("1" + "+1" * 2000) == (2001, [])


def test_a_pattern_of_many_wildcards_is_matched_in_reasonable_time() -> None:
    pattern = "%a_" * 600

    assert evaluate(f"value LIKE '{pattern}%c'", value="ab" * 30_000) == (False, [])


def test_keywords_are_only_whole_words() -> None:
    assert evaluate(
        "notable = 'x' AND inner = 'y' AND trueish = 'z'", notable="x", inner="y", trueish="z"
    ) == (
        True,
        [],
    )


def test_what_engines_read_differently_gets_a_warning() -> None:
    assert "parentheses" in " ".join(parse("true OR false AND false").warnings)
    assert parse("true OR (false AND false)").warnings == ()
    assert parse("true OR false OR false").warnings == ()


@pytest.mark.parametrize("expression", ["NOT type = 'a'", "NOT type LIKE 'a'", "NOT type IN ('a')"])
def test_a_not_that_binds_tighter_than_it_looks_gets_a_warning(expression: str) -> None:
    assert "NOT" in " ".join(parse(expression).warnings)


@pytest.mark.parametrize(
    "expression", ["NOT (type = 'a')", "NOT EXISTS a", "type NOT LIKE 'a'", "NOT a AND b"]
)
def test_a_not_that_reads_as_it_works_gets_no_warning(expression: str) -> None:
    assert parse(expression).warnings == ()
