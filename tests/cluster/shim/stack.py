"""A shim, a Broker, an echo tool and a caller, in a namespace of their own."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.images.inputs import reference
from tests.cluster.kube import Kube

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parents[2] / "deploy"
TOOLS_IMAGE = reference("tools")
AGENT_IMAGE = reference("agent")
SHIM = "app.kubernetes.io/component=shim"

Manifest = dict[str, Any]


@contextmanager
def stacked(kube: Kube, replicas: int) -> Iterator[Kube]:
    """Make a namespace with all of it, working, and remove it at the end."""
    name = f"t-sh-{secrets.token_hex(3)}"
    kube.run("create", "namespace", name)
    within = kube.within(name)
    try:
        within.apply(stack(name, replicas))
        _wait_until_it_works(within)
        yield within
    finally:
        kube.run("delete", "namespace", name, "--wait=false")


def stack(namespace: str, replicas: int) -> str:
    """Return all of it as YAML."""
    documents = [*_shim(namespace, replicas), *_eventing(namespace), *_echo(), *_caller()]
    return yaml.safe_dump_all(documents)


def _shim(namespace: str, replicas: int) -> Iterator[Manifest]:
    """Return the shim as it is installed, moved to this namespace; its rights reach no further."""
    for file in sorted(DEPLOY.glob("[35]??-*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if _is_of_the_shim(document):
                yield _moved(document, namespace, replicas)
    keys = {"keys": secrets.token_hex(32)}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "beckon-shim-keys"}, "stringData": keys}


def _is_of_the_shim(document: Manifest) -> bool:
    labels = document["metadata"].get("labels", {})
    kinds = {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Deployment",
        "Service",
    }
    return labels.get("app.kubernetes.io/component") == "shim" and document["kind"] in kinds


def _moved(document: Manifest, namespace: str, replicas: int) -> Manifest:
    document["metadata"]["namespace"] = namespace
    if document["kind"].startswith("ClusterRole"):
        document["kind"] = document["kind"].removeprefix("Cluster")
        document["metadata"]["name"] += "-brokers"
        if "roleRef" in document:
            document["roleRef"] |= {"kind": "Role", "name": document["roleRef"]["name"] + "-brokers"}
    for subject in document.get("subjects", ()):
        subject["namespace"] = namespace
    if document["kind"] == "Deployment":
        document["spec"]["replicas"] = replicas
        pod = document["spec"]["template"]["spec"]
        pod["shareProcessNamespace"] = True  # or no signal reaches the first process of a container
        (container,) = pod["containers"]
        container["env"].append({"name": "BECKON_SHIM_NAMESPACES", "value": namespace})
        container["resources"]["requests"] = {"cpu": "5m", "memory": "64Mi"}
    return document


def _eventing(namespace: str) -> Iterator[Manifest]:
    replies = f"http://beckon-shim-replies.{namespace}.svc.cluster.local"
    delivery = {
        "retry": 3,
        "backoffPolicy": "exponential",
        "backoffDelay": "PT0.2S",
        "deadLetterSink": {"uri": f"{replies}/dead-letters"},
    }
    yield {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": "default"},
        "spec": {"delivery": delivery},
    }
    yield _trigger("beckon-replies", {"replyid": ""}, {"uri": f"{replies}/replies"})
    yield _trigger("echo", {"type": "echo"}, {"ref": {"apiVersion": "v1", "kind": "Service", "name": "echo"}})


def _trigger(name: str, attributes: Manifest, subscriber: Manifest) -> Manifest:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": name},
        "spec": {"broker": "default", "filter": {"attributes": attributes}, "subscriber": subscriber},
    }


def _echo() -> Iterator[Manifest]:
    container = {
        "name": "echo",
        "image": TOOLS_IMAGE,
        "command": ["python", "-m", "beckon_tools", "serve", "echo:echo", "--host=0.0.0.0"],
        "env": [{"name": "PYTHONPATH", "value": "/given"}],
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
    }
    yield from _given("echo", "echo.py", container)
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "echo"},
        "spec": {"selector": {"app": "echo"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def _caller() -> Iterator[Manifest]:
    container = {"name": "caller", "image": AGENT_IMAGE, "command": ["sleep", "infinity"]}
    yield from _given("caller", "caller.py", container, secret="beckon-shim-keys")


def _given(name: str, file: str, container: Manifest, secret: str = "") -> Iterator[Manifest]:
    """Return a Deployment of one replica whose container finds a file of these tests in /given.

    Where a Secret is named, it is found in /secret.
    """
    whole: Manifest = {
        **container,
        "imagePullPolicy": "IfNotPresent",
        "volumeMounts": [{"name": "given", "mountPath": "/given"}],
        "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}},
    }
    pod: Manifest = {
        "terminationGracePeriodSeconds": 0,
        "containers": [whole],
        "volumes": [{"name": "given", "configMap": {"name": name}}],
    }
    if secret:
        whole["volumeMounts"].append({"name": "secret", "mountPath": "/secret"})
        pod["volumes"].append({"name": "secret", "secret": {"secretName": secret}})
    labels = {"app": name}
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {file: (HERE / "given" / file).read_text()},
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _wait_until_it_works(kube: Kube) -> None:
    """Wait until every part of it is ready."""
    for deployment in ("beckon-shim", "echo", "caller"):
        kube.run("rollout", "status", f"deployment/{deployment}", "--timeout=120s", timeout=130)
    for resource in ("broker/default", "trigger/beckon-replies", "trigger/echo"):
        kube.wait(resource)


def shims(kube: Kube) -> list[str]:
    """Return the names of the shim's pods that are not going."""
    pods = kube.list_objects("pods", SHIM)
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
