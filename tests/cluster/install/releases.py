"""A release on the cluster: Helm with the cluster's kubeconfig, and what is left when it has gone."""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.chart.charts import CHART
from tests.cluster.kube import Kube, until
from tests.cluster.platform import DEPLOYMENTS, NAMESPACE

RELEASE = "beckon"
# Values for a node of two cores, of which Knative requests most: each pod more takes seconds to start.
SMALL: Mapping[str, object] = {name: {"replicas": 1} for name in ("agent", "shim", "operator", "webhook")}
# Written by the cluster itself, sooner or later, and gone with what they are about.
PASSING = {
    "events",
    "events.events.k8s.io",
    "endpointslices.discovery.k8s.io",
    "endpoints",
    "apiservices.apiregistration.k8s.io",
}
# What an uninstall leaves, as the chart's README says.
LEFT = {
    "Namespace /beckon",
    "Secret beckon/beckon-shim-keys",
    "Secret beckon/beckon-agent-keys",
    "Secret beckon/beckon-first-key",
    "Secret beckon/beckon-webhook-tls",
    "Lease beckon/beckon-operator",
    "CustomResourceDefinition /agents.beckon.dev",
    "CustomResourceDefinition /tools.beckon.dev",
}
# What the cluster puts into every namespace.
ORDINARY = {"ServiceAccount beckon/default", "ConfigMap beckon/kube-root-ca.crt"}
# The namespaces, and what is named after them, of tests that run beside.
OF_OTHERS = "t-"


@dataclass(frozen=True)
class Helm:
    """Helm, and the cluster that it installs into."""

    program: Path
    kube: Kube

    def environment(self) -> Mapping[str, str]:
        """Return the environment of a shell that has both on its path."""
        path = os.pathsep.join((str(self.program.parent), str(self.kube.kubectl.parent), os.environ["PATH"]))
        return {**self.kube.environment(), "PATH": path}

    def run(self, *arguments: str, values: Mapping[str, object] | None = None, timeout: float = 400) -> str:
        """Run Helm for the release's namespace and return what it printed."""
        words = [str(self.program), "--namespace", NAMESPACE, *arguments]
        if values is not None:
            words += ["--values", "-"]
        done = subprocess.run(
            words,
            input=json.dumps(values) if values is not None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=dict(self.environment()),
            check=False,
        )
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr or done.stdout}"
        return done.stdout

    def install(self, values: Mapping[str, object] | None = None) -> str:
        """Install the chart and wait until it is ready."""
        return self.run(
            "install",
            RELEASE,
            str(CHART),
            "--create-namespace",
            "--wait",
            "--timeout=5m",
            values=values or {},
        )

    def upgrade(self, values: Mapping[str, object]) -> str:
        """Upgrade the release to these values, and wait until the last pod is the new one."""
        return self.run("upgrade", RELEASE, str(CHART), "--wait", "--timeout=5m", values=values)

    def remove(self) -> None:
        """Remove the release and its namespace, and wait until both are gone.

        The pods get no time to end. While one is there, Kubernetes looks at a namespace again only after half
        of that time, which is 40 s for an agent.
        """
        self.run("uninstall", RELEASE, "--wait", "--timeout=5m", "--ignore-not-found")
        self.kube.within(NAMESPACE).run("delete", "pods", "--all", "--now", timeout=120)
        self.kube.run("delete", "namespace", NAMESPACE, "--timeout=180s", timeout=190)


def remains(kube: Kube, *kinds: str) -> set[str]:
    """Return every object of the cluster, or of these kinds, that is Beckon's by its name or namespace."""
    wanted = set(kinds) or {*kube.run("api-resources", "--verbs=list", "--output=name").split()} - PASSING
    text = kube.run(
        "get", ",".join(sorted(wanted)), "--all-namespaces", "--ignore-not-found", "-o", "json", timeout=180
    )
    found = set()
    for each in json.loads(text)["items"] if text.strip() else []:
        namespace, name = each["metadata"].get("namespace", ""), each["metadata"]["name"]
        ours = namespace == NAMESPACE or "beckon" in name
        if ours and not (namespace or name).startswith(OF_OTHERS):
            found.add(f"{each['kind']} {namespace}/{name}")
    return found - ORDINARY


def assert_remains(kube: Kube, wanted: set[str]) -> None:
    """Assert that soon exactly these objects of Beckon are left; pods take their time to end."""
    found: set[str] = set()

    def as_wanted() -> bool:
        nonlocal found
        found = remains(kube)
        return found == wanted

    with contextlib.suppress(AssertionError):
        until(as_wanted, within=120)
    assert found == wanted, f"too much: {sorted(found - wanted)}; missing: {sorted(wanted - found)}"


def restarts(kube: Kube) -> dict[str, int]:
    """Return how often the containers of Beckon's pods were started again; pods that go are left out."""
    pods = [
        pod
        for pod in kube.within(NAMESPACE).list_objects("pods")
        if "deletionTimestamp" not in pod["metadata"]
    ]
    return {
        pod["metadata"]["name"]: sum(
            each["restartCount"] for each in pod["status"].get("containerStatuses", [])
        )
        for pod in pods
    }


def logs(kube: Kube) -> dict[str, str]:
    """Return what the pods of each Deployment have logged."""
    within = kube.within(NAMESPACE)
    return {name: within.run("logs", f"deployment/{name}", "--all-pods", "--tail=-1") for name in DEPLOYMENTS}
