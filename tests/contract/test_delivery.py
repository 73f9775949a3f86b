from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.fields import Fields, InvalidFields, ReportProblem
from beckon_contract.knative.delivery import (
    DEFAULT_DELIVERY,
    MAX_DELAY,
    BackoffPolicy,
    Delivery,
    Destination,
    Reference,
    is_retriable,
    parse_duration,
    read_delivery,
    read_destination,
)

SERVICE = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "tool"}


def parse_delivery(
    spec: Mapping[str, object] | None, path: str = "spec.delivery", namespace: str = "default"
) -> Delivery:
    report = ReportProblem()
    delivery = read_delivery(Fields(spec or {}, path, report), namespace)
    if report.problems:
        raise InvalidFields(report.problems)
    return delivery


def parse_destination(
    spec: Mapping[str, object] | None, path: str, namespace: str = "default"
) -> Destination:
    report = ReportProblem()
    destination = read_destination(Fields(spec or {}, path, report), namespace)
    if report.problems:
        raise InvalidFields(report.problems)
    return destination


def problems(caught: pytest.ExceptionInfo[InvalidFields]) -> dict[str, str]:
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT0S", 0),
        ("PT0.2S", 0.2),
        ("PT0,2S", 0.2),
        ("PT30S", 30),
        ("PT1M", 60),
        ("PT1H30M", 5400),
        ("P1D", 86_400),
        ("P1DT1S", 86_401),
        ("P2W", 1_209_600),
        ("PT90M", 5400),
    ],
)
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "P1DT", "PT30", "PT1.S", "PT1S1M", "-PT5S", "PT-5S", "P1Y", "P1M"),
        *("30", "30s", "T30S", "pt1s", "PT1S ", "PT1S\n", "PT\u0661S", "PT" + "9" * 400 + "S"),
    ],
)
def test_what_is_no_duration_of_fixed_length_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"PT30S"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
@settings(deadline=None)
def test_the_parts_of_a_duration_add_up(days: int, hours: int, minutes: int, seconds: float) -> None:
    total = days * 86_400 + hours * 3600 + minutes * 60 + seconds

    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S") == total


def test_nothing_said_means_one_attempt() -> None:
    assert parse_delivery(None) == parse_delivery({}) == Delivery(retry=0)


def test_a_full_delivery_is_read() -> None:
    spec = {
        "retry": 5,
        "backoffPolicy": "exponential",
        "backoffDelay": "PT0.5S",
        "timeout": "PT10S",
        "retryAfterMax": "PT1M",
        "format": "binary",
        "deadLetterSink": {"ref": SERVICE, "uri": "/dead"},
    }

    assert parse_delivery(spec, "spec.delivery", "shop") == Delivery(
        retry=5,
        backoff_policy="exponential",
        backoff_delay=0.5,
        timeout=10,
        dead_letter=Destination(Reference("serving.knative.dev/v1", "Service", "shop", "tool"), "/dead"),
        retry_after_max=60,
        format="binary",
    )


def test_every_mistake_of_a_delivery_is_reported_at_its_field() -> None:
    spec = {
        "retry": -1,
        "backoffPolicy": "quadratic",
        "backoffDelay": "1s",
        "timeout": "PT0S",
        "format": "JSON",
        "retries": 3,
        "deadLetterSink": {},
    }

    with pytest.raises(InvalidFields) as caught:
        parse_delivery(spec, "spec.delivery")

    found = problems(caught)
    assert set(found) == {
        "spec.delivery.retry",
        "spec.delivery.backoffPolicy",
        "spec.delivery.backoffDelay",
        "spec.delivery.timeout",
        "spec.delivery.format",
        "spec.delivery.retries",
        "spec.delivery.deadLetterSink.ref",
    }
    assert "linear or exponential" in found["spec.delivery.backoffPolicy"]
    assert "json or binary" in found["spec.delivery.format"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"retry": "3"}, "retry"),
        ({"retry": True}, "retry"),
        ({"retry": 1.5}, "retry"),
        ({"retry": 2**31}, "retry"),
        ({"timeout": 30}, "timeout"),
        ({"deadLetterSink": "http://x"}, "deadLetterSink"),
        ({"backoffPolicy": ["linear"]}, "backoffPolicy"),
    ],
)
def test_a_field_of_the_wrong_type_is_reported(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidFields) as caught:
        parse_delivery(spec, "delivery")

    assert list(problems(caught)) == [f"delivery.{path}"]


