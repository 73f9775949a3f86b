"""`GET /catalogue`: what each EventType becomes, why, and the way of its calls."""

from pathlib import Path
from typing import Any

import pytest

from beckon_agent.agents.folder import FolderSource
from tests.agent.conftest import StartAgent

Document = dict[str, Any]

EVENT_TYPE = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata: {{name: {name}}}
spec: {{type: {type}, description: {description}}}
---
"""
TRIGGER = """
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {{name: {name}}}
spec:
  broker: default
  filter: {{attributes: {{type: {type}}}}}
  subscriber: {{ref: {{apiVersion: serving.knative.dev/v1, kind: Service, name: {service}}}}}
---
"""
SERVICE = """
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {{name: {name}}}
status: {{address: {{url: "http://{name}.example"}}}}
---
"""
BROKER = """
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default}
spec: {delivery: {deadLetterSink: {uri: "http://shim/dead-letters"}}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: default-beckon-replies}
spec: {broker: default, filter: {attributes: {replyid: ""}}, subscriber: {uri: "http://shim/replies"}}
---
"""


def event_type(name: str, kind: str = "", description: str = "Does it.") -> str:
    return EVENT_TYPE.format(name=name, type=kind or name, description=description)


def trigger(name: str, kind: str = "", service: str = "svc") -> str:
    return TRIGGER.format(name=name, type=kind or name, service=service)


def explained(folder: Path, text: str, name: str) -> Document:
    """Return conditions and stations of an EventType, by their names."""
    (folder / "all.yaml").write_text(text)
    found = FolderSource([folder], "/beckon/agents/default/beckon").explain("default", name)
    assert found is not None
    return {
        "conditions": {one.type: (one.status, one.reason) for one in found.conditions},
        "route": [(one.kind, one.name, one.state) for one in found.route],
        "details": {one.kind: one.detail for one in found.route},
        "notes": {one.kind: one.note for one in found.route if one.note},
        "findings": found.findings,
    }


def test_a_tool_that_can_be_called_has_a_whole_route(tmp_path: Path) -> None:
    text = event_type("add") + trigger("to-add", "add") + SERVICE.format(name="svc") + BROKER

    found = explained(tmp_path, text, "add")

    assert found["conditions"] == {
        "Declared": ("True", "Declared"),
        "Routed": ("True", "Routed"),
        "Answerable": ("True", "ReplyTrigger"),
        "DeadLettered": ("True", "ToShim"),
        "Ready": ("True", "Ready"),
    }
    assert found["route"] == [
        ("EventType", "add", "ok"),
        ("Broker", "default", "ok"),
        ("Trigger", "to-add", "ok"),
        ("Service", "svc", "ok"),
        ("Reply", "ReplyTrigger", "ok"),
    ]
    assert found["details"]["Trigger"] == "type = add"
    assert found["details"]["Service"] == "http://svc.example"
    assert found["notes"] == {"Trigger": "delivers once, then to the dead-letter sink"}
    assert found["findings"] == ()


@pytest.mark.parametrize(
    ("text", "reason", "broken"),
    [
        (event_type("add"), "NoTrigger", "Trigger"),
        (event_type("add") + trigger("t", "ad"), "FilterMismatch", "Trigger"),
        (event_type("add") + trigger("t", "add", "gone"), "TriggerNotReady", "Service"),
    ],
)
def test_where_a_call_stops_is_marked_and_nothing_behind_it_is_promised(
    tmp_path: Path, text: str, reason: str, broken: str
) -> None:
    found = explained(tmp_path, text + SERVICE.format(name="svc") + BROKER, "add")

    assert found["conditions"]["Routed"] == found["conditions"]["Ready"] == ("False", reason)
    states = [state for kind, _, state in found["route"] if kind == broken]
    assert states == ["broken"]
    assert found["details"][broken]
    behind = found["route"][[kind for kind, _, _ in found["route"]].index(broken) + 1 :]
    assert {state for _, _, state in behind} == {"unknown"}


def test_an_event_type_that_says_too_little_stops_everything(tmp_path: Path) -> None:
    text = event_type("add").replace("spec: {", "spec: {schema: 'http://far.example/schema', ")

    found = explained(tmp_path, text + trigger("t", "add") + SERVICE.format(name="svc"), "add")

    assert found["conditions"]["Declared"][0] == "False"
    assert found["conditions"]["Routed"] == ("Unknown", "NotDeclared")
    assert found["route"][0] == ("EventType", "add", "broken")


def test_what_the_manifests_do_not_say_is_unknown_and_keeps_nothing_from_being_ready(tmp_path: Path) -> None:
    found = explained(tmp_path, event_type("add") + trigger("t", "add") + SERVICE.format(name="svc"), "add")

    assert found["conditions"]["Answerable"] == ("Unknown", "NoReplyTrigger")
    assert found["conditions"]["DeadLettered"] == ("Unknown", "BrokerNotFound")
    assert found["conditions"]["Ready"] == ("True", "Ready")


def test_what_surprises_is_reported_beside_the_conditions(tmp_path: Path) -> None:
    text = event_type("add").replace(
        "metadata: {name: add}", 'metadata: {name: add, annotations: {beckon.dev/time-out: "3s"}}'
    )

    found = explained(tmp_path, text + trigger("t", "add") + SERVICE.format(name="svc"), "add")

    (finding,) = found["findings"]
    assert "unknown annotation" in finding.message


def direct(name: str, service: str) -> str:
    """Return an EventType whose calls go to its Service without a Broker."""
    reference = f"{{apiVersion: serving.knative.dev/v1, kind: Service, name: {service}}}"
    return (
        event_type(name)
        .replace("metadata: {", "metadata: {annotations: {beckon.dev/dispatch: direct}, ")
        .replace("spec: {", f"spec: {{reference: {reference}, ")
    )


def test_a_direct_call_goes_to_the_service_of_its_reference(tmp_path: Path) -> None:
    found = explained(tmp_path, direct("add", "svc") + SERVICE.format(name="svc"), "add")

    assert found["conditions"]["Ready"] == ("True", "Ready")
    assert ("Service", "svc", "ok") in found["route"]
    assert found["details"]["Service"] == "http://svc.example"
    assert "Broker" not in found["details"]


def test_a_direct_call_without_its_service_is_not_ready(tmp_path: Path) -> None:
    found = explained(tmp_path, direct("add", "gone") + SERVICE.format(name="svc"), "add")

    assert found["conditions"]["Ready"][0] == "False"
    assert ("Service", "gone", "broken") in found["route"]
    assert "gone" in found["details"]["Service"]


def test_a_direct_call_to_another_namespace_has_no_path_over_a_broker(tmp_path: Path) -> None:
    text = direct("add", "svc").replace("kind: Service, name", "kind: Service, namespace: shop, name")

    found = explained(tmp_path, text + SERVICE.format(name="svc"), "add")

    assert found["conditions"]["Routed"] == ("False", "OtherNamespace")
    assert [kind for kind, _, _ in found["route"]] == ["EventType", "Service", "Reply"]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_list_holds_everything_with_its_conditions(start_agent: StartAgent) -> None:
    async with start_agent() as agent:
        page = (await agent.http.get("/catalogue")).json()
        ready = (await agent.http.get("/catalogue", params={"state": "ready"})).json()
        found = (await agent.http.get("/catalogue", params={"query": "WAIT gate"})).json()
        odd = await agent.http.get("/catalogue", params={"limit": 0})
        far = await agent.http.get("/catalogue", params={"agent": "unknown"})

    by_name = {entry["name"]: entry for entry in page["data"]}
    assert by_name["test_echo"]["state"] == "ready"
    assert by_name["test_echo"]["description"] == "Say something again."
    assert [one["type"] for one in by_name["test_echo"]["conditions"]][-1] == "Ready"
    assert page["counts"]["ready"] == len(ready["data"]) > 0
    assert {entry["state"] for entry in ready["data"]} == {"ready"}
    assert [entry["name"] for entry in found["data"]] == ["test_wait"]
    assert (odd.status_code, far.status_code) == (400, 404)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_list_comes_page_by_page(start_agent: StartAgent) -> None:
    async with start_agent() as agent:
        whole = (await agent.http.get("/catalogue")).json()
        ids: list[str] = []
        more, after = True, None
        while more:
            query = {"limit": 3} | ({"after": after} if after else {})
            page = (await agent.http.get("/catalogue", params=query)).json()
            ids += [entry["id"] for entry in page["data"]]
            more, after = page["has_more"], page["last_id"]

    assert ids == [entry["id"] for entry in whole["data"]] == sorted(ids)


@pytest.mark.asyncio(loop_scope="module")
async def test_one_shows_what_a_model_sees_and_the_route_of_its_calls(start_agent: StartAgent) -> None:
    async with start_agent() as agent:
        one = (await agent.http.get("/catalogue/default/test.echo")).json()
        none = await agent.http.get("/catalogue/default/nothing")

    assert one["tool"]["declaration"]["function"]["name"] == "test_echo"
    assert [station["kind"] for station in one["route"]] == [
        "EventType",
        "Broker",
        "Trigger",
        "Service",
        "Reply",
    ]
    assert none.status_code == 404
    assert none.json()["type"].endswith("/unknown-event-type")
