from typing import Any

import pytest

from beckon_contract.knative.delivery import Reference
from beckon_contract.knative.eventtypes import AUTO_CREATED, InvalidEventType, parse_event_type, why_no_tool
from beckon_contract.kubernetes_objects import Resource
from tests.contract.manifests import BROKER, SERVICE, event_type


def attributes(**values: str) -> list[dict[str, Any]]:
    return [{"name": name, "required": True, "value": value} for name, value in values.items()]


def mistakes(resource: Resource) -> list[str]:
    with pytest.raises(InvalidEventType) as refusal:
        parse_event_type(resource)
    return [str(problem) for problem in refusal.value.problems]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_older_versions_name_attributes_in_fields(version: str) -> None:
    spec = {
        "type": "t",
        "source": "/s",
        "schema": "data:,x",
        "schemaData": "{}",
        "broker": "b",
        "reference": SERVICE,
    }

    found = parse_event_type(event_type(version=version, spec=spec))

    assert (found.type, found.source, found.schema, found.schema_data) == ("t", "/s", "data:,x", "{}")
    assert found.broker == "b"
    assert found.reference == Reference("serving.knative.dev/v1", "Service", "default", "weather")
    assert found.schema_field == "spec.schema"
    assert found.warnings == ()


def test_the_newest_version_lists_attributes() -> None:
    listed = attributes(type="t", source="/s", schemadata="data:,x", subject="y", id="z")

    found = parse_event_type(event_type(version="v1beta3", spec={"attributes": listed, "reference": BROKER}))

    assert (found.type, found.source, found.schema, found.schema_data) == ("t", "/s", "data:,x", None)
    assert found.reference == Reference("eventing.knative.dev/v1", "Broker", "default", "default")
    assert found.schema_field == "spec.attributes[schemadata]"


def test_empty_fields_count_as_absent() -> None:
    spec = {"source": "", "schema": "  ", "schemaData": "\n", "broker": "", "description": " \n"}

    found = parse_event_type(event_type(spec=spec))

    assert (found.source, found.schema, found.schema_data, found.broker) == (None, None, None, None)
    assert found.description == ""


@pytest.mark.parametrize(
    "text", ["天气.查询", "погода", "météo", "a b", "x{y}", "😀", "क्\u200dष", "می\u200cخواهم", "a\u00a0b"]
)
def test_a_type_may_be_in_any_script(text: str) -> None:
    assert parse_event_type(event_type(spec={"type": text})).type == text


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"type": None}, "spec.type"),
        ({"type": ""}, "spec.type"),
        ({"type": 5}, "spec.type"),
        ({"type": "a\nb"}, "spec.type"),
        ({"type": " a"}, "spec.type"),
        ({"type": "a\x85b"}, "spec.type"),
        ({"type": "a\ufffe"}, "spec.type"),
        ({"type": "a\U0010ffff"}, "spec.type"),
        ({"type": "a\ud800"}, "spec.type"),
        ({"type": "a" * 1025}, "spec.type"),
        ({"source": ["/x"]}, "spec.source"),
        ({"source": "/a\x00"}, "spec.source"),
        ({"schemaData": {"location": {}}}, "spec.schemaData"),
        ({"schema": 5}, "spec.schema"),
        ({"description": 5}, "spec.description"),
        ({"broker": 5}, "spec.broker"),
        ({"reference": "weather"}, "spec.reference"),
        ({"reference": {"kind": "Service", "name": "x"}}, "spec.reference.apiVersion"),
        ({"attributes": []}, "spec.attributes"),
    ],
)
def test_a_mistake_is_named_with_its_field(spec: dict[str, Any], field: str) -> None:
    (mistake,) = mistakes(event_type(spec=spec))

    assert mistake.startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("listed", "field"),
    [
        (None, "spec.attributes"),
        ([], "spec.attributes"),
        ({"type": "x"}, "spec.attributes"),
        (["type"], "spec.attributes[0]"),
        (attributes(source="/x"), "spec.attributes"),
        (attributes(type=""), "spec.attributes"),
        (attributes(type="{a}.b"), "spec.attributes[0].value"),
        (attributes(type="a\n"), "spec.attributes[0].value"),
        (attributes(type="a") + attributes(type="b"), "spec.attributes[1].name"),
        ([{"value": "x"}, *attributes(type="a")], "spec.attributes[0].name"),
        ([{"name": "type", "value": 5}], "spec.attributes[0].value"),
    ],
)
def test_a_mistake_in_the_list_of_attributes_is_named(listed: object, field: str) -> None:
    (mistake,) = mistakes(event_type(version="v1beta3", spec={"attributes": listed}))

    assert mistake.startswith(f"{field}: ")


