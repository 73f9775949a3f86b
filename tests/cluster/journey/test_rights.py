"""What Beckon may do in a cluster, and what it did: nothing to an EventType."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.audit import writers
from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import NAMESPACE, Platform

OPERATOR = f"system:serviceaccount:{NAMESPACE}:beckon-operator"
AGENT = f"system:serviceaccount:{NAMESPACE}:beckon-agent"
TOOL = "get.current.weather"
WRITING = ("create", "update", "patch", "delete", "deletecollection")


def may(kube: Kube, account: str, verb: str, what: str) -> bool:
    answer = kube.attempt("auth", "can-i", verb, what, "--as", account, "--all-namespaces")
    return answer.stdout.strip() == "yes"


@pytest.mark.parametrize("verb", WRITING)
@pytest.mark.parametrize("kind", ["eventtypes", "triggers", "brokers"])
def test_no_account_of_beckon_may_write_what_is_knatives(platform: Platform, verb: str, kind: str) -> None:
    # The operator's own Triggers are those that its policy lets it write.
    names = ("agent", "shim") if kind == "triggers" else ("operator", "agent", "shim")
    accounts = [f"system:serviceaccount:{NAMESPACE}:beckon-{name}" for name in names]

    allowed = [one for one in accounts if may(platform.kube, one, verb, f"{kind}.eventing.knative.dev")]

    assert allowed == []


def test_the_operator_may_do_its_work(platform: Platform) -> None:
    """So that the answers above mean something."""
    assert may(platform.kube, OPERATOR, "list", "eventtypes.eventing.knative.dev")
    assert may(platform.kube, OPERATOR, "create", "tools.beckon.dev")


def test_no_request_of_beckon_tried_to_write_to_an_eventtype(platform: Platform) -> None:
    found = writers(platform.kube, "eventtypes")

    assert any("eventing-controller" in writer for writer in found)  # whose status updates are there
    assert not any(writer.startswith(f"system:serviceaccount:{NAMESPACE}:") for writer in found)


def test_the_agent_may_change_the_condition_answering_of_a_tool_and_nothing_else(
    installed: Platform,
) -> None:
    until(lambda: condition(installed.kube.find("tool", TOOL), "Ready")[0] == "True", what="the Tool")
    answering = {"type": "Answering", "status": "True", "reason": "CallsAnswered"}
    forged = [{**one, "message": "forged"} for one in _other_conditions(installed.kube)]
    refused: tuple[dict[str, Any], ...] = (
        {"spec": {"description": "Forged."}},
        {"metadata": {"labels": {"team": "forged"}}},
        {"metadata": {"ownerReferences": []}},
        {"status": {"eventType": {"uid": "forged"}}},
        {"status": {"lastReady": []}},
        {"status": {"conditions": [*forged, answering]}},
        {"status": {"conditions": [answering]}},
    )

    def change_answering() -> bool:
        # The operator may change another condition between the reading and the patch.
        conditions = [*_other_conditions(installed.kube), answering]
        return _patch(installed.kube, {"status": {"conditions": conditions}}) == ""

    with _may_get_tools(installed.kube):
        until(change_answering, what="the agent's change of the condition Answering")
        for change in refused:
            assert "may change the condition Answering" in _patch(installed.kube, change), change


def _other_conditions(kube: Kube) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kube.get("tool", TOOL)["status"]["conditions"]
    return [one for one in found if one["type"] != "Answering"]


@contextmanager
def _may_get_tools(kube: Kube) -> Iterator[None]:
    """Let the agent's account get Tools for this block: `kubectl patch` reads first, the agent never does."""
    kube.run("create", "role", "get-tools", "--verb=get", "--resource=tools.beckon.dev")
    account = AGENT.removeprefix("system:serviceaccount:")
    kube.run("create", "rolebinding", "get-tools", "--role=get-tools", f"--serviceaccount={account}")
    try:
        yield
    finally:
        kube.run("delete", "rolebinding,role", "get-tools")


def _patch(kube: Kube, change: dict[str, Any]) -> str:
    """Patch the Tool as the agent's account; return what the API server said against it."""
    body = ["--type=merge", "-p", json.dumps(change), "--as", AGENT]
    return kube.attempt("patch", "tool", TOOL, *body).stderr
