"""Beckon in a benchmark's namespace: the manifests of `deploy/`, moved there.

The webhook is left out, since every EventType here carries its parameters in the annotation. One replica of
each component is enough, and NATS stores its files in the pod. Nothing else is changed.
"""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.cluster.kube import Kube

CALLS = frozenset(("operator", "shim"))
"""The components that a call needs."""

BROKER_CLASS = frozenset(("broker", "broker-ingress", "broker-dispatcher", "nats"))
"""The components of Brokers of the class Beckon."""

Manifest = dict[str, Any]

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_KINDS = frozenset(
    (
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ConfigMap", "Service", "Deployment", "StatefulSet"),
    )
)
# What is not in the namespace is not removed with it.
_LABEL = "bench.beckon.dev"
_HOSTS = ".beckon.svc.cluster.local"


class AnotherOperator(Exception):
    """Beckon is installed already, and its operator would write the same objects."""


def refuse_another_operator(kube: Kube) -> None:
    """Raise `AnotherOperator` where one runs."""
    labels = "app.kubernetes.io/name=beckon,app.kubernetes.io/component=operator"
    found = kube.list_objects("deployments", labels, everywhere=True)
    for deployment in found:
        where, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        if deployment["spec"].get("replicas", 1) and where != kube.namespace:
            raise AnotherOperator(
                f"the operator of namespace {where} would do this one's work too; stop it first: "
                f"kubectl -n {where} scale deployment {name} --replicas=0"
            )


def install(
    kube: Kube, components: Set[str], settings: Mapping[str, str], stopped: Set[str] = frozenset()
) -> None:
    """Make these components, with these environment variables; `scale` starts those that are `stopped`."""
    for name in ("200-crd-tool.yaml", "201-crd-agent.yaml"):
        kube.apply(_DEPLOY / name)
    own = {
        "BECKON_NAMESPACES": kube.namespace,
        "BECKON_AGENT_NAMESPACE": kube.namespace,
        "BECKON_LOG_LEVEL": "warning",
        **settings,
    }
    kube.apply(listed([_moved(found, kube.namespace, own, stopped) for found in _manifests(components)]))


def wait_until_available(kube: Kube, components: Set[str]) -> None:
    """Wait until these components have their pods."""
    kinds = {"nats": "statefulset"}
    for name in sorted(components - {"broker"}):
        what = f"{kinds.get(name, 'deployment')}/beckon-{name}"
        kube.run("rollout", "status", what, "--timeout=180s", timeout=190)


def uninstall(kube: Kube) -> None:
    """Remove what is in no namespace; the CRDs stay, for they may be another's."""
    kube.run("delete", "clusterroles,clusterrolebindings", "--selector", _LABEL, "--ignore-not-found")


def replies_url(kube: Kube) -> str:
    """Where the Brokers send replies and dead letters."""
    return f"http://beckon-shim-replies.{kube.namespace}.svc.cluster.local"


def scale(kube: Kube, component: str, replicas: int) -> None:
    """Start or stop a component; it returns at once for a start, and when all have gone for a stop."""
    kube.run("scale", f"deployment/beckon-{component}", f"--replicas={replicas}")
    if not replicas:
        labels = f"app.kubernetes.io/name=beckon,app.kubernetes.io/component={component}"
        kube.run("wait", "pods", "--selector", labels, "--for=delete", "--timeout=120s", timeout=130)


def listed(manifests: list[Manifest]) -> str:
    """Return manifests as one document for kubectl."""
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}).decode()


def _manifests(components: Set[str]) -> Iterator[Manifest]:
    for path in (*sorted(_DEPLOY.glob("[3-5]*.yaml")), *sorted(_DEPLOY.glob("broker-class/[3-5]*.yaml"))):
        for found in yaml.safe_load_all(path.read_text()):
            component = found["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            if component in components and found["kind"] in _KINDS:
                yield found


def _moved(found: Manifest, namespace: str, settings: Mapping[str, str], stopped: Set[str]) -> Manifest:
    moved: Manifest = _in_namespace(found, namespace)
    component = moved["metadata"]["labels"]["app.kubernetes.io/component"]
    moved["metadata"]["labels"][_LABEL] = namespace
    if found["kind"].startswith("Cluster"):
        moved["metadata"]["name"] += f"-{namespace}"
        del moved["metadata"]["labels"]["app.kubernetes.io/component"]
    if moved.get("roleRef", {}).get("kind") == "ClusterRole":
        moved["roleRef"]["name"] += f"-{namespace}"
    if found["kind"] in ("Deployment", "StatefulSet"):
        moved["spec"]["replicas"] = 0 if component in stopped else 1
        pod = moved["spec"]["template"]["spec"]
        for container in pod["containers"]:
            container["env"] = _set(container.get("env", []), settings)
        for claim in moved["spec"].pop("volumeClaimTemplates", ()):
            pod["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
    return moved


def _in_namespace(value: Any, namespace: str) -> Any:
    """Return a part of a manifest with every namespace in it replaced, in the names of hosts as well."""
    if isinstance(value, list):
        return [_in_namespace(item, namespace) for item in value]
    if isinstance(value, dict):
        return {
            name: namespace if name == "namespace" else _in_namespace(item, namespace)
            for name, item in value.items()
        }
    if isinstance(value, str):
        return value.replace(_HOSTS, f".{namespace}.svc.cluster.local")
    return value


def _set(variables: list[Manifest], settings: Mapping[str, str]) -> list[Manifest]:
    """Return a container's variables with ours in place of those of the same name."""
    others = [variable for variable in variables if variable["name"] not in settings]
    return [*others, *({"name": name, "value": value} for name, value in settings.items())]
