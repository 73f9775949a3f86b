"""The chart's NetworkPolicies on a network that enforces them: who reaches what, and calls still pass."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.images.inputs import reference
from tests.cluster.install.releases import RELEASE, SMALL, Helm
from tests.cluster.kube import Kube, until
from tests.cluster.machine.places import places
from tests.cluster.machine.policy_engine import enforced
from tests.cluster.platform import NAMESPACE

pytestmark = pytest.mark.timeout(600)

MONITORING = "monitoring"
STRANGER = "stranger"
AGENT, METRICS = f"beckon-agent.{NAMESPACE}:80", f"beckon-agent.{NAMESPACE}:9090"
CALLS, REPLIES = f"beckon-shim.{NAMESPACE}:80", f"beckon-shim-replies.{NAMESPACE}:80"
MODEL, API_SERVER = f"beckon-demo-model.{NAMESPACE}:80", "kubernetes.default:443"
CONNECT = """
import json, socket, sys
def is_open(address):
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return False
    return True
print(json.dumps({address: is_open(address) for address in sys.argv[1:]}))
"""


def connect(kube: Kube, pod: str, *addresses: str) -> dict[str, bool]:
    """Return which addresses take a connection of a pod."""
    said = kube.run("exec", pod, "--", "python", "-c", CONNECT, *addresses)
    found: dict[str, bool] = json.loads(said)
    return found


@contextmanager
def waiting_pod(kube: Kube) -> Iterator[None]:
    """A pod that does nothing, with Python."""
    command = ("--command", "--", "python", "-c", "import time; time.sleep(3600)")
    kube.run("run", STRANGER, f"--image={reference('tools')}", *command)
    try:
        kube.wait(f"pod/{STRANGER}", timeout=60)
        yield
    finally:
        kube.run("delete", "pod", STRANGER, "--now", "--ignore-not-found")


@pytest.fixture(scope="module")
def release(helm: Helm) -> Iterator[Helm]:
    """The chart, and a pod of others in two namespaces."""
    if places().kubeconfig != helm.kube.kubeconfig:
        pytest.skip("policies are enforced on the cluster of `make cluster` alone")
    helm.install(SMALL)
    helm.kube.run("create", "namespace", MONITORING)
    with waiting_pod(helm.kube), waiting_pod(helm.kube.within(MONITORING)):
        yield helm
    helm.remove()
    helm.kube.run("delete", "namespace", MONITORING, "--timeout=180s", timeout=190)


@pytest.fixture(scope="module")
def policed(release: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """The release on a network that enforces its policies."""
    # Without this, each test below would pass on a cluster where nothing connects.
    everywhere = connect(release.kube, f"pod/{STRANGER}", AGENT, METRICS, CALLS, REPLIES, MODEL)
    assert all(everywhere.values()), everywhere
    with enforced(places(), tmp_path_factory.mktemp("engine") / "log"):
        until(
            lambda: not connect(release.kube, f"pod/{STRANGER}", METRICS)[METRICS],
            within=60,
            what="policies in force",
        )
        yield release


def test_a_pod_of_others_reaches_the_agent_and_the_door_for_replies_alone(policed: Helm) -> None:
    found = connect(policed.kube, f"pod/{STRANGER}", AGENT, METRICS, CALLS, REPLIES, MODEL)

    assert found == {AGENT: True, METRICS: False, CALLS: False, REPLIES: True, MODEL: False}


def test_the_metrics_of_the_agent_are_for_the_namespace_monitoring(policed: Helm) -> None:
    found = connect(policed.kube.within(MONITORING), f"pod/{STRANGER}", AGENT, METRICS, CALLS)

    assert found == {AGENT: True, METRICS: True, CALLS: False}


def test_each_component_reaches_what_it_needs_alone(policed: Helm) -> None:
    home = policed.kube.within(NAMESPACE)

    agent = connect(home, "deployment/beckon-agent", CALLS, MODEL, API_SERVER)
    model = connect(home, "deployment/beckon-demo-model", AGENT, CALLS, API_SERVER)

    assert agent == {CALLS: True, MODEL: True, API_SERVER: True}
    assert model == {AGENT: False, CALLS: False, API_SERVER: False}


def test_a_real_call_passes(policed: Helm) -> None:
    assert "Succeeded" in policed.run("test", RELEASE, "--timeout=4m")
