"""Replicas of the shim that are killed and rolled, and Brokers that restart, while calls go through them."""

import json
from collections.abc import Callable

import pytest

from tests.cluster.kube import Kube, until
from tests.cluster.shim.load import Load, load
from tests.cluster.shim.stack import shims

pytestmark = pytest.mark.timeout(400)

WORKERS = 24
WAIT = 20.0
# What the slowest call of the tool takes, and a busy machine.
QUICK = 5.0


Act = Callable[[Load], object]


def whole(kube: Kube) -> None:
    """Wait until three replicas are there again."""
    kube.run("rollout", "status", "deployment/beckon-shim", "--timeout=120s", timeout=130)


def during(kube: Kube, act: Act, client: str = "plain") -> Load:
    """Return what came of calls while something was done.

    Once more where Eventing's own pods restarted by themselves: a busy machine is slow to answer
    their probes, and what their channel held is lost.
    """
    for _ in range(3):
        before = restarts(kube)
        with load(kube, workers=WORKERS, wait=WAIT, client=client) as found:
            act(found)
        whole(kube)
        if restarts(kube) == before:
            break
    return found


def restarts(kube: Kube) -> int:
    """Return how often containers of Eventing have begun again."""
    pods = kube.within("knative-eventing").list_objects("pods")
    return sum(one["restartCount"] for pod in pods for one in pod["status"].get("containerStatuses", ()))


def go_on(found: Load) -> None:
    """Let calls go on for a while."""
    found.go_on(4 * WORKERS)


def test_calls_through_three_replicas_and_one_trigger_are_all_answered(shim: Kube) -> None:
    assert len(shims(shim)) == 3
    found = during(shim, go_on)

    assert found.failed() == {}, found.samples
    replies = {pod: metric(shim, pod, 'beckon_shim_replies_total{outcome="answered"}') for pod in shims(shim)}
    assert replies == {
        pod: metric(shim, pod, 'beckon_shim_calls_total{outcome="replied"}') for pod in replies
    }
    # The Broker brings a reply to whichever replica the Service chooses.
    assert sum(metric(shim, pod, 'beckon_shim_replies_total{outcome="forwarded"}') for pod in replies) > 0


def test_a_killed_replica_costs_the_calls_that_waited_in_it_and_no_other(shim: Kube) -> None:
    def killing(found: Load) -> None:
        kill(shim, shims(shim)[0])
        go_on(found)

    found = during(shim, killing)

    assert set(found.failed()) == {"lost"}, found.samples
    assert found.failed()["lost"] <= WORKERS
    assert found.longest["lost"] < QUICK
    assert found.longest["answered"] < WAIT


def test_the_agent_has_every_call_answered_although_a_replica_was_killed(shim: Kube) -> None:
    """The calls are of an idempotent tool; others that were posted wait for a late reply, in a stored run."""

    def killing(found: Load) -> None:
        kill(shim, shims(shim)[0])
        go_on(found)

    found = during(shim, killing, "agent")

    assert found.failed() == {}, found.samples


@pytest.mark.parametrize("client", ["plain", "agent"])
def test_a_rollout_costs_no_call(shim: Kube, client: str) -> None:
    def rolling(found: Load) -> None:
        before = set(shims(shim))
        shim.run("rollout", "restart", "deployment/beckon-shim")
        whole(shim)
        until(lambda: not before & set(shims(shim)), what="the new replicas")
        go_on(found)

    found = during(shim, rolling, client)

    assert found.failed() == {}, found.samples


