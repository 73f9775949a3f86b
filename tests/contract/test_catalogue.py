import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.catalogue.builder import Catalogue, CatalogueBuilder, build_catalogue
from beckon_contract.kubernetes_objects import Resource, Unreadable, parse_manifests
from beckon_contract.names import sanitise
from beckon_contract.resources.tools import Refusal
from tests.contract.manifests import BROKER, SERVICE, event_type, parameters, trigger
from tests.shared_data import shared_data


def read_folder(*parts: str) -> list[Resource | Unreadable]:
    return [
        found
        for path in sorted(shared_data(*parts).glob("*.yaml"))
        for found in parse_manifests(path.read_text(), path.name)
    ]


def refusal(*resources: Resource | Unreadable) -> Refusal:
    catalogue = build_catalogue(resources)
    assert not catalogue.tools
    (found,) = catalogue.refusals
    return found


def test_the_manifests_of_knatives_blog_become_a_routed_tool() -> None:
    catalogue = build_catalogue(read_folder("examples"))

    (tool,) = catalogue.tools.values()
    assert tool.name == "get_current_weather"
    assert tool.type == tool.event_type == "get.current.weather"
    assert set(tool.parameters["properties"]) == {"location", "unit"}
    assert tool.parameters_from == "spec.schemaData"
    assert (tool.broker, tool.routes) == ("default", ("get-current-weather",))
    assert (catalogue.refusals, catalogue.skipped) == ((), ())


def test_real_event_types_become_tools_once_they_are_routed() -> None:
    resources = read_folder("eventtypes", "yaml")
    types = [r.spec["type"] for r in resources if isinstance(r, Resource) and r.version == "v1beta2"]

    catalogue = build_catalogue([*resources, *(trigger(f"t{n}", text) for n, text in enumerate(types))])

    assert list(catalogue.tools) == [
        "average_resource_consumption",
        "get_current_weather",
        "resource_cost_calculator",
    ]
    assert catalogue.tools["average_resource_consumption"].parameters_from == "none"
    assert {found.reason for found in catalogue.skipped} == {"NoDescription"}
    assert {found.reason for found in catalogue.refusals} == {"UnsupportedVersion", "Unreadable"}


def test_real_schemas_that_point_outside_themselves_are_refused_with_the_place() -> None:
    resources = read_folder("eventtypes", "from-cdevents")
    routed = [*resources, trigger("all", None)]

    catalogue = build_catalogue(routed)

    assert len(catalogue.tools) + len(catalogue.refusals) == len(resources) > 0
    assert all(found.field.startswith("spec.schemaData#/") for found in catalogue.refusals)


def test_annotations_and_attributes_reach_the_tool() -> None:
    annotations = {
        "beckon.dev/tool-name": "weather now",
        "beckon.dev/timeout": "30s",
        "beckon.dev/requires-approval": "true",
        "beckon.dev/idempotent": "true",
        "beckon.dev/read-only": "true",
        "beckon.dev/reply": "any",
        "beckon.dev/reply-attribute": "responseid",
        "beckon.dev/parameters": parameters("place"),
    }
    declared = event_type(
        spec={"source": "/s", "reference": SERVICE},
        annotations=annotations,
        labels={"team": "a"},
        origin="f.yaml",
    )

    (tool,) = build_catalogue([declared, trigger()]).tools.values()

    assert (tool.name, tool.event_type, tool.namespace) == ("weather_now", "get.weather", "default")
    assert (tool.source, tool.description, tool.timeout) == ("/s", "The weather.", 30.0)
    assert (tool.requires_approval, tool.idempotent, tool.read_only) == (True, True, True)
    assert (tool.reply, tool.reply_attribute) == ("any", "responseid")
    assert (tool.labels, tool.origin, tool.dispatch) == ({"team": "a"}, "f.yaml", "broker")
    assert tool.parameters_from == "metadata.annotations[beckon.dev/parameters]"
    assert tool.reference is not None
    assert tool.reference.name == "weather"


def test_an_event_type_without_a_trigger_is_refused_and_never_offered() -> None:
    found = refusal(event_type(origin="f.yaml"))

    assert (found.reason, found.field, found.origin) == ("NoTrigger", "spec.type", "f.yaml")
    assert "write a Trigger" in found.message


def test_a_trigger_that_is_not_ready_is_no_route() -> None:
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Gone"}]}

    assert "is not ready (Gone)" in refusal(event_type(), trigger(status=status)).message


