import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.fields import FieldProblem
from beckon_contract.knative.delivery import DEFAULT_DELIVERY, Destination, Reference
from beckon_contract.knative.triggers import GROUP, InvalidResource, parse_broker, parse_trigger
from beckon_contract.kubernetes_objects import Key, Resource, from_object, parse_manifests
from tests.shared_data import shared_data

SUBSCRIBER = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "weather"}}
ADMISSION = [
    json.loads(line)
    for line in shared_data("knative-filters", "admission.jsonl").read_text("utf-8").splitlines()
    if json.loads(line)["kind"] in {"Trigger", "TriggerSpec"}
]
YAML = sorted(shared_data("triggers", "yaml").iterdir())
NAMES = st.sampled_from(
    [
        *("broker", "brokerRef", "filter", "filters", "attributes", "exact", "not", "all", "cesql", "type"),
        *("subscriber", "ref", "uri", "name", "delivery", "retry", "timeout", "deadLetterSink"),
    ]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def trigger(spec: Mapping[str, Any], **more: object) -> Resource:
    metadata = {"name": "weather", "namespace": "shop", **more}
    return from_object({"apiVersion": f"{GROUP}/v1", "kind": "Trigger", "metadata": metadata, "spec": spec})


def broker(spec: Mapping[str, Any]) -> Resource:
    metadata = {"name": "default", "namespace": "shop"}
    return from_object({"apiVersion": f"{GROUP}/v1", "kind": "Broker", "metadata": metadata, "spec": spec})


def refusal(resource: Resource, parse: Callable[[Resource], object] = parse_trigger) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        parse(resource)
    return {problem.path: problem.message for problem in caught.value.problems}


def expected_paths(error: str) -> set[str]:
    """Return the field paths in a message of Knative's webhook: after the last ': ', between commas."""
    lines = [line for line in error.splitlines() if ": " in line]
    paths = {path for line in lines for path in line.rpartition(": ")[2].split(", ")}
    return {path.strip() for path in paths if path.strip()}


@pytest.mark.parametrize("case", ADMISSION, ids=lambda case: case["id"])
def test_knatives_admission_agrees(case: dict[str, Any]) -> None:
    document = case["object"] if case["kind"] == "Trigger" else {"spec": case["object"], "metadata": {}}
    document["metadata"].setdefault("name", "any")
    resource = from_object({"apiVersion": f"{GROUP}/v1", "kind": "Trigger", **document})

    if case["valid"]:
        assert parse_trigger(resource).name == "any"
        return

    with pytest.raises(InvalidResource) as caught:
        parse_trigger(resource)
    for path in expected_paths(case["error"]):
        assert path in str(caught.value)


def test_the_admission_cases_hold_both_verdicts() -> None:
    assert {case["valid"] for case in ADMISSION} == {True, False}
    assert len(ADMISSION) > 45


def test_a_trigger_is_read() -> None:
    resource = trigger(
        {
            "broker": "default",
            "filter": {"attributes": {"type": "weather.asked"}},
            "subscriber": {**SUBSCRIBER, "uri": "/v1"},
            "delivery": {"retry": 2},
        }
    )

    found = parse_trigger(resource)

    assert found.key == Key(GROUP, "Trigger", "shop", "weather")
    assert (found.namespace, found.name, found.broker) == ("shop", "weather", "default")
    assert found.subscriber == Destination(
        Reference("serving.knative.dev/v1", "Service", "shop", "weather"), uri="/v1"
    )
    assert found.delivery is not None
    assert found.delivery.retry == 2
    assert found.filter({"type": "weather.asked"})
    assert not found.filter({"type": "other"})
    assert found.warnings == ()


def test_a_trigger_that_says_nothing_of_delivery_leaves_it_to_its_broker() -> None:
    assert parse_trigger(trigger({"broker": "b", "subscriber": SUBSCRIBER})).delivery is None


def test_an_empty_delivery_of_a_trigger_replaces_that_of_its_broker() -> None:
    delivery = parse_trigger(trigger({"broker": "b", "subscriber": SUBSCRIBER, "delivery": {}})).delivery

    assert delivery is not None
    assert delivery.retry == 0


def test_a_broker_reference_names_the_broker() -> None:
    spec = {
        "brokerRef": {"apiVersion": f"{GROUP}/v1", "kind": "Broker", "name": "b"},
        "subscriber": SUBSCRIBER,
    }

    assert parse_trigger(trigger(spec)).broker == "b"


def test_all_mistakes_come_in_one_answer() -> None:
    spec = {
        "filter": [{"attributes": {"type": "x"}}],
        "filters": {"exact": {"type": "x"}},
        "subscriber": {"uri": "weather"},
        "delivery": {"retry": "often", "timeout": "5s"},
        "subscribers": [],
    }

    assert set(refusal(trigger(spec))) == {
        "spec.broker",
        "spec.filter",
        "spec.filters",
        "spec.subscriber.uri",
        "spec.delivery.retry",
        "spec.delivery.timeout",
        "spec.subscribers",
    }


def test_the_cure_for_a_map_of_filters_is_reported() -> None:
    message = refusal(
        trigger({"broker": "b", "subscriber": SUBSCRIBER, "filters": {"exact": {"type": "x"}}})
    )["spec.filters"]

    assert "'- '" in message


def test_a_subscriber_indented_too_deep_is_found() -> None:
    spec = {"broker": "b", "filter": {"attributes": {"type": "x"}, "subscriber": SUBSCRIBER}}

    assert set(refusal(trigger(spec))) == {"spec.filter.subscriber", "spec.subscriber.ref"}


def test_another_kind_is_refused() -> None:
    resource = from_object({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {}})

    assert "kind" in refusal(resource)
    assert "kind" in refusal(resource, parse_broker)


def test_what_is_accepted_and_hardly_meant_is_warned_about() -> None:
    spec = {
        "broker": "b",
        "filter": {"attributes": {"type": "x"}},
        "filters": [{"exact": {"type": ""}}, {}],
        "subscriber": SUBSCRIBER,
        "delivery": {"backoffDelay": "PT1S", "retryAfterMax": "PT1S"},
    }

    warned = {warning.path for warning in parse_trigger(trigger(spec)).warnings}

    assert warned == {
        "spec.filter",
        "spec.filters[0].exact[type]",
        "spec.filters[1]",
        "spec.delivery.backoffDelay",
        "spec.delivery.retryAfterMax",
    }


@pytest.mark.parametrize("text", ["[]", '"x"', "5", "null", "{"])
def test_a_dependency_that_is_no_reference_is_refused(text: str) -> None:
    spec = {"broker": "b", "subscriber": SUBSCRIBER}
    resource = trigger(spec, annotations={"knative.dev/dependency": text})

    assert set(refusal(resource)) == {"metadata.annotations[knative.dev/dependency]"}


def test_a_dependency_may_say_more_than_it_must() -> None:
    text = json.dumps({**SUBSCRIBER["ref"], "uid": "1", "resourceVersion": "5", "namespace": "shop"})
    resource = trigger(
        {"broker": "b", "subscriber": SUBSCRIBER}, annotations={"knative.dev/dependency": text}
    )

    assert parse_trigger(resource).broker == "b"


def test_a_broker_without_delivery_gets_knatives_defaults() -> None:
    assert parse_broker(broker({})).delivery == DEFAULT_DELIVERY
    assert (DEFAULT_DELIVERY.retry, DEFAULT_DELIVERY.backoff_delay) == (10, 0.2)


def test_a_broker_with_any_delivery_gets_no_default() -> None:
    found = parse_broker(broker({"delivery": {"retry": 1}}))

    assert (found.delivery.retry, found.delivery.backoff_policy) == (1, None)
    assert found.key == Key(GROUP, "Broker", "shop", "default")


def test_a_broker_with_mistakes_is_refused_with_all_of_them() -> None:
    spec = {"config": {"kind": "ConfigMap"}, "delivery": {"retry": -1}, "deliver": {}}

    assert set(refusal(broker(spec), parse_broker)) == {
        "spec.config.apiVersion",
        "spec.config.name",
        "spec.delivery.retry",
        "spec.deliver",
    }


def problems_of(resource: Resource) -> tuple[FieldProblem, ...]:
    try:
        parse_trigger(resource)
    except InvalidResource as refused:
        return refused.problems
    return ()


def triggers_in(path: Path) -> list[Resource]:
    found = parse_manifests(path.read_text("utf-8"), path.name)
    resources = [resource for resource in found if isinstance(resource, Resource)]
    return [resource for resource in resources if (resource.group, resource.kind) == (GROUP, "Trigger")]


def test_real_triggers_are_read_and_their_mistakes_found() -> None:
    refused = {
        (resource.origin.split("-")[0], problem.path)
        for path in YAML
        for resource in triggers_in(path)
        for problem in problems_of(resource)
        if problem.path != "spec.broker"  # v1beta1 and older had a default
    }

    assert refused == {
        ("013", "spec.filter.attributes[<ce-extension>]"),
        ("026", "spec.filter.subscriber"),
        ("026", "spec.subscriber.ref"),
        ("034", "spec.filter.subscriber"),
        ("034", "spec.subscriber.ref"),
    }


@given(st.dictionaries(NAMES, JSON, max_size=6))
@settings(deadline=None)
def test_no_spec_breaks_the_reader(spec: dict[str, Any]) -> None:
    assert all(problem.path and problem.message for problem in problems_of(trigger(spec)))
