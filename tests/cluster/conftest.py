"""What every test on a cluster needs: the cluster, and a namespace of its own."""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.chart.charts import Chart
from tests.cluster.kube import Kube, until
from tests.cluster.machine import programs
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, ROOT, Forward, Platform, wait_until_installed


@pytest.fixture(scope="session")
def kube() -> Kube:
    """The cluster that KUBECONFIG names; `make test-cluster` starts one where there is none."""
    kubeconfig, kubectl = os.environ.get("KUBECONFIG"), shutil.which("kubectl")
    if not kubeconfig or not kubectl:
        pytest.fail("set KUBECONFIG and have kubectl on the PATH, or run `make test-cluster`")
    return Kube(Path(kubectl), Path(kubeconfig))


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart, rendered by the Helm that installs it."""
    return Chart(programs.build(places(), "helm") / "helm")


@pytest.fixture
def namespace(kube: Kube) -> Iterator[Kube]:
    """A fresh namespace, gone after the test."""
    name = f"t-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    yield kube.within(name)
    kube.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def broker(namespace: Kube) -> Kube:
    """A fresh namespace with a Broker `default` that takes events."""
    namespace.apply(BROKER)
    namespace.wait("broker/default")
    until(lambda: _address(namespace), what="the Broker's address")
    return namespace


@pytest.fixture(scope="session")
def platform(kube: Kube) -> Iterator[Platform]:
    """Beckon, installed from the plain manifests if it is not there yet; the tools are in `default`."""
    if kube.within(NAMESPACE).find("deployment", "beckon-agent") is None:
        # In no namespace of kubectl's own: each object has its.
        kube.within("").run("apply", "-k", str(ROOT / "deploy"))
    wait_until_installed(kube)
    forward = Forward(kube.within(NAMESPACE), "service/beckon-agent", 80)
    yield Platform(kube, forward)
    forward.close()


BROKER = """
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata:
  name: default
"""


def _address(namespace: Kube) -> str:
    status = namespace.get("broker", "default").get("status", {})
    return str(status.get("address", {}).get("url") or "")
