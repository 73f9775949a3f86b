"""A Broker that asks who calls (OIDC). The feature is the whole cluster's: it is on for this test only."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.cluster.kube import Kube, condition, until
from tests.cluster.shim.load import load
from tests.cluster.shim.stack import stacked

pytestmark = pytest.mark.timeout(300)

_SECONDS = 60
_NOTICED = 3  # seconds in which a controller takes up a changed feature


@pytest.fixture
def oidc(kube: Kube) -> Iterator[Kube]:
    """A new stack whose Broker has an audience; one that was there before would keep subscribers without."""
    try:
        _set(kube, "enabled")
        with stacked(kube, replicas=1) as namespace:
            until(lambda: _audience(namespace), within=_SECONDS, what="the Broker's audience")
            yield namespace
    finally:
        _set(kube, "disabled")
        _remove_policies(kube)


def test_a_broker_that_asks_for_a_token_gets_one_and_calls_are_answered(oidc: Kube) -> None:
    url = oidc.get("broker", "default")["status"]["address"]["url"]
    assert int(oidc.run("exec", "deployment/caller", "--", "python", "-c", STRANGER, url)) == 401

    with load(oidc, workers=6, wait=15, client="plain") as found:
        found.go_on(12)

    assert found.failed() == {}, found.samples


def _set(kube: Kube, value: str) -> None:
    patch = json.dumps({"data": {"authentication-oidc": value}})
    eventing = kube.within("knative-eventing")
    eventing.run("patch", "configmap", "config-features", "--type=merge", "-p", patch)


def _remove_policies(kube: Kube) -> None:
    """Delete the EventPolicies that Knative made for every Broker while the feature was on.

    They stay, not ready, when it is off again. Their channels are then not ready either, and a dispatcher
    that restarts does not serve such a channel.
    """
    until(lambda: _are_gone(kube), within=_SECONDS, what="channels without EventPolicies, ready again")


def _are_gone(kube: Kube) -> bool:
    """Delete what there is; return whether no controller that still has the old setting made it anew."""
    for policy in kube.list_objects("eventpolicies", everywhere=True):
        name, namespace = policy["metadata"]["name"], policy["metadata"]["namespace"]
        kube.within(namespace).run("delete", "eventpolicy", name, "--ignore-not-found")
    time.sleep(_NOTICED)
    policies = kube.list_objects("eventpolicies", everywhere=True)
    return not policies and not _unready_channels(kube)


def _unready_channels(kube: Kube) -> list[str]:
    channels = kube.list_objects("inmemorychannels", everywhere=True)
    remaining = (channel for channel in channels if "deletionTimestamp" not in channel["metadata"])
    return [channel["metadata"]["name"] for channel in remaining if condition(channel, "Ready")[0] != "True"]


def _audience(kube: Kube) -> str:
    address = kube.get("broker", "default").get("status", {}).get("address", {})
    return str(address.get("audience") or "")


STRANGER = """
import sys, urllib.error, urllib.request
headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/t", "ce-type": "t"}
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=b"{}", headers=headers)).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
