from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.catalogue.annotations import Options, parse_timeout, read_options
from beckon_contract.knative.eventtypes import InvalidEventType, parse_event_type
from tests.contract.manifests import BROKER, SERVICE, event_type


def options(annotations: dict[str, str] | None = None, reference: dict[str, str] | None = None) -> Options:
    named = {f"beckon.dev/{name}": text for name, text in (annotations or {}).items()}
    spec = {"reference": reference} if reference else {}
    return read_options(parse_event_type(event_type(spec=spec, annotations=named)))


def test_without_annotations_a_tool_is_called_through_the_broker_and_asks_for_nothing() -> None:
    assert options() == Options(None, False, "broker", False, False)


def test_annotations_say_how_a_tool_wants_to_be_called() -> None:
    annotations = {"timeout": "2m", "dispatch": "direct"}
    annotations |= dict.fromkeys(("requires-approval", "idempotent", "read-only"), "true")

    found = options(annotations, SERVICE)

    assert found == Options(120.0, True, "direct", True, True)


def test_an_event_type_says_what_its_service_answers() -> None:
    found = options({"reply": "any", "reply-attribute": "responseid"})

    assert (found.reply, found.reply_attribute) == ("any", "responseid")
    assert options({"reply": "event"}) == options()
    assert (options().reply, options().reply_attribute) == ("event", None)


@pytest.mark.parametrize(("text", "said"), [("true", True), ("false", False)])
def test_a_tool_may_be_said_to_destroy_something_or_not(text: str, said: bool) -> None:
    assert options({"destructive": text}).destructive is said
    assert options().destructive is None


def test_what_only_reads_destroys_nothing() -> None:
    with pytest.raises(InvalidEventType, match=r"contradicts beckon\.dev/read-only"):
        options({"destructive": "true", "read-only": "true"})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1h30m", 5400),
        ("1m30.5s", 90.5),
        ("250ms", 0.25),
        ("45", 45),
        ("0.5", 0.5),
        (" 30s ", 30),
        ("PT30S", 30),
        ("PT1H", 3600),
        ("P1D", 86400),
        ("24h", 86400),
    ],
)
def test_a_timeout_is_written_as_in_go_or_iso_8601_or_in_seconds(text: str, seconds: float) -> None:
    assert parse_timeout(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "30 s", "-30s", "0", "0s", "PT0S", "PT", "P", "1e3", "٣s", "24h1s", "999999999h", "s", "1d"],
)
def test_a_timeout_that_is_none_is_refused_with_the_cure(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_timeout(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("timeout", "soon"),
        ("requires-approval", "yes"),
        ("requires-approval", ""),
        ("idempotent", "True"),
        ("read-only", "1"),
        ("destructive", "yes"),
        ("dispatch", "fast"),
        ("dispatch", "direct"),
        ("tool-name", " "),
        ("reply", "all"),
        ("reply", ""),
        ("reply-attribute", ""),
        ("reply-attribute", "responseId"),
        ("reply-attribute", "response-id"),
        ("reply-attribute", "a" * 21),
        ("reply-attribute", "subject"),
    ],
)
def test_a_bad_annotation_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidEventType) as refusal:
        options({name: text})

    assert refusal.value.reason == "InvalidAnnotation"
    assert [problem.path for problem in refusal.value.problems] == [
        f"metadata.annotations[beckon.dev/{name}]"
    ]


def test_direct_dispatch_to_a_broker_is_refused() -> None:
    with pytest.raises(InvalidEventType, match="not a Broker"):
        options({"dispatch": "direct"}, BROKER)


def test_every_bad_annotation_is_reported_at_once() -> None:
    with pytest.raises(InvalidEventType) as refusal:
        options(dict.fromkeys(("timeout", "dispatch", "idempotent", "read-only", "requires-approval"), "x"))

    assert len(refusal.value.problems) == 5


@settings(deadline=None)
@given(st.text(max_size=20) | st.text("0123456789.hmsPT", max_size=20))
def test_no_text_is_a_timeout_outside_the_bounds(text: str) -> None:
    with suppress(ValueError):
        assert 0 < parse_timeout(text) <= 86400