@pytest.mark.parametrize("spec", [{"reference": {**BROKER, "name": "mine"}}, {"broker": "mine"}])
def test_the_broker_that_an_event_type_names_is_the_one_whose_triggers_count(spec: dict[str, Any]) -> None:
    declared = event_type(spec=spec)
    mine = trigger("mine", spec={"broker": "mine"})

    (tool,) = build_catalogue([declared, trigger(), mine]).tools.values()

    assert (tool.broker, tool.routes) == ("mine", ("mine",))
    assert "listens to Broker 'default'" in refusal(declared, trigger()).message


def test_without_a_named_broker_the_triggers_that_pass_decide() -> None:
    (tool,) = build_catalogue([event_type(), trigger(spec={"broker": "other"})]).tools.values()

    assert tool.broker == "other"


def test_a_trigger_that_is_not_ready_still_says_which_broker_is_meant() -> None:
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Gone"}]}

    found = refusal(event_type(), trigger(spec={"broker": "other"}, status=status))

    assert (found.reason, "from Broker 'other'" in found.message) == ("TriggerNotReady", True)


def test_direct_dispatch_needs_no_trigger() -> None:
    declared = event_type(spec={"reference": SERVICE}, annotations={"beckon.dev/dispatch": "direct"})

    (tool,) = build_catalogue([declared]).tools.values()

    assert (tool.dispatch, tool.routes) == ("direct", ())


def test_a_call_into_another_namespace_is_refused() -> None:
    elsewhere = {**SERVICE, "namespace": "shop"}
    direct = event_type(spec={"reference": elsewhere}, annotations={"beckon.dev/dispatch": "direct"})
    brokered = event_type(spec={"reference": {**BROKER, "namespace": "shop"}})

    for found in (refusal(direct), refusal(brokered, trigger(namespace="shop"))):
        assert (found.reason, found.field) == ("OtherNamespace", "spec.reference.namespace")
    assert build_catalogue([event_type(spec={"reference": elsewhere}), trigger()]).tools


