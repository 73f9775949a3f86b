"""JSON without a loss: what goes in comes out, and what is no JSON is named."""

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.cloudevents.events import CloudEvent, EventError
from beckon_contract.jsontext import NotJsonError, dumps, loads

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers(-(10**40), 10**40) | FLOATS
VALUES = st.recursive(
    SCALARS | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_is_the_same_after_it_was_written_and_read(value: object) -> None:
    assert repr(loads(dumps(value))) == repr(value)
    assert repr(loads(dumps(value, orjson.OPT_INDENT_2).decode())) == repr(value)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_no_number_is_named_when_read_and_when_written(name: str) -> None:
    for text in (name, f'{{"a": [{name}, 12345678901234567890123]}}'):
        with pytest.raises(NotJsonError, match=name):
            loads(text)
    for value in (float(name), {"a": [None, (float(name),)]}, [2**70, float(name)]):
        with pytest.raises(NotJsonError, match=name):
            dumps(value)


@pytest.mark.parametrize("text", ["1e400", "[1e400, 12345678901234567890123]"])
def test_a_number_too_large_is_called_infinite(text: str) -> None:
    with pytest.raises(NotJsonError, match="1e400 is Infinity"):
        loads(text)


@pytest.mark.parametrize("text", [b"\xff", "{", "[" * 100_000, "1" * 5000, '"\\ud83d"', "nan"], ids=range(6))
def test_what_is_no_json_is_an_error_and_nothing_else(text: str | bytes) -> None:
    with pytest.raises(NotJsonError):
        loads(text)


@pytest.mark.parametrize("value", [object(), {1, 2}, "\ud83d", 10**5000, [2**70, object()]], ids=range(5))
def test_what_json_has_no_form_for_is_an_error_and_nothing_else(value: object) -> None:
    with pytest.raises(NotJsonError):
        dumps(value)


def test_null_beside_numbers_is_no_number() -> None:
    assert dumps([None, 1.5, math.pi]) == b"[null,1.5,3.141592653589793]"


LONG = 12345678901234567890123


def event_with(data: bytes) -> CloudEvent:
    return CloudEvent("1", "/s", "t", data, "application/json")


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_data_of_no_number_is_refused_by_name(name: str) -> None:
    event = event_with(f'{{"a": [{name}]}}'.encode())
    with pytest.raises(EventError, match=f"is not JSON: {name}"):
        event.json()


def test_a_long_integer_in_data_stays_an_integer() -> None:
    found = event_with(f'{{"a": [{LONG}, -{LONG}, 1.5]}}'.encode()).json()
    assert repr(found) == repr({"a": [LONG, -LONG, 1.5]})
