"""Tool resources: what the operator writes, an agent reads; what no one can have written is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.knative.delivery import Reference
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition, from_object
from beckon_contract.resources.tools import (
    API_VERSION,
    CONDITIONS,
    KIND,
    Refusal,
    Tool,
    read_tool,
    ready_from,
    tool_spec,
)

READY_CONDITION = {"type": READY, "status": "True", "reason": "Ready", "message": ""}
TOOL = Tool(
    name="get_weather",
    namespace="default",
    event_type="get.weather",
    type="com.example.weather",
    source="/weather",
    description="The weather at a place.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}},
    parameters_from="spec.schemaData",
    timeout=2.5,
    requires_approval=True,
    dispatch="direct",
    idempotent=True,
    read_only=False,
    destructive=True,
    reply="any",
    reply_attribute="responseid",
    broker="other",
    routes=("one", "two"),
    reference=Reference("v1", "Service", "default", "weather"),
    address="http://weather.default.svc.cluster.local",
    labels={"team": "sky"},
    origin="Tool get.weather",
    returns={"type": "object", "properties": {"degrees": {"type": "number"}}},
)

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
names = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
references = st.builds(
    Reference,
    st.sampled_from(["v1", "serving.knative.dev/v1"]),
    st.sampled_from(["Service", "Broker"]),
    names,
    names,
)
tools = st.builds(
    Tool,
    name=st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,20}", fullmatch=True),
    namespace=names,
    event_type=names,
    type=words,
    source=st.none() | words,
    description=st.text(st.characters(codec="utf-8"), max_size=30),
    parameters=st.dictionaries(words, json_values, max_size=4),
    parameters_from=st.text(st.characters(codec="ascii"), max_size=10),
    timeout=st.none() | st.floats(0.001, 86_400),
    requires_approval=st.booleans(),
    dispatch=st.sampled_from(["broker", "direct"]),
    idempotent=st.booleans(),
    read_only=st.booleans(),
    destructive=st.sampled_from([None, True, False]),
    reply=st.sampled_from(["event", "any"]),
    reply_attribute=st.sampled_from(["", "responseid"]),
    broker=names,
    routes=st.lists(names, max_size=3).map(tuple),
    reference=st.none() | references,
    address=st.just("") | words,
    labels=st.dictionaries(words, words, max_size=3),
    origin=words,
)


def document(tool: Tool, **status: Any) -> dict[str, Any]:
    """Return the object that the operator would write of a tool."""
    metadata = {"name": tool.event_type, "namespace": tool.namespace, "labels": dict(tool.labels)}
    status = status or {"conditions": [READY_CONDITION]}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": tool_spec(tool),
        "status": status,
    }


def resource(tool: Tool = TOOL, **status: Any) -> Resource:
    return from_object(json.loads(json.dumps(document(tool, **status))), tool.origin)


def with_spec(**changes: Any) -> Resource:
    found = resource()
    return replace(found, spec={**found.spec, **changes})


@given(tools)
def test_a_tool_that_is_written_and_read_is_the_same_tool(tool: Tool) -> None:
    assert read_tool(resource(tool)) == tool


def test_what_is_at_its_default_is_not_written() -> None:
    plain = Tool("t", "n", "e", "type", None, "", {"type": "object"}, "p")

    assert tool_spec(plain).keys() == {
        "name",
        "description",
        "parameters",
        "parametersFrom",
        "type",
        "dispatch",
        "broker",
        "triggers",
    }
    assert read_tool(resource(replace(plain, origin="x"))) == replace(plain, origin="x")


NOT_JUDGED = "the operator has not judged this Tool yet"


@pytest.mark.parametrize(
    ("conditions", "reason", "message"),
    [
        (
            [{"type": READY, "status": "False", "reason": "NoTrigger", "message": "add it"}],
            "NoTrigger",
            "add it",
        ),
        ([{"type": READY, "status": "Unknown"}], "NotJudged", NOT_JUDGED),
        ([], "NotJudged", NOT_JUDGED),
        ("all fine", "NotJudged", NOT_JUDGED),
        ([{**READY_CONDITION, "status": True}], "Ready", NOT_JUDGED),
    ],
    ids=["false", "unknown", "none", "no-list", "boolean"],
)
def test_a_tool_that_is_not_ready_is_refused_with_its_reason(
    conditions: object, reason: str, message: str
) -> None:
    found = read_tool(resource(conditions=conditions))

    assert found == Refusal("get.weather", "default", reason, "", message, "Tool get.weather")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "name is missing or no string"),
        ({"name": 5}, "name is missing or no string"),
        ({"type": None}, "type is missing or no string"),
        ({"parameters": None}, "parameters is missing or no mapping"),
        ({"parameters": []}, "parameters is missing or no mapping"),
        ({"timeoutSeconds": 0}, "timeoutSeconds is 0, not a number of seconds"),
        ({"timeoutSeconds": "5s"}, "timeoutSeconds is '5s', not a number of seconds"),
        ({"timeoutSeconds": True}, "timeoutSeconds is True, not a number of seconds"),
        ({"dispatch": "pigeon"}, "dispatch is 'pigeon', neither broker nor direct"),
        ({"dispatch": None}, "dispatch is None, neither broker nor direct"),
        ({"reference": {"kind": "Service"}}, "apiVersion is missing or no string"),
        ({"source": {}}, "source is missing or no string"),
        ({"triggers": 5}, "triggers is no list of strings"),
        ({"triggers": [5]}, "triggers is no list of strings"),
    ],
    ids=lambda value: next(iter(value.items())).__repr__() if isinstance(value, dict) else None,
)
def test_a_ready_tool_that_no_operator_can_have_written_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    found = read_tool(with_spec(**changes))

    assert isinstance(found, Refusal)
    assert (found.reason, found.field) == ("InvalidTool", "spec")
    assert found.message == f"{said}; the operator writes Tools, so change the EventType instead"


@given(st.dictionaries(st.sampled_from([*tool_spec(TOOL), "other"]), json_values, min_size=1, max_size=3))
def test_nothing_in_a_spec_makes_reading_it_fail(changes: dict[str, Any]) -> None:
    found = read_tool(with_spec(**changes))

    assert isinstance(found, Tool | Refusal)


@given(st.dictionaries(st.just("conditions"), json_values))
def test_nothing_in_a_status_makes_reading_it_fail(status: dict[str, Any]) -> None:
    assert isinstance(read_tool(replace(resource(), status=status)), Refusal)


def test_a_condition_is_found_by_its_type_and_read_as_it_is() -> None:
    conditions = [
        None,
        {"type": "Routed", "status": "maybe"},
        READY_CONDITION,
        {"type": READY, "status": "False"},
    ]
    found = resource(conditions=conditions)

    assert condition(found.status, READY) == Condition(READY, "True", "Ready")
    assert condition(found.status, "Routed") == Condition("Routed", "Unknown", "")
    assert condition(found.status, "Declared") is None


def judged(**states: str) -> list[Condition]:
    """Return conditions of these statuses, in the order in which they are judged; the rest is True."""
    return [
        Condition(name, states.get(name, "True"), f"{name}Reason", f"about {name}")  # type: ignore[arg-type]  # one of the three
        for name in CONDITIONS
        if name != READY
    ]


@pytest.mark.parametrize(
    ("states", "ready"),
    [
        ({}, Condition(READY, "True", "Ready")),
        ({"DeadLettered": "False"}, Condition(READY, "True", "DeadLetteredReason", "about DeadLettered")),
        ({"DeadLettered": "Unknown"}, Condition(READY, "True", "Ready")),
        (
            {"Available": "False", "DeadLettered": "False"},
            Condition(READY, "True", "AvailableReason", "about Available"),
        ),
        ({"Routed": "False"}, Condition(READY, "False", "RoutedReason", "about Routed")),
        (
            {"Routed": "Unknown", "Answerable": "False"},
            Condition(READY, "Unknown", "RoutedReason", "about Routed"),
        ),
        (
            {"Declared": "False", "Routed": "False"},
            Condition(READY, "False", "DeclaredReason", "about Declared"),
        ),
    ],
    ids=["all", "dead-letters", "unknown-sink", "outage", "one", "first-counts", "two"],
)
def test_ready_says_what_the_first_condition_says_that_is_not_true(
    states: dict[str, str], ready: Condition
) -> None:
    assert ready_from(judged(**states)) == ready
