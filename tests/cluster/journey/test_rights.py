"""What Beckon may do in a cluster, and what it did: nothing to an EventType."""

import pytest

from tests.cluster.audit import writers
from tests.cluster.kube import Kube
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


def test_no_request_of_beckon_tried_to_write_to_an_eventtype(platform: Platform) -> None:
    found = writers(platform.kube, "eventtypes")

    assert any("eventing-controller" in writer for writer in found)  # whose status updates are there
    assert not any(writer.startswith(f"system:serviceaccount:{NAMESPACE}:") for writer in found)
