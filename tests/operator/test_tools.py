import json
from collections.abc import Callable
from typing import Any

import pytest

from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.tools import Tool, read_tool
from beckon_operator.desired_state import Action
from beckon_operator.tools import read_seen, tool_document, wanted_tool
from tests.operator.documents import NAMESPACE, Document, broker, event_type, ready, reply_trigger, trigger
from tests.operator.judged import Judged

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
ROUTE = (broker(), trigger(), reply_trigger())


def stored(written: Document, version: int = 7) -> Document:
    """Return what the API server makes of a Tool that is written."""
    metadata = {
        "uid": "uid-tool",
        "creationTimestamp": NOW,
        **written["metadata"],
        "resourceVersion": str(version),
    }
    copy: Document = json.loads(json.dumps({**written, "metadata": metadata}))
    return copy


def written(*documents: Document) -> Document:
    return tool_document(wanted_tool(Judged(*ROUTE, *documents).verdict()), None, NOW)


def test_what_is_written_is_what_an_agent_reads() -> None:
    tool = read_tool(from_object(stored(written(event_type(labels={"team": "a"})))))

    assert isinstance(tool, Tool)
    assert (tool.name, tool.event_type, tool.type) == ("get_weather", "get.weather", "get.weather")
    assert (tool.routes, tool.labels) == (("weather",), {"team": "a"})


def test_a_tool_belongs_to_its_event_type_and_goes_with_it() -> None:
    assert written(event_type())["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "name": "get.weather",
            "uid": "uid-EventType-get.weather",
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]


def test_labels_of_knative_and_kubectl_are_not_copied() -> None:
    labels = {
        "team": "a",
        "app.kubernetes.io/name": "weather",
        "eventing.knative.dev/broker": "default",
        "knative.dev/x": "y",
        "kubectl.kubernetes.io/x": "y",
        "notknative.dev/x": "y",
    }

    assert written(event_type(labels=labels))["metadata"]["labels"] == {
        "team": "a",
        "app.kubernetes.io/name": "weather",
        "notknative.dev/x": "y",
    }


@pytest.mark.parametrize(
    "parameters",
    [
        '{"a": {"type": "number", "minimum": 0.0, "maximum": 1e20, "default": 0.5}}',
        '{"a": {"enum": [null, 1.0, "x", {"b": []}], "default": null}}',
        '{"a": {"description": "half a pair: \\ud83d", "type": "string"}}',
        '{"\\u00e9": {"type": "string", "const": "\\u2028"}}',
    ],
)
def test_what_was_written_is_known_again_whatever_it_holds(parameters: str) -> None:
    notes = {"beckon.dev/parameters": parameters, "beckon.dev/timeout": "30s"}
    tool = wanted_tool(Judged(*ROUTE, event_type(annotations=notes)).verdict())

    assert read_seen(stored(tool_document(tool, None, NOW))).digest == tool.digest


CHANGES: dict[str, Callable[[Any], object]] = {
    "labels": lambda tool: tool["metadata"].update(labels={"x": "y"}),
    "owner": lambda tool: tool["metadata"]["ownerReferences"][0].update(uid="other"),
    "description": lambda tool: tool["spec"].update(description="Forged."),
    "parameters": lambda tool: tool["spec"]["parameters"].update(properties={}),
    "reason": lambda tool: tool["status"]["conditions"][0].update(reason="Other"),
    "condition": lambda tool: tool["status"]["conditions"].pop(),
    "origin": lambda tool: tool["status"].update(eventType={}),
    "proof": lambda tool: tool["status"]["lastReady"].pop(),
    "way": lambda tool: tool["status"]["routes"][0].update(address="http://elsewhere"),
    "status": lambda tool: tool.pop("status"),
    "spec": lambda tool: tool.pop("spec"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_by_others_is_seen(what: str) -> None:
    tool = wanted_tool(Judged(*ROUTE, event_type()).verdict())
    drifted = stored(tool_document(tool, None, NOW))
    CHANGES[what](drifted)

    assert read_seen(drifted).digest != tool.digest


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    judged = Judged(*ROUTE, event_type())
    seen = read_seen(stored(tool_document(wanted_tool(judged.verdict()), None, NOW)))
    judged.see(trigger(status=ready("False", "Gone"), generation=2))

    again = tool_document(wanted_tool(judged.verdict()), seen, LATER)

    times = {found["type"]: found["lastTransitionTime"] for found in again["status"]["conditions"]}
    assert times == {
        "Declared": NOW,
        "Routed": LATER,
        "Answerable": NOW,
        "Available": LATER,
        "RepliesArrive": NOW,
        "DeadLettered": NOW,
        "Ready": LATER,
    }


def test_the_condition_that_agents_write_is_no_difference_and_is_left_there() -> None:
    tool = wanted_tool(Judged(*ROUTE, event_type()).verdict())
    reported = stored(tool_document(tool, None, NOW))
    answering = {"type": "Answering", "status": "False", "reason": "CallsFail", "lastTransitionTime": NOW}
    reported["status"]["conditions"].insert(0, answering)

    seen = read_seen(reported)

    assert seen.digest == tool.digest
    assert tool_document(tool, seen, LATER)["status"]["conditions"][-1] == answering


def test_a_new_version_is_written_over_the_one_that_was_seen_and_keeps_what_is_not_ours() -> None:
    tool = wanted_tool(Judged(*ROUTE, event_type()).verdict())
    before = stored(tool_document(tool, None, NOW), version=41)
    before["metadata"] |= {"annotations": {"note": "mine"}, "finalizers": ["example.dev/x"]}

    metadata = tool_document(tool, read_seen(before), LATER)["metadata"]

    assert (metadata["resourceVersion"], metadata["uid"]) == ("41", "uid-tool")
    assert (metadata["annotations"], metadata["finalizers"]) == ({"note": "mine"}, ["example.dev/x"])


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "u", "controller": True}],
        [{"apiVersion": "eventing.knative.dev/v1", "kind": "EventType", "name": "x", "uid": "u"}],
    ],
)
def test_a_tool_that_no_event_type_controls_belongs_to_others(owners: list[Document]) -> None:
    foreign = stored(written(event_type()))
    foreign["metadata"]["ownerReferences"] = owners

    assert read_seen(foreign).owner == ""


def test_a_resource_definition_that_drops_what_is_new_keeps_nothing_being_written_again() -> None:
    judged = Judged(*ROUTE, event_type())
    tool = wanted_tool(judged.verdict())
    pruned = stored(tool_document(tool, None, NOW))
    del pruned["status"]["routes"]

    judged.desired.mark_written(tool, "uid-tool", 7)
    judged.see(pruned)

    assert judged.desired.next_action(NAMESPACE, "get.weather") is Action.NOTHING
