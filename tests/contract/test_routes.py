from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.knative.routes import (
    BrokenTrigger,
    Listener,
    RouteTable,
    call_attributes,
    choose_broker,
    is_trigger,
    read_trigger,
    route_table,
    wanted_type,
)
from beckon_contract.kubernetes_objects import Resource
from tests.contract.manifests import event_type, trigger

TYPES = st.sampled_from(["a", "b", "a.b", ""])
ATTRIBUTES = st.dictionaries(st.sampled_from(["type", "source", "replyid", "specversion"]), TYPES, max_size=2)
EXPRESSIONS = st.sampled_from(
    ["type = 'a'", '  type="b" ', "type = 'a' OR type = 'b'", "type LIKE 'a%'", "EXISTS id"]
)
ELEMENTS = st.recursive(
    st.builds(
        lambda dialect, values: {dialect: values}, st.sampled_from(["exact", "prefix", "suffix"]), ATTRIBUTES
    )
    | st.builds(lambda expression: {"cesql": expression}, EXPRESSIONS),
    lambda inner: (
        st.builds(
            lambda name, items: {name: items}, st.sampled_from(["all", "any"]), st.lists(inner, max_size=2)
        )
        | st.builds(lambda item: {"not": item}, inner)
    ),
    max_leaves=3,
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "filter": st.fixed_dictionaries({}, optional={"attributes": ATTRIBUTES}),
        "filters": st.lists(ELEMENTS, max_size=3),
    },
)


def table(*triggers: Resource) -> RouteTable:
    return route_table(map(read_trigger, triggers))


def passing(found: RouteTable, event: str = "get.weather", namespace: str = "default") -> list[str]:
    return [listener.trigger.name for listener in found.passing(namespace, call_attributes(event, None))]


def listener(resource: Resource) -> Listener:
    found = read_trigger(resource)
    assert isinstance(found, Listener)
    return found


def test_a_trigger_that_wants_the_type_passes_the_call() -> None:
    found = table(trigger(), trigger("other", "get.stock"))

    assert passing(found) == ["weather"]
    assert passing(found, "get.news") == []


def test_a_trigger_without_a_filter_passes_every_call() -> None:
    assert passing(table(trigger("all", None))) == ["all"]
    assert listener(trigger("all", None)).catches_all
    assert not listener(trigger()).catches_all


def test_a_trigger_for_replies_passes_no_call() -> None:
    assert passing(table(trigger("replies", spec={"filter": {"attributes": {"replyid": ""}}}))) == []


@pytest.mark.parametrize(
    "filters",
    [
        [{"cesql": "type = 'get.weather'"}],
        [{"prefix": {"type": "get."}}, {"exact": {"datacontenttype": "application/json"}}],
        [{"cesql": "EXISTS correlationid AND EXISTS expirytime AND EXISTS traceparent"}],
        [{"prefix": {"source": "/beckon/agents/"}}],
        [{"exact": {"specversion": "1.0"}}],
    ],
)
def test_a_call_has_the_attributes_it_has_on_the_wire(filters: list[dict[str, Any]]) -> None:
    assert passing(table(trigger(spec={"filter": None, "filters": filters}))) == ["weather"]


def test_a_trigger_gets_only_its_own_namespace() -> None:
    found = table(trigger(namespace="shop"))

    assert passing(found) == []
    assert passing(found, namespace="shop") == ["weather"]


def test_a_trigger_with_mistakes_is_listed_with_its_problems() -> None:
    broken = trigger(spec={"filters": [{"cesql": "type ="}]})

    found = table(broken, trigger("good"))

    assert passing(found) == ["good"]
    assert [item.resource for item in found.broken] == [broken]
    assert isinstance(read_trigger(broken), BrokenTrigger)
    assert found.broken[0].problems[0].path == "spec.filters[0].cesql"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, ""),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, ""),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, ""),
        ({"conditions": [{"type": "Other", "status": "False"}]}, ""),
        ({"conditions": "none"}, ""),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "not ready"),
        ({"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]}, "R m"),
    ],
)
def test_a_trigger_says_in_its_status_that_it_is_not_ready(status: dict[str, Any], why: str) -> None:
    assert listener(trigger(status=status)).not_ready == why


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, ""),
        ({}, "Knative has not judged it yet"),
        ({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "R", "message": "m"}]}, "R m"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "not ready"),
    ],
)
def test_under_a_controller_a_trigger_takes_events_only_once_it_is_ready(
    status: dict[str, Any], why: str
) -> None:
    found = read_trigger(trigger(status=status), controlled=True)

    assert isinstance(found, Listener)
    assert found.not_ready == why


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, None),
        ({"filter": {}}, None),
        ({"filter": {"attributes": {"type": "a"}}}, "a"),
        ({"filter": {"attributes": {"type": ""}}}, None),
        ({"filter": {"attributes": {"type": "a"}}, "filters": []}, "a"),
        ({"filter": {"attributes": {"type": "a"}}, "filters": [{"prefix": {"type": "b"}}]}, None),
        ({"filters": [{"prefix": {"type": "a"}}, {"exact": {"type": "b"}}]}, "b"),
        ({"filters": [{"exact": {"type": "b", "source": ""}}]}, None),
        ({"filters": [{"cesql": "type = 'a b'"}]}, "a b"),
        ({"filters": [{"cesql": ' type="a" '}]}, "a"),
        ({"filters": [{"cesql": "type = 'a' OR TRUE"}]}, None),
        ({"filters": [{"cesql": "type != 'a'"}]}, None),
        ({"filters": [{"any": [{"exact": {"type": "b"}}]}]}, None),
        ({"filters": [{"not": {"exact": {"type": "b"}}}]}, None),
    ],
)
def test_the_type_a_trigger_cannot_do_without_is_known(spec: dict[str, Any], wanted: str | None) -> None:
    assert wanted_type(spec) == wanted


@settings(max_examples=500, deadline=None)
@given(st.lists(FILTERS, max_size=6), st.sampled_from(["a", "b", "a.b"]))
def test_the_index_finds_exactly_the_triggers_whose_filter_passes(
    specs: list[dict[str, Any]], event: str
) -> None:
    triggers = [trigger(f"t{index}", None, spec=spec) for index, spec in enumerate(specs)]
    read = [found for found in map(read_trigger, triggers) if isinstance(found, Listener)]
    attributes = call_attributes(event, None)

    expected = sorted(found.trigger.name for found in read if found.trigger.filter(attributes))

    assert passing(table(*triggers), event) == expected


def test_the_stated_broker_is_called_else_the_default_else_the_first() -> None:
    def on(*brokers: str) -> list[Listener]:
        return [listener(trigger(name, spec={"broker": name})) for name in brokers]

    assert choose_broker("mine", on("default")) == "mine"
    assert choose_broker(None, on("z", "default", "a")) == "default"
    assert choose_broker(None, on("z", "b")) == "b"
    assert choose_broker(None, []) == "default"


def test_only_triggers_of_knative_are_triggers() -> None:
    assert is_trigger(trigger())
    assert not is_trigger(event_type())
    assert not is_trigger(replace(trigger(), api_version="argoproj.io/v1"))
