from typing import Any

import pytest

from beckon_contract.catalogue.diagnostics import NearMisses, NoRoute
from beckon_contract.knative.routes import Listener, call_attributes, read_trigger, route_table
from beckon_contract.kubernetes_objects import Resource
from tests.contract.manifests import trigger

CURE = "write a Trigger with spec.broker: default, spec.filter.attributes: {type: get.weather}"


def miss(*triggers: Resource, event: str = "get.weather") -> NoRoute:
    table = route_table(map(read_trigger, triggers))
    return NearMisses(table).explain("default", "default", call_attributes(event, None))


def explain(*triggers: Resource, event: str = "get.weather") -> str:
    return miss(*triggers, event=event).message


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ((), "NoTrigger"),
        ((trigger("stocks", "get.stock.of.company"),), "NoTrigger"),
        ((trigger("weather", "get.wether"),), "FilterMismatch"),
        (
            (trigger(spec={"filter": {"attributes": {"type": "get.weather", "subject": ""}}}),),
            "FilterMismatch",
        ),
        ((trigger(status={"conditions": [{"type": "Ready", "status": "False"}]}),), "TriggerNotReady"),
        ((trigger(spec={"broker": "other"}),), "OtherBroker"),
        ((trigger(namespace="shop"),), "OtherNamespace"),
        ((trigger(spec={"subscriber": {}}),), "InvalidTrigger"),
    ],
)
def test_each_kind_of_miss_has_a_reason_of_its_own(found: tuple[Resource, ...], reason: str) -> None:
    assert miss(*found).reason == reason


def test_without_any_trigger_the_message_says_what_to_write() -> None:
    message = explain()

    assert "no Trigger brings events of type 'get.weather' from Broker 'default' to a service" in message
    assert "namespace 'default' has no Trigger on Broker 'default'" in message
    assert CURE in message


def test_triggers_that_have_nothing_to_do_with_it_are_not_named() -> None:
    message = explain(trigger("stocks", "get.stock.of.company"))

    assert "stocks" not in message
    assert "has no Trigger" not in message
    assert CURE in message


@pytest.mark.parametrize(
    "wanted", ["get.weatehr", "get.Weather", "set.weather", "get-weather", "get.weathers"]
)
def test_a_misspelt_type_is_found(wanted: str) -> None:
    crowd = [trigger(f"t{index}", f"get.thing.{index:03}.of.team") for index in range(300)]

    message = explain(*crowd, trigger("weather", wanted))

    assert f"Trigger 'weather' comes nearest: attribute type: its filter wants '{wanted}'" in message
    assert "the call has 'get.weather'" in message


@pytest.mark.parametrize(
    ("spec", "difference"),
    [
        (
            {"filter": {"attributes": {"type": "get.weather", "source": "/app"}}},
            "attribute source: the filter wants '/app', the call has '/beckon/agents/default/beckon'",
        ),
        (
            {"filter": {"attributes": {"type": "get.weather", "subject": ""}}},
            "attribute subject: the filter wants any value, the call has none",
        ),
        (
            {"filters": [{"exact": {"type": "get.weather", "replyid": "x"}}]},
            "attribute replyid: the filter wants 'x', the call has none",
        ),
        (
            {"filters": [{"exact": {"type": "get.weather"}}, {"cesql": "EXISTS subject"}]},
            "spec.filters[1] does not",
        ),
    ],
)
def test_the_attribute_that_differs_is_named(spec: dict[str, Any], difference: str) -> None:
    message = explain(trigger(spec=spec))

    assert f"Trigger 'weather' asks for this type and does not pass it: {difference}" in message


def test_a_trigger_of_another_broker_is_named() -> None:
    assert "Trigger 'weather' passes it and listens to Broker 'other'" in explain(
        trigger(spec={"broker": "other"})
    )
    assert "Trigger" not in explain(trigger("all", None, spec={"broker": "other"})).partition("write")[
        0
    ].replace("no Trigger", "")


def test_a_trigger_of_another_namespace_is_named() -> None:
    message = explain(trigger(namespace="shop"))

    assert "Trigger 'weather' in namespace 'shop' asks for it" in message
    assert "its own namespace" in message


def test_a_trigger_that_is_not_ready_is_named_with_its_reason() -> None:
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "SubscriberNotFound"}]}

    assert "Trigger 'weather' passes it and is not ready (SubscriberNotFound)" in explain(
        trigger(status=status)
    )


def test_a_trigger_with_mistakes_that_asks_for_the_type_is_named() -> None:
    message = explain(trigger(spec={"subscriber": {}}))

    assert "Trigger 'weather' has mistakes (spec.subscriber" in message


def test_no_filter_makes_the_explanation_fail() -> None:
    odd: list[dict[str, Any]] = [
        {
            "filter": None,
            "filters": [{"exact": {"type": "get.weather", "source": "/x"}}, {"any": []}, {"not": {}}],
        },
        {"filter": {"attributes": {"type": "get.weather", "time": "x"}}},
        {"filters": [{"exact": {"type": "get.weather"}}, {"all": [{"exact": {"type": "b"}}]}]},
    ]

    for spec in odd:
        assert "does not pass it" in explain(trigger(spec=spec))


def test_triggers_of_other_namespaces_can_come_from_elsewhere() -> None:
    found = read_trigger(trigger(namespace="shop"))
    assert isinstance(found, Listener)

    misses = NearMisses(route_table([]), lambda event_type: [found] if event_type == "get.weather" else [])

    assert (
        misses.explain("default", "default", call_attributes("get.weather", None)).reason == "OtherNamespace"
    )
    assert misses.explain("default", "default", call_attributes("get.stock", None)).reason == "NoTrigger"


def test_a_trigger_that_is_only_not_ready_yet_needs_no_other_one() -> None:
    waiting = trigger(status={"conditions": [{"type": "Ready", "status": "False", "reason": "Wait"}]})

    assert "write a Trigger" not in explain(waiting)
