"""Beckon in the benchmark's namespace: the manifests of `deploy/`, moved there.

The webhook is left out, since every EventType here carries its parameters in the
annotation; and one replica of shim and agent is enough. Nothing else is changed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.catalog.manifests import Manifest, listed
from tests.cluster.kube import Kube

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_COMPONENTS = frozenset(("operator", "shim", "agent"))
_KINDS = frozenset(
    ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service", "Deployment")
)
# What is not in the namespace is not removed with it.
_LABEL = "bench.beckon.dev"
_SUFFIX = "-bench-catalog"


class AnotherOperator(Exception):
    """Beckon is installed already, and its operator would write the same Tools."""


def refuse_another_operator(kube: Kube) -> None:
    """Raise `AnotherOperator` where one runs."""
    labels = "app.kubernetes.io/name=beckon,app.kubernetes.io/component=operator"
    found = kube.get("deployments", "--all-namespaces", "--selector", labels)["items"]
    for deployment in found:
        where, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        if deployment["spec"].get("replicas", 1) and where != kube.namespace:
            raise AnotherOperator(
                f"the operator of namespace {where} would do this one's work too; stop it first: "
                f"kubectl -n {where} scale deployment {name} --replicas=0"
            )


def install(kube: Kube, model_url: str) -> None:
    """Make everything but the pods of operator and agent, which `scale` starts."""
    for name in ("200-crd-tool.yaml", "201-crd-agent.yaml"):
        kube.apply(_DEPLOY / name)
    settings = {
        "BECKON_OPERATOR_REPLIES_URL": replies_url(kube),
        "BECKON_NAMESPACES": kube.namespace,
        "BECKON_AGENT_NAMESPACE": kube.namespace,
        "BECKON_SHIM_URL": f"http://beckon-shim.{kube.namespace}.svc.cluster.local",
        "OPENAI_BASE_URL": model_url,
        "BECKON_LOG_LEVEL": "warning",
        "BECKON_ANONYMOUS": "true",
    }
    kube.apply(listed([_moved(found, kube.namespace, settings) for found in _manifests()]))


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


def _manifests() -> Iterator[Manifest]:
    for path in sorted(_DEPLOY.glob("[3-5]*.yaml")):
        for found in yaml.safe_load_all(path.read_text()):
            component = found["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            if component in _COMPONENTS and found["kind"] in _KINDS:
                yield found


def _moved(found: Manifest, namespace: str, settings: Mapping[str, str]) -> Manifest:
    moved: Manifest = _in_namespace(found, namespace)
    moved["metadata"]["labels"][_LABEL] = "catalog"
    if found["kind"].startswith("Cluster"):
        moved["metadata"]["name"] += _SUFFIX
        del moved["metadata"]["labels"]["app.kubernetes.io/component"]
    if moved.get("roleRef", {}).get("kind") == "ClusterRole":
        moved["roleRef"]["name"] += _SUFFIX
    if found["kind"] == "Deployment":
        moved["spec"]["replicas"] = 1 if found["metadata"]["name"] == "beckon-shim" else 0
        for container in moved["spec"]["template"]["spec"]["containers"]:
            container["env"] = _set(container["env"], settings)
    return moved


def _in_namespace(value: Any, namespace: str) -> Any:
    """Return a part of a manifest with every namespace in it replaced."""
    if isinstance(value, list):
        return [_in_namespace(item, namespace) for item in value]
    if isinstance(value, dict):
        return {
            name: namespace if name == "namespace" else _in_namespace(item, namespace)
            for name, item in value.items()
        }
    return value


def _set(variables: list[Manifest], settings: Mapping[str, str]) -> list[Manifest]:
    """Return a container's variables with ours in place of those of the same name."""
    kept = [variable for variable in variables if variable["name"] not in settings]
    return [*kept, *({"name": name, "value": value} for name, value in settings.items())]
