import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.catalogue.annotations import (
    LAST_APPLIED,
    MAX_TEXT,
    PARAMETERS,
    SCHEMA_DATA,
    BrokenPlace,
    DecodedParameters,
    find_parameters,
)
from beckon_contract.knative.eventtypes import parse_event_type
from tests.contract.manifests import event_type, parameters

IN_LAST_APPLIED = f"metadata.annotations[{LAST_APPLIED}]"


def applied(spec: dict[str, Any], version: str = "v1beta2", **annotations: str) -> str:
    """Return a manifest as `kubectl apply` keeps it."""
    return json.dumps(
        {
            "apiVersion": f"eventing.knative.dev/{version}",
            "kind": "EventType",
            "metadata": {"name": "get.weather", "annotations": annotations},
            "spec": spec if version == "v1beta3" else {"type": "t", **spec},
        }
    )


def found(
    spec: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, version: str = "v1beta2"
) -> DecodedParameters:
    manifest = event_type(version=version, spec=spec, annotations=annotations or {})
    return find_parameters(parse_event_type(manifest))


def broken(
    spec: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, version: str = "v1beta2"
) -> tuple[str, str]:
    with pytest.raises(BrokenPlace) as refusal:
        found(spec, annotations, version)
    assert refusal.value.message in str(refusal.value)
    return refusal.value.place, refusal.value.reason


def data_uri(text: str) -> str:
    return "data:application/schema+json;base64," + base64.b64encode(text.encode()).decode()


def listed(uri: str) -> dict[str, Any]:
    return {"attributes": [{"name": "type", "value": "t"}, {"name": "schemadata", "value": uri}]}


def test_the_first_place_that_is_filled_counts() -> None:
    annotations = {
        PARAMETERS: parameters("a"),
        SCHEMA_DATA: parameters("b"),
        LAST_APPLIED: applied({"schemaData": parameters("e")}),
    }
    spec = {"schemaData": parameters("c"), "schema": data_uri(parameters("d"))}
    ladder = []

    for gone in ("", PARAMETERS, SCHEMA_DATA, "schemaData", "schema", LAST_APPLIED):
        annotations.pop(gone, None)
        spec.pop(gone, None)
        result = found(spec, annotations)
        ladder.append((result.place, json.dumps(result.document)))

    assert ladder == [
        (f"metadata.annotations[{PARAMETERS}]", parameters("a")),
        (f"metadata.annotations[{SCHEMA_DATA}]", parameters("b")),
        ("spec.schemaData", parameters("c")),
        ("spec.schema", parameters("d")),
        (f"{IN_LAST_APPLIED}, spec.schemaData", parameters("e")),
        ("none", "{}"),
    ]


def test_blank_places_are_passed_over() -> None:
    spec = {"schemaData": " ", "schema": ""}

    assert found(spec, {PARAMETERS: "", SCHEMA_DATA: "\n", LAST_APPLIED: " "}) == DecodedParameters(
        {}, "none"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (applied({"schema": data_uri(parameters("x"))}), "spec.schema"),
        (applied(listed(data_uri(parameters("x"))), "v1beta3"), "spec.attributes[schemadata]"),
        (applied({}, **{PARAMETERS: parameters("x")}), f"metadata.annotations[{PARAMETERS}]"),
        (applied({"schemaData": parameters("x")}, "v1beta1"), "spec.schemaData"),
    ],
)
def test_the_last_applied_manifest_has_the_same_ladder(text: str, place: str) -> None:
    assert found({}, {LAST_APPLIED: text}) == DecodedParameters(
        {"x": {"type": "string"}}, f"{IN_LAST_APPLIED}, {place}"
    )


def test_a_last_applied_manifest_without_parameters_gives_none() -> None:
    assert found({}, {LAST_APPLIED: applied({})}) == DecodedParameters({}, "none")


SCHEMA = '{"café>>>~???~": {} }'  # its base64 has padding and both letters that the URL alphabet changes


