import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_broker.envelope import (
    MAX_TTL,
    TTL,
    BrokerName,
    Envelope,
    Refused,
    passed_headers,
    seal,
    seal_reply,
)
from beckon_contract.cloudevents.events import CloudEvent

HERE = BrokerName("default", "default")


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (None, 255),
        ("255", 254),
        (17, 16),
        ("2", 1),
        ("300", 255),
        ("2147483647", 255),
        ("many", 255),
        ("", 255),
    ],
)
def test_the_ttl_counts_down_from_255_and_leaves_the_event(value: str | int | None, left: int) -> None:
    extensions = {} if value is None else {TTL: value}

    envelope = seal(HERE, CloudEvent("1", "/s", "t", extensions=extensions))

    assert envelope.ttl == left
    assert TTL not in envelope.event.extensions


@given(ttl=st.integers(1, MAX_TTL), claimed=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)))
def test_a_chain_of_replies_ends_whatever_the_replies_claim(ttl: int, claimed: int | None) -> None:
    extensions = {} if claimed is None else {TTL: claimed}
    reply = CloudEvent("2", "/s", "t", extensions=extensions)
    envelope = Envelope(HERE, CloudEvent("1", "/s", "t"), ttl)
    passages = 0
    while envelope.ttl > 1:
        envelope = seal_reply(envelope, reply)
        passages += 1

    assert passages == ttl - 1
    with pytest.raises(Refused) as refused:
        seal_reply(envelope, reply)
    assert refused.value.problem.status == 400


def test_only_tracing_and_knative_headers_are_passed_on() -> None:
    raw = [
        (b"X-Request-ID", b"1"),
        (b"x-b3-traceid", b"2"),
        (b"Knative-X", b"3"),
        (b"Cookie", b"4"),
        (b"ce-id", b"5"),
    ]

    assert passed_headers(raw) == (("x-request-id", "1"), ("x-b3-traceid", "2"), ("knative-x", "3"))
