"""The rights that the operator is installed with, lent to a process of this machine."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.kube import Kube
from tests.cluster.platform import ROOT
from tests.cluster.policies import installed, move_policy

ROLES = {
    "operator": ROOT / "deploy" / "310-roles-operator.yaml",
    "broker": ROOT / "deploy" / "315-roles-broker.yaml",
}
_IN = "beckon"


@dataclass(frozen=True)
class Account:
    """A ServiceAccount in a namespace of its own, with the roles of an installed component."""

    home: Kube
    kubeconfig: Path
    component: str = "operator"

    @property
    def user(self) -> str:
        """The name that the API server knows it by."""
        return f"system:serviceaccount:{self.home.namespace}:{self.component}"


def lend(home: Kube, folder: Path, component: str = "operator") -> Account:
    """Make the account in a namespace, and a kubeconfig with its token."""
    home.run("create", "serviceaccount", component)
    home.apply("---\n".join(yaml.safe_dump(document) for document in roles(home.namespace, component)))
    config: dict[str, Any] = json.loads(home.run("config", "view", "--raw", "--minify", "-o", "json"))
    token = home.run("create", "token", component, "--duration=4h").strip()
    config["users"] = [{"name": found["name"], "user": {"token": token}} for found in config["users"]]
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    return Account(home, kubeconfig, component)


def take_back(home: Kube, component: str = "operator") -> None:
    """Remove the roles that belong to no namespace."""
    for document in roles(home.namespace, component):
        if "namespace" not in document["metadata"]:
            home.run("delete", document["kind"], document["metadata"]["name"], "--ignore-not-found")


def roles(namespace: str, component: str = "operator") -> list[dict[str, Any]]:
    """Return the installed roles and policies under other names, for the account in a namespace."""
    text = ROLES[component].read_text(encoding="utf-8")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    for document in documents:
        metadata = document["metadata"]
        if "namespace" in metadata:
            metadata["namespace"] = namespace
        else:
            metadata["name"] = f"{namespace}-{metadata['name']}"
        if document["kind"] == "ClusterRoleBinding":
            document["roleRef"]["name"] = f"{namespace}-{document['roleRef']['name']}"
        for subject in document.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) == (f"beckon-{component}", _IN)
            subject |= {"name": component, "namespace": namespace}
    policies = (move_policy(one, namespace, component, f".{namespace}") for one in installed(component))
    return [*documents, *policies]


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
