"""How long a sender waits, as RFC 7240 and RFC 3339 write it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.cloudevents.extensions import format_expiry, parse_expiry, preferred_wait


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"wait=10", 10),
        (b"wait=0.25", 0.25),
        (b'respond-async, Wait="5"', 5),
        (b"wait = 3; note=x", 3),
        (b"wait=1, wait=2", 1),
        (b"wait=0", 0),
        (b"wait=-1", None),
        (b"wait=soon", None),
        (b"wait", None),
        (b"await=3", None),
        (b"return=minimal", None),
    ],
)
def test_the_preferred_wait_is_read_as_rfc_7240_writes_it(value: bytes, seconds: float | None) -> None:
    assert preferred_wait([(b"host", b"x"), (b"prefer", value)]) == seconds


def test_the_wait_may_stand_in_a_second_header() -> None:
    assert preferred_wait([(b"prefer", b"a"), (b"prefer", b"wait=2")]) == 2


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds
def test_an_expiry_survives_writing_and_reading(moment: datetime) -> None:
    assert abs(parse_expiry(format_expiry(moment.timestamp()).decode()) - moment.timestamp()) <= 0.0011


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01t00:00:01.5z", 1.5),
        ("1970-01-01T01:00:00.000000001+01:00", 1e-9),
        ("1970-01-01T00:00:60-00:00", 59.0),
    ],
)
def test_every_form_of_rfc_3339_is_read(text: str, epoch: float) -> None:
    assert parse_expiry(text) == pytest.approx(epoch, abs=1e-6)
