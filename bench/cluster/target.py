"""Which cluster is measured: the one that KUBECONFIG names, else the one that `make cluster` started."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.images.building import built_images
from tests.cluster.kube import Kube
from tests.cluster.machine import images
from tests.cluster.machine.commands import ClusterError
from tests.cluster.machine.places import Places, places


class NoCluster(Exception):
    """There is nothing to measure on; the message says what to do."""


def find_cluster() -> Kube:
    """Return the cluster, with Beckon's images; raise `NoCluster` where none answers."""
    local = places()
    kubeconfig = Path(os.environ.get("KUBECONFIG") or local.kubeconfig)
    kubectl = local.kubectl if local.kubectl.exists() else Path(shutil.which("kubectl") or "")
    if not kubectl.is_file():
        raise NoCluster("there is no kubectl; install it, or run `make cluster`")
    if not kubeconfig.is_file():
        raise NoCluster("there is no cluster; run `make cluster`, or set KUBECONFIG to the file of another")
    kube = Kube(kubectl, kubeconfig)
    answer = kube.attempt("get", "--raw", "/version", timeout=20)
    if answer.returncode != 0:
        raise NoCluster(f"the cluster of {kubeconfig} does not answer: {answer.stderr.strip()}")
    if kubeconfig == local.kubeconfig:
        _load_images(local)
    return kube


def _load_images(local: Places) -> None:
    """Make Beckon's images known to the node; another cluster pulls them."""
    try:
        for archive in built_images(local).values():
            images.load(local, archive)
    except ClusterError as error:
        raise NoCluster(str(error)) from None


@contextmanager
def namespace(kube: Kube, name: str) -> Iterator[Kube]:
    """Make a namespace, and remove it with everything in it; one left by an earlier run goes first."""
    _remove(kube, name)
    kube.run("create", "namespace", name)
    try:
        yield kube.within(name)
    finally:
        _remove(kube, name)


def _remove(kube: Kube, name: str) -> None:
    kube.run("delete", "namespace", name, "--ignore-not-found", "--timeout=600s", timeout=620)


def service_address(kube: Kube, name: str) -> str:
    """Return a Service's address inside the cluster, which a node of it reaches too."""
    return str(kube.get("service", name)["spec"]["clusterIP"])


def ready_pods(kube: Kube, selector: str) -> dict[str, str]:
    """Return the uids of the running pods with these labels by their names."""
    pods = [pod for pod in kube.list_objects("pods", selector) if pod["status"]["phase"] == "Running"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}
