"""What the operator survives: its own end, a frozen replica, lost watches, and another replica's death."""

import json
import secrets
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

import pytest

from beckon_operator.conditions.namespace_view import JudgingRules
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.metrics import Metrics
from beckon_operator.objects import EVENT_TYPES, TOOLS
from beckon_operator.watching import Listing
from beckon_sources.api_client import connect
from tests.cluster.kube import Kube, until
from tests.cluster.operator.account import Account, lend, take_back
from tests.cluster.operator.objects import SHIM, apply, becomes, broker, event_type, replies, trigger
from tests.cluster.operator.process import Running, operator

pytestmark = pytest.mark.timeout(240)  # a busy machine, and Knative in between


@dataclass(frozen=True)
class Frozen:
    """An operator that was stopped before an EventType of its namespace went."""

    running: Running
    namespace: Kube
    forgotten: Future[None]

    def wake(self) -> None:
        """Let it go on, once the API server has forgotten what its watches missed."""
        self.forgotten.result()
        self.running.send(signal.SIGCONT)


@pytest.fixture(scope="module")
def frozen(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frozen]:
    """A frozen operator in a namespace of its own, where EventTypes change."""
    home, over = kube.within(f"t-fr-{secrets.token_hex(4)}"), Event()
    kube.run("create", "namespace", home.namespace)
    account = lend(home, tmp_path_factory.mktemp("frozen"))
    apply(home, broker(), replies(), trigger(), event_type(), event_type("ghost"), event_type("busy"))
    try:
        with operator(account, home.namespace) as running, ThreadPoolExecutor(1) as thread:
            until(running.leads, what="a leader")
            becomes(home, "Ready", "NoTrigger", "ghost")
            running.send(signal.SIGSTOP)
            home.run("delete", "eventtype", "ghost")
            yield Frozen(running, home, thread.submit(_keep_busy, home, over))
            over.set()
    finally:
        over.set()
        take_back(home)
        kube.run("delete", "namespace", home.namespace, "--wait=false")


def _keep_busy(kube: Kube, over: Event) -> None:
    """Change an EventType again and again for longer than the API server keeps changes for a watch."""
    ends = time.monotonic() + 85
    number = 0
    while time.monotonic() < ends and not over.wait(0.2):
        number += 1
        kube.run("label", "--overwrite", "eventtype", "busy", f"number={number}")


@pytest.fixture
def pair(account: Account, namespace: Kube) -> Iterator[tuple[Running, Running]]:
    """Two replicas: the one that leads, and the other."""
    with operator(account, namespace.namespace) as first, operator(account, namespace.namespace) as second:
        until(lambda: first.leads() or second.leads(), within=20, what="a leader")
        yield (first, second) if first.leads() else (second, first)


def test_a_restart_finds_what_came_and_what_went(account: Account, namespace: Kube) -> None:
    apply(namespace, broker(), replies(), trigger(), event_type(), event_type("going"))
    with operator(account, namespace.namespace) as first:
        becomes(namespace, "Ready", "Ready")
        before = namespace.get("tool", "get.weather")
        becomes(namespace, "Ready", "NoTrigger", "going")
        assert first.stop() == 0
    namespace.run("delete", "eventtype", "going")
    # Kubernetes' own collector may be faster than the operator, which is as well.
    apply(namespace, event_type("coming"))

    with operator(account, namespace.namespace):
        becomes(namespace, "Ready", "NoTrigger", "coming")
        until(lambda: namespace.find("tool", "going") is None, what="the end of the Tool")
        after = namespace.get("tool", "get.weather")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_in_single_namespaces_it_is_the_watches_that_show(account: Account, namespace: Kube) -> None:
    with operator(account, namespace.namespace) as running:
        until(running.leads, what="a leader")
        for name in ("first", "second", "third"):
            apply(namespace, event_type(name))
            becomes(namespace, "Ready", "BrokerNotFound", name)

        assert running.metric('beckon_operator_missed_total{kind="eventtypes"}') == 0