def test_every_mistake_is_reported_at_once() -> None:
    found = mistakes(event_type("Bad_Name", spec={"type": 5, "source": 6, "reference": {}}))

    assert len(found) == 6


@pytest.mark.parametrize("version", ["v1alpha1", "v1", "v2"])
def test_a_version_that_knative_does_not_serve_is_refused(version: str) -> None:
    with pytest.raises(InvalidEventType, match=r"write eventing\.knative\.dev/v1beta2") as refusal:
        parse_event_type(event_type(version=version))

    assert refusal.value.reason == "UnsupportedVersion"


def test_fields_that_knative_would_drop_are_warned_of() -> None:
    spec = {"schemadata": "{}", "reference": {**SERVICE, "group": "x", "address": "y"}}

    found = [warning.path for warning in parse_event_type(event_type(spec=spec)).warnings]

    assert sorted(found) == ["spec.reference.address", "spec.reference.group", "spec.schemadata"]


def test_a_source_that_is_a_template_is_left_to_the_agent_and_warned_of() -> None:
    listed = attributes(type="t", source="/users/{user}")

    found = parse_event_type(event_type(version="v1beta3", spec={"attributes": listed}))

    assert found.source is None
    assert [warning.path for warning in found.warnings] == ["spec.attributes[1].value"]


def reason(resource: Resource) -> str | None:
    why = why_no_tool(parse_event_type(resource))
    return why and why[0]


def test_what_has_a_description_and_no_creator_is_a_tool() -> None:
    assert reason(event_type()) is None
    assert reason(event_type(spec={"reference": BROKER})) is None
    assert reason(event_type(owners=({"apiVersion": "example.org/v1", "kind": "Team", "name": "x"},))) is None
    assert reason(event_type(owners=({"apiVersion": SERVICE["apiVersion"], "kind": "Service"},))) is None


def test_what_has_no_description_is_no_tool() -> None:
    assert reason(event_type(spec={"description": None})) == "NoDescription"


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"},
        {"apiVersion": "messaging.knative.dev/v1", "kind": "InMemoryChannel", "name": "c"},
        {"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "name": "p", "controller": True},
        {"apiVersion": "example.org/v1", "kind": "GitSource", "name": "g", "controller": True},
    ],
)
def test_what_a_controller_created_is_no_tool(owner: dict[str, Any]) -> None:
    assert reason(event_type(owners=(owner,))) == "MadeByController"


def test_what_knative_created_by_itself_is_no_tool() -> None:
    assert reason(event_type(spec={"description": AUTO_CREATED})) == "MadeByController"


def test_the_label_decides_otherwise() -> None:
    yes, no = {"beckon.dev/tool": "true"}, {"beckon.dev/tool": "false"}

    assert reason(event_type(labels=yes, spec={"description": AUTO_CREATED})) is None
    assert reason(event_type(labels=yes, spec={"description": ""})) is None
    assert reason(event_type(labels=no)) == "OptedOut"


@pytest.mark.parametrize("value", ["", "yes", "True", "1"])
def test_a_label_that_says_neither_is_refused(value: str) -> None:
    with pytest.raises(InvalidEventType) as refusal:
        reason(event_type(labels={"beckon.dev/tool": value}))

    assert refusal.value.reason == "InvalidLabel"
    assert refusal.value.problems[0].path == "metadata.labels[beckon.dev/tool]"
