"""The header Retry-After: seconds, dates, and what servers write that is neither."""

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.retry_after import LONGEST, read_retry_after


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("86401", LONGEST),
        ("9" * 5000, LONGEST),
        ("inf", LONGEST),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 -0000", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
        ("Thu, 32 Jan 2026 00:00:00 GMT", None),
        ("Thu, 01 Jan 2026 00:00:00 +99999999", None),
    ],
)
def test_seconds_and_dates_are_read_and_other_values_are_not(text: str, seconds: float | None) -> None:
    assert read_retry_after(text) == seconds


def test_a_date_is_a_wait_until_then() -> None:
    found = read_retry_after(formatdate(time.time() + 60, usegmt=True))

    assert found is not None
    assert 50 < found <= 60


DATES = st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ [-+]?\w+", fullmatch=True)


@given(st.text() | DATES)
def test_any_text_is_a_finite_wait_or_none(text: str) -> None:
    found = read_retry_after(text)

    assert found is None or 0 <= found <= LONGEST