def test_a_better_version_that_comes_to_be_served_is_watched_after_a_new_start(
    account: Account, namespace: Kube
) -> None:
    with _unserved(namespace, "v1beta2"), operator(account, namespace.namespace) as running:
        assert "eventtypes eventing.knative.dev/v1beta3" in running.log.read_text()
        _serve(namespace, "v1beta2", served=True)

        assert running.process.wait(60) == 0
        assert "now serves eventtypes eventing.knative.dev/v1beta2: starting anew" in running.log.read_text()


# Those that follow use the minute and a half in which the operator of the last one is frozen.
@pytest.mark.usefixtures("frozen")
def test_of_two_replicas_one_leads_and_the_other_follows_a_crash_within_seconds(
    pair: tuple[Running, Running], namespace: Kube
) -> None:
    leader, other = pair
    assert not other.leads()

    leader.send(signal.SIGKILL)
    died = time.monotonic()
    apply(namespace, event_type())
    until(other.leads, within=15, what="a new leader")
    becomes(namespace, "Ready", "BrokerNotFound")

    assert time.monotonic() - died < 16


def test_a_leader_that_has_to_stop_is_followed_at_once(
    pair: tuple[Running, Running], namespace: Kube
) -> None:
    leader, other = pair

    assert leader.stop() == 0
    until(other.leads, within=5, what="a new leader")
    apply(namespace, event_type())
    becomes(namespace, "Ready", "BrokerNotFound")


def test_a_leader_that_wakes_up_does_not_lead_beside_the_next_one(pair: tuple[Running, Running]) -> None:
    leader, other = pair
    leader.send(signal.SIGSTOP)
    until(other.leads, within=15, what="a new leader")

    leader.send(signal.SIGCONT)
    assert (leader.leads(), other.leads()) == (False, True)


@contextmanager
def _unserved(kube: Kube, version: str) -> Iterator[None]:
    """Have EventTypes in all versions but this one, which may be the one that is stored."""
    try:
        _serve(kube, version, served=False)
        yield
    finally:
        _serve(kube, version, served=True)


def _serve(kube: Kube, version: str, *, served: bool) -> None:
    name = "eventtypes.eventing.knative.dev"
    versions = kube.get("crd", name)["spec"]["versions"]
    at = [found["name"] for found in versions].index(version)
    patch = [{"op": "replace", "path": f"/spec/versions/{at}/served", "value": served}]
    kube.run("patch", "crd", name, "--type=json", "-p", json.dumps(patch))
    path = f"/apis/eventing.knative.dev/{version}"
    until(
        lambda: ("eventtypes" in kube.attempt("get", "--raw", path).stdout) is served, what="what is served"
    )


async def test_comparing_finds_what_no_watch_reported_of(account: Account, namespace: Kube) -> None:
    apply(namespace, event_type("there"), event_type("gone"))
    desired, metrics = DesiredState(), Metrics()
    judge = Judge(desired, JudgingRules(SHIM), metrics)
    async with await connect("beckon-test", str(account.kubeconfig)) as api:
        listing = Listing(api, judge.cluster, (TOOLS, EVENT_TYPES), (namespace.namespace,), metrics)
        await listing.read_all()
        namespace.run("delete", "eventtype", "gone")
        apply(namespace, event_type("new"), event_type("there", {"description": "Better."}))

        await listing.compare_all()

    found = {one.name: one.resource.spec["description"] for one in judge.cluster.objects_of(EVENT_TYPES)}
    assert found == {"there": "Better.", "new": "The weather."}
    assert b'beckon_operator_missed_total{kind="eventtypes"} 3.0' in metrics.to_text()


def test_a_frozen_operator_leaves_no_ghost_for_longer_than_a_minute(frozen: Frozen) -> None:
    running, namespace = frozen.running, frozen.namespace
    frozen.wake()

    # Kubernetes collects the Tool of an EventType that is gone; who still believes in it makes it again.
    believed = 'beckon_operator_tools{ready="False",reason="NoTrigger"}'
    until(lambda: running.metric(believed) == 1, within=60, what="the end of the ghost")
    until(lambda: namespace.find("tool", "ghost") is None, what="the end of its Tool")
    apply(namespace, event_type("after"))
    becomes(namespace, "Ready", "NoTrigger", "after")
