"""References lead inside the document and nowhere else; recursion is kept where an instance can end it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from beckon_contract.schema.keywords import Schema
from beckon_contract.schema.lowering import Profile, lower
from beckon_contract.schema.parameters import SchemaError, normalise
from beckon_contract.schema.translation import translate
from tests.contract.oracle import is_valid
from tests.shared_data import shared_data

SUITE = shared_data("json-schema", "tests")

CUSTOM_METASCHEMA = "schema that uses custom metaschema with with no validation vocabulary"


@pytest.mark.parametrize(
    ("ref", "extra"),
    [
        ("#/$defs/city", {}),
        ("#/definitions/city", {}),
        ("#/components/schemas/city", {}),
        ("#/%24defs/city", {}),
        ("#/properties/other", {}),
        ("#city", {}),
        ("https://example.com/root#/$defs/city", {"$id": "https://example.com/root"}),
        ("root#city", {"$id": "https://example.com/root"}),
    ],
)
def test_every_form_of_local_reference_leads_to_the_definition(ref: str, extra: dict[str, Any]) -> None:
    city = {"type": "string", "minLength": 2, "$anchor": "city"}
    document = {
        "type": "object",
        "properties": {"a": {"$ref": ref}, "other": {"type": "string", "minLength": 2}},
        "$defs": {"city": city},
        "definitions": {"city": city},
        "components": {"schemas": {"city": city}},
        **extra,
    }
    schema = normalise(document)
    (name,) = schema["$defs"]
    assert schema["properties"]["a"] == {"$ref": f"#/$defs/{name}"}
    found = dict(schema["$defs"][name])
    assert found.pop("$anchor", "city") == "city"
    assert found == {"type": "string", "minLength": 2}


def test_definitions_of_one_name_in_several_places_stay_apart() -> None:
    document = {
        "a": {"$ref": "#/$defs/x"},
        "b": {"$ref": "#/definitions/x"},
        "$defs": {"x": {"type": "string"}},
        "definitions": {"x": {"type": "integer"}},
    }
    schema = normalise(document)
    assert schema["$defs"] == {"x": {"type": "string"}, "x_2": {"type": "integer"}}
    assert schema["properties"]["b"] == {"$ref": "#/$defs/x_2"}


def test_a_name_with_slashes_and_tildes_is_found() -> None:
    schema = normalise({"a": {"$ref": "#/$defs/x~1y~0z"}, "$defs": {"x/y~z": {"type": "integer"}}})
    assert schema["$defs"] == {"x_y_z": {"type": "integer"}}


TREE = {
    "node": {"$ref": "#/$defs/node"},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["value", "children"],
        }
    },
}
LINKED_LIST = {
    "head": {"$ref": "#/$defs/link"},
    "$defs": {
        "link": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/link"}, {"type": "null"}]}},
            "required": ["next"],
        }
    },
}
ROOT_IN_ITSELF = {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#"}}}}


@pytest.mark.parametrize(
    ("document", "instance"),
    [
        (TREE, {"node": {"value": 1, "children": [{"value": 2, "children": []}]}}),
        (LINKED_LIST, {"head": {"next": {"next": None}}}),
        (ROOT_IN_ITSELF, {"and": [{"and": []}]}),
    ],
    ids=["tree", "list", "root"],
)
def test_recursion_that_an_instance_can_end_stays(document: dict[str, Any], instance: dict[str, Any]) -> None:
    schema = normalise(document)
    assert is_valid(schema, instance)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(instance)
    assert not jsonschema_rs.Draft202012Validator(schema).is_valid(dict.fromkeys(instance, 5))


REQUIRES_ITSELF = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["x"]}


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}},
        {"a": {"not": {"$ref": "#/$defs/a"}}},
        {"a": REQUIRES_ITSELF},
        {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}},
        {"a": {"type": "array", "prefixItems": [{"$ref": "#/$defs/a"}], "minItems": 1}},
        {"a": {"anyOf": [REQUIRES_ITSELF, {"allOf": [REQUIRES_ITSELF]}]}},
    ],
    ids=["itself", "circle", "branch", "negation", "required", "items", "tuple", "every branch"],
)
def test_recursion_that_no_instance_can_end_is_refused(definitions: dict[str, Any]) -> None:
    with pytest.raises(SchemaError) as caught:
        normalise({"p": {"$ref": "#/$defs/a"}, "$defs": definitions})
    assert caught.value.reason == "UnboundedRecursion"
    assert caught.value.path.startswith("/$defs/")


def test_definitions_that_name_each_other_many_times_stay_small() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "lr"}}
        for n in range(40)
    }
    definitions["d40"] = {"type": "string"}
    schema = normalise({"p": {"$ref": "#/$defs/d0"}, "$defs": definitions})
    assert len(json.dumps(schema)) < 10_000


@pytest.mark.parametrize(
    "link",
    [
        lambda target: target,
        lambda target: {"allOf": [target], "title": "x"},
        lambda target: {"type": "object", "properties": {"a": target}},
        lambda target: {"type": "array", "items": {**target, "description": "x"}},
    ],
    ids=["reference", "allOf", "property", "items"],
)
def test_a_long_chain_of_definitions_is_read_and_lowered(link: Callable[[Schema], Schema]) -> None:
    length = 900
    definitions = {f"d{n}": link({"$ref": f"#/$defs/d{n + 1}"}) for n in range(length)}
    schema = normalise(
        {"p": {"$ref": "#/$defs/d0"}, "$defs": {**definitions, f"d{length}": {"type": "string"}}}
    )
    for profile in Profile:
        assert list(lower(schema, profile)["properties"]) == ["p"]


def groups(draft: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (path.stem, group)
        for path in sorted(Path(SUITE, draft).glob("*.json"))
        for group in json.loads(path.read_text())
    ]


@pytest.mark.parametrize(("draft", "agreed"), [("draft2020-12", 1215), ("draft7", 900)])
def test_translation_keeps_the_meaning_of_every_schema_in_the_official_suite(draft: str, agreed: int) -> None:
    count = 0
    refused: set[str] = set()
    for stem, group in groups(draft):
        schema = group["schema"]
        if draft == "draft7" and isinstance(schema, dict):
            schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
        try:
            translated = translate(schema) if isinstance(schema, dict) else schema
        except SchemaError as error:
            refused.add(error.reason)
            continue
        validator = jsonschema_rs.Draft202012Validator(translated)
        for case in group["tests"]:
            if group["description"] == CUSTOM_METASCHEMA:
                continue  # a dialect that turns validation off; ours never does
            expected = case["valid"]
            assert validator.is_valid(case["data"]) == expected, (
                stem,
                group["description"],
                case["description"],
            )
            count += 1
    assert count == agreed
    assert refused <= {"RemoteReference", "UnsupportedKeyword"}


@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_a_schema_of_the_suite_means_the_same_as_a_parameter(draft: str) -> None:
    dialect = {} if draft == "draft2020-12" else {"$schema": "http://json-schema.org/draft-07/schema#"}
    count = 0
    for stem, group in groups(draft):
        if "ref" in json.dumps(group["schema"]).lower() or group["description"] == CUSTOM_METASCHEMA:
            continue  # a reference is relative to the document, which is another one now
        schema = normalise({**dialect, "type": "object", "properties": {"value": group["schema"]}})
        validator = jsonschema_rs.Draft202012Validator(schema)
        for case in group["tests"]:
            assert validator.is_valid({"value": case["data"]}) == case["valid"], (stem, case["description"])
            count += 1
    assert count > 700
