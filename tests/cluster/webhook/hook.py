"""A webhook of a test's own: that of `deploy/` in another namespace, called for that namespace alone."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509

from tests.cluster import policies
from tests.cluster.kube import Kube, until
from tests.cluster.platform import ROOT

SERVED = "eventtypes.v1beta2.eventing.knative.dev"
COPY = "beckon.dev/schema-data"
TEXT = '{"city": {"type": "string"}}'

_KINDS = {
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Secret",
    "Service",
    "Deployment",
    "MutatingWebhookConfiguration",
    *policies.KINDS,
}


def event_type(name: str, schema_data: str | None, version: str = "v1beta2") -> str:
    """Return the manifest of an EventType as JSON."""
    spec = {"type": name, "description": "Get the weather."}
    if schema_data is not None:
        spec["schemaData"] = schema_data
    return json.dumps(
        {
            "apiVersion": f"eventing.knative.dev/{version}",
            "kind": "EventType",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


@dataclass(frozen=True)
class Hook:
    """A webhook that serves the namespace that it is in.

    `name` is that of its cluster-wide objects, `manifest` what was applied.
    """

    kube: Kube
    name: str
    manifest: str

    def event_type(self, name: str) -> dict[str, Any]:
        """Return an EventType as it is stored."""
        return self.kube.get(SERVED, name)

    def copy(self, name: str) -> str | None:
        """Return the copy that an EventType carries."""
        copy: str | None = self.event_type(name)["metadata"].get("annotations", {}).get(COPY)
        return copy

    def until_erased(self, name: str) -> None:
        """Wait until Knative has taken `spec.schemaData` away."""
        until(lambda: "schemaData" not in self.event_type(name)["spec"], what="the loss of schemaData")

    def secret(self) -> dict[str, bytes]:
        """Return what the webhook's Secret holds."""
        data = (self.kube.find("secret", "beckon-webhook-tls") or {}).get("data", {})
        return {name: base64.b64decode(value) for name, value in data.items()}

    def bundle(self) -> bytes:
        """Return what the API server trusts."""
        found = self.kube.get("mutatingwebhookconfiguration", self.name)
        return base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))

    def until_ready(self) -> None:
        """Wait until both replicas are ready and the API server gets through to them."""
        self.kube.run("rollout", "status", "deployment/beckon-webhook", "--timeout=90s", timeout=100)
        until(self.is_requested, what="an API server that gets through to the webhook")

    def is_requested(self) -> bool:
        """Whether an EventType would get its copy; nothing is stored."""
        spec = {"type": "probe", "schemaData": "{}"}
        metadata = {"name": "probe"}
        probe = {"apiVersion": "eventing.knative.dev/v1beta2", "kind": "EventType", "metadata": metadata}
        manifest = json.dumps({**probe, "spec": spec})
        return COPY in self.kube.apply(manifest, "--dry-run=server", "-o", "json")

    def answered(self) -> int:
        """Return how often the API server has had an answer from this webhook."""
        return self._count(
            rf'apiserver_admission_webhook_request_total{{code="200",name="{self.name}",[^}}]*}}'
        )

    def failed_open(self) -> int:
        """Return how often the API server went on without an answer from this webhook."""
        return self._count(rf'apiserver_admission_webhook_fail_open_count{{name="{self.name}",[^}}]*}}')

    def _count(self, series: str) -> int:
        metrics = self.kube.run("get", "--raw", "/metrics")
        return sum(int(float(value)) for value in re.findall(rf"^{series} (\S+)$", metrics, re.MULTILINE))


@contextmanager
def deployed(kube: Kube, **settings: str) -> Iterator[Hook]:
    """Deploy a webhook in the namespace of `kube` with `BECKON_WEBHOOK_*`; remove what is cluster-wide."""
    name = f"{kube.namespace}.beckon.dev"
    objects = moved_objects(kube.namespace, name, settings)
    wide = [one for one in objects if "namespace" not in one["metadata"]]
    hook = Hook(kube, name, json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    kube.apply(hook.manifest)
    try:
        hook.until_ready()
        yield hook
    finally:
        for one in wide:
            kube.run("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found", "--wait=false")


def moved_objects(namespace: str, name: str, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the objects of the webhook, moved to a namespace; the cluster-wide ones are named `name`.

    A policy has its own name before it.
    """
    return [_moved(one, namespace, name, settings) for one in _objects()]


def serial(pem: bytes) -> int:
    """Return the serial number of a certificate."""
    return x509.load_pem_x509_certificate(pem).serial_number


def _objects() -> Iterator[dict[str, Any]]:
    """Yield the webhook's objects in the order of application."""
    for path in sorted(Path(ROOT, "deploy").glob("[0-9]*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            component = one["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            if component == "webhook" and one["kind"] in _KINDS:
                yield one


def _moved(one: dict[str, Any], namespace: str, name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return an object in another namespace, or with another name where it belongs to none."""
    if one["kind"] in policies.KINDS:
        return policies.move_policy(one, namespace, "beckon-webhook", f".{name}")
    if "namespace" in one["metadata"]:
        one["metadata"]["namespace"] = namespace
    else:
        one["metadata"]["name"] = name
    for subject in one.get("subjects", ()):
        subject["namespace"] = namespace
    match one["kind"]:
        case "ClusterRole":
            one["rules"][0]["resourceNames"] = [name]
        case "ClusterRoleBinding":
            one["roleRef"]["name"] = name
        case "MutatingWebhookConfiguration":
            webhook = one["webhooks"][0]
            webhook["name"] = name
            webhook["clientConfig"]["service"]["namespace"] = namespace
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        case "Deployment":
            named = {"configuration": name, **settings}
            one["spec"]["template"]["spec"]["containers"][0]["env"] += [
                {"name": f"BECKON_WEBHOOK_{key.upper()}", "value": value} for key, value in named.items()
            ]
    return one