def test_while_the_brokers_pods_restart_no_call_hangs_and_none_gets_anothers_answer(shim: Kube) -> None:
    eventing = shim.within("knative-eventing")
    with load(shim, workers=WORKERS, wait=WAIT, client="plain") as found:
        for name in ("mt-broker-ingress", "mt-broker-filter", "imc-dispatcher"):
            eventing.run("rollout", "restart", f"deployment/{name}")
            eventing.run("rollout", "status", f"deployment/{name}", "--timeout=120s", timeout=130)

    # A channel in memory loses what it holds, so a call may end at its deadline; never later.
    ends = {"504 timeout", "504 outcome-unknown", "502 undeliverable", "503 broker-busy"}
    assert set(found.failed()) <= ends, found.samples
    assert max(found.longest.values()) < WAIT + QUICK
    assert found.answered > WORKERS

    after = during(shim, go_on)
    assert after.failed() == {}, after.samples


def test_a_trigger_of_the_same_calls_that_goes_costs_no_call(shim: Kube) -> None:
    """Knative goes on to deliver to it for a moment, finds it gone, and dead-letters the call."""

    def coming_and_going(found: Load) -> None:
        for _ in range(3):
            shim.apply(beside(shim.namespace))
            shim.wait("trigger/beside")
            found.go_on(WORKERS)
            shim.run("delete", "trigger", "beside")
            found.go_on(WORKERS)

    found = during(shim, coming_and_going)

    assert found.failed() == {}, found.samples


def test_a_broker_that_is_deleted_is_unknown_at_once(shim: Kube) -> None:
    shim.apply(SECOND_BROKER)
    until(lambda: status(shim, "second") == 504, what="the new Broker")
    shim.run("delete", "broker", "second")
    until(lambda: status(shim, "second") == 404, what="its end")


def kill(kube: Kube, pod: str) -> None:
    """End a replica without letting it do anything, and its pod with it.

    Deleting the pod alone, forced or not, signals the process first, and it drains.
    """
    kube.attempt("exec", pod, "--", "python", "-c", KILL)
    kube.run("delete", "pod", pod, "--grace-period=0", "--force")


def metric(kube: Kube, pod: str, line: str) -> float:
    """Return a number that a replica reports of itself."""
    text = inside(
        kube,
        pod,
        "import urllib.request as u; print(u.urlopen('http://localhost:8083/metrics').read().decode())",
    )
    values = [row.rpartition(" ")[2] for row in text.splitlines() if row.rpartition(" ")[0] == line]
    return float(values[0]) if values else 0.0


def status(kube: Kube, broker: str) -> int:
    """Return what the shim answers to a call that no one takes."""
    return int(inside(kube, "deployment/caller", CALL.format(namespace=kube.namespace, broker=broker)))


def inside(kube: Kube, pod: str, code: str) -> str:
    return kube.run("exec", pod, "--", "python", "-c", code)


KILL = """
import os, pathlib
for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if b"-m\\0beckon_shim" in file.read_bytes():
        os.kill(int(file.parent.name), 9)
"""
SECOND_BROKER = """
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata:
  name: second
"""


def beside(namespace: str) -> str:
    """Return a second Trigger of the echo tool's calls, to a service that takes and never answers them."""
    replies = f"http://beckon-shim-replies.{namespace}.svc.cluster.local"
    spec = {
        "broker": "default",
        "filter": {"attributes": {"type": "echo"}},
        "subscriber": {"uri": f"{replies}/replies"},
        "delivery": {"retry": 0, "deadLetterSink": {"uri": f"{replies}/dead-letters"}},
    }
    trigger = {"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "beside"}}
    return json.dumps({**trigger, "spec": spec})


CALL = """
import urllib.request, urllib.error
from pathlib import Path
from beckon_agent.tool_calls.broker import ReplyKeys
path = "/{namespace}/{broker}"
headers = {{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/t", "ce-type": "t", "prefer": "wait=0.2",
    "content-type": "application/json"}}
raw = [(name.encode(), value.encode()) for name, value in headers.items()]
headers["authorization"] = ReplyKeys(path=Path("/secret/keys")).sign_call(path, raw, b"{{}}")
try:
    print(urllib.request.urlopen(urllib.request.Request(
        "http://beckon-shim" + path, data=b"{{}}", headers=headers)).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
