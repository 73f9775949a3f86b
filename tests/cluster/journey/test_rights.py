"""What Beckon may do in a cluster, and what it did: nothing to an EventType."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.kube import Kube
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, Platform

OPERATOR = f"system:serviceaccount:{NAMESPACE}:beckon-operator"
WRITING = ("create", "update", "patch", "delete", "deletecollection")


def may(kube: Kube, account: str, verb: str, what: str) -> bool:
    answer = kube.attempt("auth", "can-i", verb, what, "--as", account, "--all-namespaces")
    return answer.stdout.strip() == "yes"


@pytest.mark.parametrize("verb", WRITING)
@pytest.mark.parametrize("kind", ["eventtypes", "triggers", "brokers"])
def test_no_account_of_beckon_may_write_what_is_knatives(platform: Platform, verb: str, kind: str) -> None:
    accounts = [f"system:serviceaccount:{NAMESPACE}:beckon-{name}" for name in ("operator", "agent", "shim")]

    allowed = [one for one in accounts if may(platform.kube, one, verb, f"{kind}.eventing.knative.dev")]

    assert allowed == []


def test_the_operator_may_do_its_work(platform: Platform) -> None:
    """So that the answers above mean something."""
    assert may(platform.kube, OPERATOR, "list", "eventtypes.eventing.knative.dev")
    assert may(platform.kube, OPERATOR, "create", "tools.beckon.dev")


def test_no_request_of_the_operator_tried_to_write_to_an_eventtype(platform: Platform) -> None:
    audit = places().logs / "audit.log"
    if places().kubeconfig != platform.kube.kubeconfig or not audit.exists():
        pytest.skip("only the cluster of `make cluster` keeps an audit log that this test can read")

    writers = {entry["user"]["username"] for entry in entries(audit.read_text(encoding="utf-8"))}

    assert any("eventing-controller" in writer for writer in writers)  # whose status updates are there
    assert OPERATOR not in writers


def entries(log: str) -> Iterator[dict[str, Any]]:
    """Yield what the API server noted of writes to Knative Eventing's objects."""
    for line in log.splitlines():
        entry = json.loads(line)
        if entry.get("objectRef", {}).get("resource") == "eventtypes" and entry["verb"] in WRITING:
            yield entry
