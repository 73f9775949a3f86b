"""The start of the cluster, step by step."""

import json
from pathlib import Path

from tests.cluster.machine import (
    certificates,
    cgroups,
    cleanup,
    containerd,
    daemons,
    images,
    knative,
    kubernetes,
    network,
    node_images,
    packages,
    programs,
    volumes,
)
from tests.cluster.machine.commands import ClusterError, Step, say
from tests.cluster.machine.locks import alone
from tests.cluster.machine.places import Places

HERE = Path(__file__).resolve().parent
PROPER_NAMES = {
    "kubernetes": "Kubernetes",
    "coredns": "CoreDNS",
    "metrics-server": "metrics-server",
    "cert-manager": "cert-manager",
    "eventing": "Knative Eventing",
    "serving": "Knative Serving",
    "helm": "Helm",
}


def up(places: Places) -> None:
    """Start a cluster where none runs, removing first what a former one left; return when all of it is ready.

    Raises `ClusterError` in every case that leaves no whole cluster.
    """
    packages.require_root()
    with alone(places):
        start(places)


def start(places: Places) -> None:
    """Start a cluster unless it runs."""
    if running(places):
        say("cluster: it is running already")
        report(places)
        return
    packages.install()
    programs.build_all(places, programs.for_cluster())
    if left := cleanup.traces(places):
        say(f"former cluster: found {', '.join(left)}")
        say(f"former cluster: removed {cleanup.clean(places)}")
    refuse_another_cluster()
    places.claim()
    start_kubernetes(places)
    start_knative(places)
    places.ready.write_text(
        json.dumps({PROPER_NAMES[product]: programs.release(product) for product in PROPER_NAMES})
    )
    report(places)


def start_kubernetes(places: Places) -> None:
    """A node that is ready for pods, with the images it needs for itself and the cluster's DNS."""
    certificates.write(places.certificates)
    network.create(places)
    with Step("kubernetes: API server ready"):
        kubernetes.start_control_plane(places)
    with Step("containerd: ready"):
        containerd.start(places, network.configure_pods(places))
        images.load_built(places, [*node_images.basic(places), node_images.nats(places)])
    with Step("kubernetes: node ready"):
        kubernetes.start_node(places)
        volumes.create(places)
    with Step("coredns: ready"):
        kubernetes.kubectl(places, "create", "-f", HERE / "coredns.yaml")
        kubernetes.wait_for_deployments(places, "kube-system")
    kubernetes.kubectl(places, "create", "-f", HERE / "metrics-server.yaml")
    module = programs.source("cert-manager", f"{programs.PRODUCTS['cert-manager']}/pkg/controller")
    for kinds in sorted(module.glob("deploy/crds/*.yaml")):
        kubernetes.kubectl(places, "create", "-f", kinds)
    kubernetes.kubectl(places, "create", "-f", HERE / "cert-manager.yaml")


def start_knative(places: Places) -> None:
    """Eventing, Serving and Serving's ingress; their pods need the DNS to be there first."""
    for product in ("eventing", "serving"):
        with Step(f"knative {product}: images loaded"):
            images.load_built(places, node_images.knative(places, product))
        knative.create(places, product)
    with Step("knative ingress: image loaded"):
        images.load_built(places, [node_images.ingress(places)])
    kubernetes.kubectl(places, "create", "-f", HERE / "ingress" / "ingress.yaml")
    for namespace in ("knative-eventing", "knative-serving", "kingress", "cert-manager", "kube-system"):
        with Step(f"{namespace}: all pods ready"):
            kubernetes.wait_for_deployments(places, namespace)
    for product in ("eventing", "serving"):
        knative.create_own_kinds(places, product)


def running(places: Places) -> bool:
    """Whether a cluster is fully started and every part of it is alive."""
    return (
        places.ready.exists()
        and all(daemons.alive(places, name) for name in daemons.names(places))
        and kubernetes.answers(places)
    )


def refuse_another_cluster() -> None:
    """Two kubelets on one machine undo each other's work."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            # A process that ended but was not waited for has a name still, and no command line.
            name = path.read_text().strip() if path.with_name("cmdline").read_bytes() else ""
        except OSError:
            continue
        if name in ("kubelet", "kube-proxy") and not cgroups.owns(int(path.parent.name)):
            raise ClusterError(
                f"another {name} (process {path.parent.name}) runs on this machine: test on that cluster "
                "by setting KUBECONFIG, or end it first"
            )


def report(places: Places) -> None:
    """Print how to use the cluster."""
    versions = json.loads(places.ready.read_text())
    say("\ncluster: ready: " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    say(environment(places))
    say("next: `make test-cluster`, or `kubectl get pods --all-namespaces`; the end: `make cluster-down`")


def environment(places: Places) -> str:
    """The lines that a shell needs to use this cluster and its kubectl and helm."""
    return (
        f"export KUBECONFIG={places.kubeconfig}\n"
        f'export PATH="{places.kubectl.parent}:{places.helm.parent}:$PATH"'
    )