@pytest.mark.parametrize(
    "uri",
    [
        data_uri(SCHEMA),
        data_uri(SCHEMA).rstrip("="),
        data_uri(SCHEMA).replace("=", "%3D"),
        "data:application/json," + quote(SCHEMA),
        "data:application/json," + SCHEMA,
        "DATA:Application/JSON;charset=UTF-8," + quote(SCHEMA),
        "data:application/schema+json;charset=utf-8;base64,"
        + base64.urlsafe_b64encode(SCHEMA.encode()).decode(),
        "data:application/json;charset=iso-8859-1," + quote(SCHEMA.encode("latin-1")),
        "data:application/json;base64," + "\n ".join(data_uri(SCHEMA).partition(",")[2]),
    ],
)
def test_a_data_uri_is_read_in_every_form(uri: str) -> None:
    assert found({"schema": uri}) == DecodedParameters(json.loads(SCHEMA), "spec.schema")
    assert found(listed(uri), version="v1beta3") == DecodedParameters(
        json.loads(SCHEMA), "spec.attributes[schemadata]"
    )


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("data:application/json", "InvalidDataURI"),
        ("data:,{}", "InvalidDataURI"),
        ("data:text/plain,{}", "InvalidDataURI"),
        ("data:application/json;charset=klingon,{}", "InvalidDataURI"),
        ("data:application/json;charset=zlib,{}", "InvalidDataURI"),
        ("data:application/json,%ff", "InvalidDataURI"),
        ("data:application/json;base64,a", "InvalidDataURI"),
        ("data:application/json;base64,!!!!", "InvalidDataURI"),
        ("data:application/json,", "NotJson"),
        ("data:application/json,{x", "NotJson"),
    ],
)
def test_a_data_uri_that_holds_no_schema_is_refused(uri: str, reason: str) -> None:
    assert broken({"schema": uri}) == ("spec.schema", reason)


@pytest.mark.parametrize(
    "text", ["{", "hello", "{'a': 1}", "[NaN]", '{"a": 1, "a": 2}', "[" * 5000, '"\\ud800"']
)
def test_a_place_that_is_no_json_is_refused_and_the_next_one_is_not_tried(text: str) -> None:
    good = {"schemaData": parameters("c")}

    assert broken(good, {PARAMETERS: text}) == (f"metadata.annotations[{PARAMETERS}]", "NotJson")
    assert broken(good, {SCHEMA_DATA: text}) == (f"metadata.annotations[{SCHEMA_DATA}]", "NotJson")
    assert broken({"schemaData": text, "schema": data_uri("{}")}) == ("spec.schemaData", "NotJson")


def test_a_place_that_is_too_large_is_refused() -> None:
    assert broken({"schemaData": " " * MAX_TEXT + "{}"}) == ("spec.schemaData", "TooLarge")


@pytest.mark.parametrize(
    "text",
    ["[]", "5", "{}", '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}', applied({"type": 5})],
)
def test_a_last_applied_manifest_that_is_no_event_type_is_refused(text: str) -> None:
    assert broken({}, {LAST_APPLIED: text}) == (IN_LAST_APPLIED, "NotAManifest")


def test_a_broken_place_in_the_last_applied_manifest_is_named_there() -> None:
    assert broken({}, {LAST_APPLIED: applied({"schemaData": "{"})}) == (
        f"{IN_LAST_APPLIED}, spec.schemaData",
        "NotJson",
    )


@pytest.mark.parametrize("uri", ["https://example.org/schema.json", "schema.json", "urn:x:y"])
def test_a_schema_elsewhere_is_never_fetched_and_never_silently_no_parameters(uri: str) -> None:
    assert broken({"schema": uri}) == ("spec.schema", "RemoteSchema")
    assert broken(listed(uri), version="v1beta3") == ("spec.attributes[schemadata]", "RemoteSchema")


def test_a_schema_elsewhere_does_not_hide_parameters_that_are_here() -> None:
    spec = {"schema": "https://example.org/schema.json"}
    text = applied({**spec, "schemaData": parameters("x")})

    assert found({**spec, "schemaData": parameters("c")}).place == "spec.schemaData"
    assert found(spec, {LAST_APPLIED: text}).place == f"{IN_LAST_APPLIED}, spec.schemaData"


@settings(deadline=None)
@given(
    st.sampled_from(["schemaData", "schema"]),
    st.text(max_size=60) | st.text('data:,/+;=json base64{}%"', max_size=60),
)
def test_no_text_makes_the_search_raise_anything_else(field: str, text: str) -> None:
    try:
        result = found({field: text})
    except BrokenPlace as error:
        result = DecodedParameters({}, error.place)

    assert result.place in {"none", f"spec.{field}"}
