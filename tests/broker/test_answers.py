from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_broker.sender import FailedAttempt, read_answer, read_dead_letter_answer
from beckon_contract.cloudevents.events import CloudEvent
from beckon_runtime.posts import Ack

headers = st.lists(
    st.tuples(
        st.sampled_from(
            [b"content-type", b"ce-specversion", b"ce-id", b"ce-type", b"ce-source", b"ce-x", b"Retry-After"]
        ),
        st.one_of(
            st.sampled_from([b"1.0", b"application/cloudevents+json", b"application/json", b"%ff", b"7"]),
            st.binary(max_size=12),
        ),
    ),
    max_size=7,
    unique_by=lambda pair: pair[0],
).map(tuple)


@given(status=st.integers(100, 999), found=headers, body=st.binary(max_size=60), complete=st.booleans())
def test_every_answer_is_a_reply_a_success_or_a_setback_and_never_a_crash(
    status: int, found: tuple[tuple[bytes, bytes], ...], body: bytes, complete: bool
) -> None:
    outcome = read_answer(Ack(status, "", found, body, complete))
    letter = read_dead_letter_answer(Ack(status, "", found, body, complete))

    if 200 <= status < 300:
        assert letter is None
        assert outcome is None or isinstance(outcome, CloudEvent) or not outcome.retriable
    else:
        assert isinstance(outcome, FailedAttempt)
        assert isinstance(letter, FailedAttempt)
        assert outcome.code == status
        assert outcome.retry_after >= 0


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, b"7", 7),
        (503, b"0", 0),
        (503, b"soon", 0),
        (503, b"-3", 0),
        (503, b"9" * 400, 86_400),
        (500, b"7", 0),
    ],
)
def test_retry_after_is_read_on_429_and_503(status: int, value: bytes, seconds: float) -> None:
    outcome = read_answer(Ack(status, headers=((b"Retry-After", value),)))

    assert isinstance(outcome, FailedAttempt)
    assert outcome.retry_after == seconds


@pytest.mark.parametrize(("hours", "least", "most"), [(1, 3000, 3600), (-1, 0, 0)])
def test_retry_after_may_be_a_date(hours: int, least: float, most: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)

    outcome = read_answer(Ack(503, headers=((b"Retry-After", date.encode()),)))

    assert isinstance(outcome, FailedAttempt)
    assert least <= outcome.retry_after <= most
