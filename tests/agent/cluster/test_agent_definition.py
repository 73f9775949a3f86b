"""The resource definition of Agent says the same as the code that reads Agents."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from beckon_agent.dialects.registry import DIALECTS
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.agent_resource import DEFAULT_KEY, InvalidAgent, TextCalls, read_agent

ROOT = Path(__file__).resolve().parents[3]


def spec_schema() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "deploy/201-crd-agent.yaml").read_text("utf-8"))
    (version,) = document["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def example(schema: dict[str, Any]) -> Any:
    """Return a value that a schema takes, with every field in it."""
    if "enum" in schema:
        return schema["enum"][0]
    if "example" in schema:
        return schema["example"]
    match schema["type"]:
        case "object" if "properties" in schema:
            return {name: example(inner) for name, inner in schema["properties"].items()}
        case "object":
            return {"a-label": "x"}
        case "array":
            return [example(schema["items"])]
        case "integer":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return schema.get("default", "https-example")


def read(spec: dict[str, Any]) -> None:
    metadata = {"name": "helper", "namespace": "default"}
    read_agent(
        from_object(
            {"apiVersion": "beckon.dev/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": spec}
        )
    )


def test_every_field_of_the_definition_is_read() -> None:
    read(example(spec_schema()))


def test_no_field_is_read_that_the_definition_does_not_have() -> None:
    spec = spec_schema()
    for place in (
        "",
        "model",
        "limits",
        "tools",
        "access",
        "access.toolRules",
        "access.eventRules",
        "toolPolicies",
        "quotas",
    ):
        schema, written = spec, dict[str, Any](nonsense=1)
        for name in place.split(".") if place else ():
            schema = schema["properties"][name]
            schema = schema.get("items", schema)
        for name in reversed(place.split(".")) if place else ():
            in_list = name in ("toolRules", "eventRules", "toolPolicies", "quotas")
            written = {name: [written] if in_list else written}
        with pytest.raises(InvalidAgent) as caught:
            read(written)
        problem = caught.value.problems[0]
        known = problem.message.partition("the fields here are ")[2].split(", ")
        assert set(known) == set(schema["properties"])


def test_the_dialects_are_those_that_there_are() -> None:
    assert spec_schema()["properties"]["model"]["properties"]["dialect"]["enum"] == ["auto", *DIALECTS]


def test_the_choices_for_calls_in_a_text_are_the_same_in_both() -> None:
    assert spec_schema()["properties"]["textCalls"]["enum"] == list(get_args(TextCalls))


def test_the_usual_key_of_a_secret_is_the_same_in_both() -> None:
    secret = spec_schema()["properties"]["model"]["properties"]["apiKeySecret"]

    assert secret["properties"]["key"]["default"] == DEFAULT_KEY