@pytest.mark.parametrize(
    ("declared", "reason", "field"),
    [
        (event_type(version="v1alpha1"), "UnsupportedVersion", "apiVersion"),
        (event_type(spec={"type": 5}), "InvalidEventType", "spec.type"),
        (event_type(labels={"beckon.dev/tool": "x"}), "InvalidLabel", "metadata.labels[beckon.dev/tool]"),
        (
            event_type(annotations={"beckon.dev/timeout": "x"}),
            "InvalidAnnotation",
            "metadata.annotations[beckon.dev/timeout]",
        ),
        (event_type(spec={"schemaData": "{"}), "NotJson", "spec.schemaData"),
        (event_type(spec={"schema": "http://x/y"}), "RemoteSchema", "spec.schema"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_field(declared: Resource, reason: str, field: str) -> None:
    found = refusal(declared, trigger())

    assert (found.reason, found.field) == (reason, field)
    assert found.message


def test_parameters_that_are_no_object_are_refused_where_they_stand() -> None:
    found = refusal(event_type(annotations={"beckon.dev/parameters": "[1]"}), trigger())

    assert found.field.startswith("metadata.annotations[beckon.dev/parameters]")


def test_further_mistakes_stand_in_the_message_with_their_fields() -> None:
    found = refusal(event_type(spec={"type": 5, "source": 6}))

    assert "spec.source: " in found.message


def test_a_document_that_cannot_be_read_is_refused_with_its_origin() -> None:
    found = refusal(Unreadable("f.yaml", "not YAML"))

    assert found == Refusal("", "", "Unreadable", "", "not YAML", "f.yaml")


def test_what_is_no_tool_by_choice_or_by_rule_is_set_aside_with_the_reason() -> None:
    catalogue = build_catalogue(
        [event_type("a", labels={"beckon.dev/tool": "false"}), event_type("b", spec={"description": ""})]
    )

    assert [(found.event_type, found.reason) for found in catalogue.skipped] == [
        ("a", "OptedOut"),
        ("b", "NoDescription"),
    ]
    assert (dict(catalogue.tools), catalogue.refusals) == ({}, ())


def test_of_two_objects_with_one_key_the_later_counts() -> None:
    first = event_type(version="v1beta1", spec={"description": "Old."})
    later = event_type(spec={"description": "New."})

    (tool,) = build_catalogue([first, trigger(), later]).tools.values()

    assert tool.description == "New."


def test_event_types_of_other_groups_are_not_knatives() -> None:
    assert build_catalogue([replace(event_type(), api_version="example.org/v1")]) == build_catalogue([])


def test_a_refused_event_type_keeps_its_name_so_that_others_do_not_change_theirs() -> None:
    rival = event_type("get-weather")

    unrouted = build_catalogue([event_type(), rival, trigger()])
    routed = build_catalogue([event_type(), rival, trigger(), trigger("rival", "get-weather")])

    assert len(unrouted.tools) == 1
    assert set(unrouted.tools) < set(routed.tools)


NAMES = st.sampled_from(["a.b", "a-b", "a", "find.tools", "b" * 70])


@st.composite
def manifests(draw: st.DrawFn) -> list[Resource]:
    """Return EventTypes and Triggers that collide, miss one another and have mistakes."""
    found = []
    for number in range(draw(st.integers(0, 6))):
        name, namespace = draw(NAMES), draw(st.sampled_from(["default", "shop"]))
        if draw(st.booleans()):
            spec = draw(
                st.sampled_from(
                    [{}, {"description": ""}, {"type": "t"}, {"schemaData": "{"}, {"broker": "x"}]
                )
            )
            found.append(event_type(name, namespace=namespace, spec=spec))
        else:
            wants = draw(st.one_of(st.none(), NAMES, st.just("t")))
            found.append(trigger(f"t{number}", wants, namespace=namespace))
    return found


@settings(max_examples=300, deadline=None)
@given(manifests(), st.randoms(use_true_random=False))
def test_every_event_type_has_one_outcome_whatever_the_order(
    resources: list[Resource], order: random.Random
) -> None:
    latest = list({resource.key: resource for resource in resources}.values())
    shuffled = order.sample(latest, len(latest))

    catalogue = build_catalogue(shuffled)

    assert outcome(catalogue) == outcome(build_catalogue(latest))
    outcomes = [(tool.namespace, tool.event_type) for tool in catalogue.tools.values()]
    outcomes += [(found.namespace, found.event_type) for found in catalogue.refusals]
    outcomes += [(found.namespace, found.event_type) for found in catalogue.skipped]
    expected = [(found.namespace, found.name) for found in latest if found.kind == "EventType"]
    assert sorted(outcomes) == sorted(expected)
    assert list(catalogue.tools) == sorted(catalogue.tools)
    assert all(tool.name == name for name, tool in catalogue.tools.items())


@settings(max_examples=200, deadline=None)
@given(st.lists(manifests(), max_size=4))
def test_a_builder_that_remembers_builds_what_a_new_one_would(rounds: list[list[Resource]]) -> None:
    builder = CatalogueBuilder()

    for resources in rounds:
        assert outcome(builder.build(resources)) == outcome(build_catalogue(resources))


def outcome(catalogue: Catalogue) -> tuple[object, ...]:
    return list(catalogue.tools.items()), catalogue.refusals, catalogue.skipped


def many(count: int) -> Iterator[Resource]:
    for number in range(count):
        name = f"get.thing-{number}"
        yield event_type(name, spec={"schemaData": parameters("a", "b")})
        yield trigger(f"t{number}", name)


def test_thousands_of_event_types_are_an_ordinary_day() -> None:
    catalogue = build_catalogue(many(5000))

    assert len(catalogue.tools) == 5000
    assert all(tool.name == sanitise(tool.event_type) for tool in catalogue.tools.values())
    assert all(len(tool.routes) == 1 for tool in catalogue.tools.values())


def test_a_rebuild_reads_only_what_changed() -> None:
    resources = list(many(20))
    builder = CatalogueBuilder()
    before = builder.build(resources).tools
    # The same generation on purpose: Knative changes specs without raising it.
    resources[0] = replace(resources[0], spec={**resources[0].spec, "schemaData": json.dumps({"c": {}})})

    after = builder.build([replace(resource) for resource in resources]).tools

    unchanged = [name for name in before if after[name].parameters is before[name].parameters]
    assert set(before) - set(unchanged) == {"get_thing_0"}
    assert set(after["get_thing_0"].parameters["properties"]) == {"c"}


def test_the_schema_of_results_is_a_part_of_the_tool() -> None:
    schema = {"type": "array", "items": {"type": "object", "x-unit": "m"}}
    described = event_type(annotations={"beckon.dev/returns": json.dumps(schema)})

    (tool,) = build_catalogue([described, trigger()]).tools.values()

    assert tool.returns == schema


@pytest.mark.parametrize(
    ("text", "reason", "field"),
    [
        ("{", "NotJson", "metadata.annotations[beckon.dev/returns]"),
        ("5", "NotAnObject", "metadata.annotations[beckon.dev/returns]"),
        (
            '{"type": "object", "properties": {"a": 5}}',
            "NotASchema",
            "metadata.annotations[beckon.dev/returns]#/properties/a",
        ),
    ],
)
def test_a_schema_of_results_that_cannot_be_used_is_refused(text: str, reason: str, field: str) -> None:
    found = refusal(event_type(annotations={"beckon.dev/returns": text}), trigger())

    assert (found.reason, found.field) == (reason, field)
