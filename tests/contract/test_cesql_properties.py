import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.knative.cesql import CesqlSyntaxError, parse

NAMES = st.sampled_from(["id", "type", "n", "flag", "missing"])
BINARY = st.sampled_from(["+", "-", "*", "/", "%", "=", "!=", "<>", "<", "<=", ">", ">=", "AND", "OR", "XOR"])
FUNCTIONS = st.sampled_from(
    ["ABS", "BOOL", "CONCAT", "CONCAT_WS", "INT", "IS_BOOL", "IS_INT", "LEFT", "LENGTH", "RIGHT", "SUBSTRING"]
)
WORDS = st.sampled_from(["NOT", "LIKE", "IN", "EXISTS", "true", "FALSE", "a_b", "'a'", '"b"', "'%_'", "'"])
NUMBERS = st.sampled_from(["0", "1", "2147483647", "2147483648"])
TOKENS = st.one_of(NAMES, BINARY, FUNCTIONS, WORDS, NUMBERS, st.sampled_from(["(", ")", ","]))
LITERALS = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(str),
    st.booleans().map(str),
    st.text(string.ascii_letters + string.digits + " %_.", max_size=6).map(repr),
)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, BINARY, inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"(NOT {text})"),
        inner.map(lambda text: f"(- {text})"),
        st.tuples(inner, st.lists(inner, min_size=1, max_size=3)).map(
            lambda parts: f"({parts[0]} IN ({', '.join(parts[1])}))"
        ),
        inner.map(lambda text: f"({text} LIKE '%a_')"),
        st.tuples(FUNCTIONS, st.lists(inner, max_size=3)).map(
            lambda parts: f"{parts[0]}({', '.join(parts[1])})"
        ),
    )


EXPRESSIONS = st.recursive(
    LITERALS | NAMES | NAMES.map(lambda name: f"EXISTS {name}"), _extend, max_leaves=12
)
EVENTS = st.fixed_dictionaries(
    {"id": st.text(max_size=5), "type": st.text(max_size=5)},
    optional={"n": st.integers(), "flag": st.booleans()},
)


@given(st.text(max_size=60) | st.lists(TOKENS, max_size=30).map(" ".join))
@settings(deadline=None, max_examples=300)
def test_any_text_is_an_expression_or_a_syntax_error(text: str) -> None:
    try:
        expression = parse(text)
    except CesqlSyntaxError:
        return

    assert type(expression.evaluate({}).value) in {bool, int, str}


@given(EXPRESSIONS, EVENTS)
@settings(deadline=None, max_examples=200)
def test_every_expression_has_a_value_for_every_event(text: str, event: dict[str, AttributeValue]) -> None:
    evaluation = parse(text).evaluate(event)

    assert type(evaluation.value) in {bool, int, str}
    assert len(evaluation.errors) <= 1


@given(EXPRESSIONS, EVENTS)
@settings(deadline=None)
def test_parentheses_change_nothing(text: str, event: dict[str, AttributeValue]) -> None:
    assert parse(f"({text})").evaluate(event) == parse(text).evaluate(event)


@given(EXPRESSIONS, EVENTS)
@settings(deadline=None)
def test_not_not_is_the_boolean_itself(text: str, event: dict[str, AttributeValue]) -> None:
    value = parse(text).evaluate(event)

    if isinstance(value.value, bool) and not value.errors:
        assert parse(f"NOT NOT {text}").evaluate(event) == value


@given(EXPRESSIONS, EXPRESSIONS, EVENTS)
@settings(deadline=None)
def test_negated_operators_are_the_opposite_of_the_plain_ones(
    left: str, right: str, event: dict[str, AttributeValue]
) -> None:
    for plain, negated in (("=", "!="), ("=", "<>")):
        expected = parse(f"NOT ({left} {plain} {right})").evaluate(event)
        assert parse(f"({left} {negated} {right})").evaluate(event) == expected
    assert parse(f"({left} NOT IN ({right}))").evaluate(event) == parse(
        f"NOT ({left} IN ({right}))"
    ).evaluate(event)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
@settings(deadline=None)
def test_arithmetic_is_exact_or_an_error(x: int, y: int) -> None:
    for symbol, exact in (("+", x + y), ("-", x - y), ("*", x * y)):
        evaluation = parse(f"{x} {symbol} ({y})").evaluate({})
        if -(2**31) <= exact < 2**31:
            assert (evaluation.value, evaluation.errors) == (exact, ())
        else:
            assert evaluation.value == 0
            assert evaluation.errors


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool))
@settings(deadline=None)
def test_division_and_remainder_make_up_the_dividend(x: int, y: int) -> None:
    quotient = parse(f"{x} / ({y})").evaluate({})
    remainder = parse(f"{x} % ({y})").evaluate({})

    if not quotient.errors:
        assert isinstance(quotient.value, int)
        assert isinstance(remainder.value, int)
        assert quotient.value * y + remainder.value == x
        assert abs(remainder.value) < abs(y)


@given(st.text("ab%_", max_size=8), st.text("ab%_", max_size=12))
@settings(deadline=None, max_examples=300)
def test_like_agrees_with_a_regular_expression(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern.replace("_", ".").replace("%", ".*"), text) is not None

    assert parse(f"value LIKE '{pattern}'").evaluate({"value": text}).value is expected
