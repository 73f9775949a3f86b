import json
from typing import Any

import pytest

from tests.operator.documents import PARAMETERS, broker, event_type, manager, trigger
from tests.operator.judged import Judged, words

SCHEMA_DATA = "beckon.dev/schema-data"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OTHER = '{"city": {"type": "string"}}'


def applied(schema_data: str | None, **annotations: str) -> str:
    spec = {"type": "get.weather", "description": "The weather."}
    if schema_data is not None:
        spec["schemaData"] = schema_data
    metadata = {"name": "get.weather", "annotations": annotations}
    kind = {"apiVersion": "eventing.knative.dev/v1beta2", "kind": "EventType"}
    return json.dumps({**kind, "metadata": metadata, "spec": spec})


def declared(annotations: dict[str, str], *managers: dict[str, Any], **spec: str) -> tuple[str, str, str]:
    document = event_type(spec=spec, annotations=annotations, managedFields=list(managers))
    found = Judged(document).condition("Declared")
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("annotations", "spec", "place"),
    [
        ({"beckon.dev/parameters": PARAMETERS}, {}, "metadata.annotations[beckon.dev/parameters]"),
        ({SCHEMA_DATA: PARAMETERS}, {}, f"metadata.annotations[{SCHEMA_DATA}]"),
        ({}, {"schemaData": PARAMETERS}, "spec.schemaData"),
        ({APPLIED: applied(PARAMETERS)}, {}, f"metadata.annotations[{APPLIED}], spec.schemaData"),
    ],
)
def test_the_message_says_where_the_parameters_came_from(
    annotations: dict[str, str], spec: dict[str, str], place: str
) -> None:
    assert declared(annotations, **spec) == ("True", "Declared", f"parameters from {place}")


def test_a_tool_that_never_had_parameters_is_declared_without() -> None:
    status, reason, message = declared({}, manager("Update", "type", "description"))

    assert (status, reason) == ("True", "NoParameters")
    assert "annotation beckon.dev/parameters" in message


@pytest.mark.parametrize("operation", ["Update", "Apply"])
def test_parameters_that_knative_erased_are_missed(operation: str) -> None:
    judged = Judged(
        event_type(annotations={}, managedFields=[manager(operation, "type", "schemaData")]),
        broker(),
        trigger(),
    )
    found = judged.condition("Declared")

    assert words(found) == ("False", "ParametersLost")
    assert "annotation beckon.dev/parameters" in found.message
    assert words(judged.verdict().ready) == ("False", "ParametersLost")
    assert judged.verdict().spec == {"type": "get.weather"}


def test_what_the_last_applied_manifest_does_not_have_was_not_lost() -> None:
    assert declared({APPLIED: applied(None)}, manager("Update", "schemaData"))[1] == "NoParameters"


def test_empty_parameters_in_the_annotation_are_an_answer() -> None:
    assert declared({"beckon.dev/parameters": "{}"}, manager("Update", "schemaData"))[:2] == (
        "True",
        "Declared",
    )


@pytest.mark.parametrize(
    "newer",
    [applied(OTHER), applied(None), applied(OTHER, **{SCHEMA_DATA: "{not json"})],
    ids=["other", "none", "broken"],
)
def test_a_stored_schema_that_the_manifest_no_longer_has_may_be_stale(newer: str) -> None:
    status, reason, message = declared({SCHEMA_DATA: PARAMETERS, APPLIED: newer})

    assert (status, reason) == ("True", "ParametersMayBeStale")
    assert "beckon.dev/parameters" in message


def test_a_stored_schema_that_the_object_itself_contradicts_may_be_stale() -> None:
    assert declared({SCHEMA_DATA: PARAMETERS}, schemaData=OTHER)[1] == "ParametersMayBeStale"


@pytest.mark.parametrize("text", [PARAMETERS, ' {"place":\n{"type":"string"}} '])
def test_a_stored_schema_in_other_spacing_is_the_same(text: str) -> None:
    assert declared({SCHEMA_DATA: PARAMETERS, APPLIED: applied(text)})[1] == "Declared"


def test_under_server_side_apply_stored_parameters_may_be_stale_and_the_annotation_is_not() -> None:
    by_server_side_apply = manager("Apply", "type", "schemaData")

    assert declared({SCHEMA_DATA: PARAMETERS}, by_server_side_apply)[1] == "ParametersMayBeStale"
    assert declared({"beckon.dev/parameters": PARAMETERS}, by_server_side_apply)[1] == "Declared"


def test_applying_only_labels_makes_nothing_doubtful() -> None:
    labels = {
        "operation": "Apply",
        "apiVersion": "eventing.knative.dev/v1beta2",
        "fieldsV1": {"f:metadata": {}},
    }
    status = manager("Apply", "schemaData", subresource="status")

    assert declared({SCHEMA_DATA: PARAMETERS}, labels, status)[1] == "Declared"


@pytest.mark.parametrize(
    ("document", "reason", "says"),
    [
        (
            event_type(annotations={"beckon.dev/parameters": "{"}),
            "NotJson",
            "[beckon.dev/parameters]: is not JSON",
        ),
        (event_type(annotations={"beckon.dev/timeout": "soon"}), "InvalidAnnotation", "[beckon.dev/timeout]"),
        (event_type(labels={"beckon.dev/tool": "yes"}), "InvalidLabel", "metadata.labels[beckon.dev/tool]"),
        (event_type(spec={"type": ""}), "InvalidEventType", "spec.type"),
        (event_type(spec={"schema": "http://x/y"}, annotations={}), "RemoteSchema", "spec.schema"),
    ],
)
def test_what_cannot_be_declared_says_which_field(document: dict[str, Any], reason: str, says: str) -> None:
    judged = Judged(document, broker(), trigger())
    found = judged.condition("Declared")

    assert words(found) == ("False", reason)
    assert "EventType get.weather" in found.message
    assert says in found.message
    assert [words(one) for one in judged.verdict().conditions[1:4]] == [("Unknown", "NotDeclared")] * 3
    assert words(judged.verdict().ready) == ("False", reason)


def test_event_types_that_want_one_name_are_reported_of_each_other() -> None:
    names = {"beckon.dev/tool-name": "weather", "beckon.dev/parameters": "{}"}
    judged = Judged(event_type("a", annotations=names), event_type("b", annotations=names), event_type("c"))

    first, second = judged.condition("Declared", "a"), judged.condition("Declared", "b")
    assert words(first) == words(second) == ("True", "NameCollision")
    assert "EventTypes b want the same name" in first.message
    assert judged.verdict("a").spec["name"] in first.message
    assert judged.verdict("a").spec["name"] != judged.verdict("b").spec["name"]
    assert judged.condition("Declared", "c").reason == "Declared"

    judged.lose(event_type("b"))
    assert judged.condition("Declared", "a").reason == "Declared"
    assert judged.verdict("a").spec["name"] == "weather"


def test_what_is_no_tool_has_no_tool() -> None:
    judged = Judged(event_type(labels={"beckon.dev/tool": "false"}), event_type("b", {"description": ""}))

    assert list(judged.desired.verdicts()) == []
