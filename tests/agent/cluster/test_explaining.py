"""What a Tool resource of the operator says, as the page shows it."""

from typing import Any

import pytest

from beckon_agent.agents.kubernetes_tools import ToolStore, explain_tool
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.tools import ToolSelector

SPEC = {
    "name": "add",
    "description": "Add.",
    "parameters": {"type": "object"},
    "type": "math.add",
    "dispatch": "broker",
    "broker": "default",
    "triggers": ["to-add"],
}


def tool(*conditions: tuple[str, str, str, str], **spec: Any) -> dict[str, Any]:
    """Return a Tool with these conditions: type, status, reason, message."""
    return {
        "apiVersion": "beckon.dev/v1alpha1",
        "kind": "Tool",
        "metadata": {"name": "add", "namespace": "shop"},
        "spec": SPEC | spec,
        "status": {
            "conditions": [
                dict(zip(("type", "status", "reason", "message"), one, strict=True)) for one in conditions
            ]
        },
    }


DECLARED = ("Declared", "True", "Declared", "")
REPLIES = ("Answerable", "True", "ReplyTrigger", "Trigger replies brings replies to the shim")
READY = ("Ready", "True", "Ready", "")


def test_the_conditions_of_the_operator_are_passed_on_in_their_order() -> None:
    found = explain_tool(
        from_object(tool(READY, REPLIES, ("Routed", "True", "Routed", "by to-add"), DECLARED))
    )

    assert [one.type for one in found.conditions] == ["Declared", "Routed", "Answerable", "Ready"]
    assert [(one.kind, one.name, one.state) for one in found.route] == [
        ("EventType", "add", "ok"),
        ("Broker", "default", "ok"),
        ("Trigger", "to-add", "ok"),
        ("Service", "", "unknown"),
        ("Reply", "ReplyTrigger", "ok"),
    ]


@pytest.mark.parametrize(
    ("reason", "broken"),
    [
        ("BrokerNotFound", "Broker"),
        ("BrokerNotReady", "Broker"),
        ("NoTrigger", "Trigger"),
        ("FilterMismatch", "Trigger"),
        ("ServiceNotReady", "Service"),
    ],
)
def test_the_reason_says_where_a_call_stops(reason: str, broken: str) -> None:
    routed = ("Routed", "False", reason, "because")

    found = explain_tool(from_object(tool(DECLARED, routed, REPLIES, triggers=[])))

    assert [(one.kind, one.detail) for one in found.route if one.state == "broken"] == [(broken, "because")]


@pytest.mark.parametrize(
    ("reason", "waits_at"),
    [
        ("BrokerUnavailable", "Broker"),
        ("TriggerUnavailable", "Trigger"),
        ("ReplyTriggerUnavailable", "Reply"),
    ],
)
def test_an_outage_is_shown_at_the_station_where_calls_wait(reason: str, waits_at: str) -> None:
    routed, away = ("Routed", "True", "Routed", ""), ("Available", "False", reason, "away for now")

    found = explain_tool(from_object(tool(DECLARED, routed, REPLIES, away)))

    assert "Available" in [condition.type for condition in found.conditions]
    assert [(one.kind, one.detail) for one in found.route if one.state == "broken"] == [
        (waits_at, "away for now")
    ]


@pytest.mark.parametrize(
    "lost",
    [
        [("Answerable", "False", "NoReplyTrigger", "write one")],
        [REPLIES, ("RepliesArrive", "False", "RepliesLost", "write one")],
    ],
    ids=["no Trigger", "a lost probe"],
)
def test_replies_that_do_not_come_back_are_the_last_station(lost: list[tuple[str, str, str, str]]) -> None:
    routed = ("Routed", "True", "Routed", "")

    found = explain_tool(from_object(tool(DECLARED, routed, *lost)))

    assert (found.route[-1].kind, found.route[-1].state, found.route[-1].detail) == (
        "Reply",
        "broken",
        "write one",
    )


def test_a_direct_call_passes_no_broker() -> None:
    reference = {"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "adder"}
    routed = ("Routed", "True", "Direct", "")
    spec = {"dispatch": "direct", "address": "http://adder", "reference": reference}

    found = explain_tool(from_object(tool(DECLARED, routed, REPLIES, **spec)))

    assert [(one.kind, one.name, one.detail) for one in found.route[:2]] == [
        ("EventType", "add", "type math.add"),
        ("Service", "adder", "http://adder"),
    ]
    assert found.route[-1].name == "in the answer"


ROUTE = {
    "trigger": "to-add",
    "filter": "type = math.add",
    "subscriber": {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "namespace": "shop",
        "name": "adder",
    },
    "address": "http://adder.shop.svc.cluster.local",
    "retries": 10,
    "deadLetters": True,
}


def test_the_route_leads_to_the_service_that_the_operator_has_seen_behind_the_trigger() -> None:
    written = tool(DECLARED, ("Routed", "True", "Routed", ""), REPLIES)
    written["status"]["routes"] = [ROUTE]

    found = explain_tool(from_object(written))

    _, _, trigger, service, _ = found.route
    assert (trigger.name, trigger.detail) == ("to-add", "type = math.add")
    assert trigger.note == "delivers up to 11 times, then to the dead-letter sink"
    assert (service.name, service.state, service.detail) == (
        "adder",
        "ok",
        "http://adder.shop.svc.cluster.local",
    )


def test_a_service_that_takes_no_calls_is_named_where_a_call_stops() -> None:
    written = tool(DECLARED, ("Routed", "False", "ServiceNotReady", "because"), REPLIES, triggers=[])
    written["status"]["routes"] = [ROUTE]

    found = explain_tool(from_object(written))

    assert [(one.kind, one.name) for one in found.route if one.state == "broken"] == [("Service", "adder")]
    assert found.route[2].name == "to-add"


@pytest.mark.parametrize(
    ("delivers", "note"),
    [
        ({"retries": 0, "deadLetters": False}, "delivers once, then gives up"),
        ({"retries": 2}, "delivers up to 3 times"),
        ({}, ""),
    ],
)
def test_how_a_trigger_delivers_is_reported_as_far_as_it_is_known(
    delivers: dict[str, Any], note: str
) -> None:
    written = tool(DECLARED, ("Routed", "True", "Routed", ""), REPLIES)
    written["status"]["routes"] = [{"trigger": "to-add", **delivers}]

    assert explain_tool(from_object(written)).route[2].note == note


def test_an_agent_explains_the_tools_of_its_namespace() -> None:
    store = ToolStore(lambda _: None)
    store.put(tool(DECLARED, ("Ready", "False", "NoTrigger", "write one")))
    tools = store.chosen("shop", ToolSelector())

    found = tools.explain("shop", "add")

    assert found is not None
    assert found.conditions[-1].reason == "NoTrigger"
    assert tools.explain("shop", "nothing") is None
    assert tools.explain("other", "add") is None