def test_linear_back_off_starts_at_once_and_grows_by_the_delay() -> None:
    delivery = parse_delivery({"backoffPolicy": "linear", "backoffDelay": "PT2S", "retry": 4})

    assert [delivery.delay(attempt) for attempt in range(4)] == [0, 2, 4, 6]


def test_exponential_back_off_starts_with_the_delay_and_doubles() -> None:
    assert [DEFAULT_DELIVERY.delay(attempt) for attempt in range(4)] == pytest.approx([0.2, 0.4, 0.8, 1.6])


@pytest.mark.parametrize("spec", [{"backoffPolicy": "exponential"}, {"backoffDelay": "PT5S"}, {}])
def test_without_both_policy_and_delay_retries_follow_at_once(spec: dict[str, Any]) -> None:
    assert [parse_delivery(spec).delay(attempt) for attempt in range(3)] == [0, 0, 0]


def test_retry_after_counts_only_up_to_its_maximum_and_only_if_longer() -> None:
    spec = {"backoffPolicy": "exponential", "backoffDelay": "PT1S", "retryAfterMax": "PT10S"}
    delivery = parse_delivery(spec)

    assert delivery.delay(0, retry_after=5) == 5
    assert delivery.delay(0, retry_after=500) == 10
    assert delivery.delay(4, retry_after=5) == 16


@pytest.mark.parametrize("spec", [{}, {"retryAfterMax": "PT0S"}])
def test_retry_after_is_ignored_unless_it_is_requested(spec: dict[str, Any]) -> None:
    assert parse_delivery(spec).delay(0, retry_after=5) == 0


@given(st.integers(0, 2**31), st.floats(0, 10**9), st.sampled_from(["linear", "exponential", None]))
@settings(deadline=None)
def test_no_delay_is_ever_longer_than_a_day(attempt: int, delay: float, policy: BackoffPolicy | None) -> None:
    delivery = Delivery(retry=attempt, backoff_policy=policy, backoff_delay=delay)

    assert 0 <= delivery.delay(attempt) <= MAX_DELAY


@pytest.mark.parametrize("status", [None, 404, 408, 409, 429, 500, 502, 503, 504, 599])
def test_these_answers_are_retried(status: int | None) -> None:
    assert is_retriable(status)


@pytest.mark.parametrize("status", [100, 200, 202, 204, 301, 307, 400, 401, 403, 405, 410, 413, 422, 431])
def test_these_answers_are_final(status: int | None) -> None:
    assert not is_retriable(status)


@pytest.mark.parametrize(
    ("spec", "destination"),
    [
        ({"uri": "http://tool.shop/x"}, Destination(uri="http://tool.shop/x")),
        ({"ref": SERVICE}, Destination(Reference("serving.knative.dev/v1", "Service", "here", "tool"))),
        (
            {"ref": {**SERVICE, "namespace": "there"}, "uri": "/path", "CACerts": "pem", "audience": "me"},
            Destination(
                Reference("serving.knative.dev/v1", "Service", "there", "tool"), "/path", "pem", "me"
            ),
        ),
    ],
)
def test_destinations_are_read(spec: dict[str, Any], destination: Destination) -> None:
    assert parse_destination(spec, "sink", "here") == destination


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        (None, {"sink.ref"}),
        ({}, {"sink.ref"}),
        ({"uri": "/relative"}, {"sink.uri"}),
        ({"uri": "tool.shop"}, {"sink.uri"}),
        ({"uri": "http://[broken"}, {"sink.uri"}),
        ({"uri": 5}, {"sink.uri"}),
        ({"ref": SERVICE, "uri": "http://elsewhere"}, {"sink.uri"}),
        ({"ref": {"name": "tool"}}, {"sink.ref.apiVersion", "sink.ref.kind"}),
        ({"ref": "tool"}, {"sink.ref"}),
        ({"ref": {**SERVICE, "group": "x"}}, {"sink.ref.group"}),
        ({"url": "http://tool"}, {"sink.url", "sink.ref"}),
        ({"ref": {**SERVICE, "name": 5}}, {"sink.ref.name"}),
    ],
)
def test_a_destination_that_leads_nowhere_is_refused(spec: dict[str, Any] | None, paths: set[str]) -> None:
    with pytest.raises(InvalidFields) as caught:
        parse_destination(spec, "sink")

    assert set(problems(caught)) == paths
