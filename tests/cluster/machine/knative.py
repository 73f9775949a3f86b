"""Knative's release files out of Go's module cache, fitted to two cores, in the order that works."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.machine import programs
from tests.cluster.machine.kubernetes import kubectl
from tests.cluster.machine.node_images import image_name
from tests.cluster.machine.places import Places

Resource = dict[str, Any]

INGRESS_CLASS = "kingress.beckon.dev"

# Module archives hold no symbolic links: what Serving links to is taken from the modules it is in.
# A package of the module, and the files in the module.
RELEASES: dict[str, tuple[tuple[str, str], ...]] = {
    "eventing": (
        ("knative.dev/eventing/config/core", "config/core/**/*.yaml"),
        ("knative.dev/eventing/config/core", "config/channels/in-memory-channel/**/*.yaml"),
        ("knative.dev/eventing/config/core", "config/brokers/mt-channel-broker/deployments/*.yaml"),
        ("knative.dev/eventing/config/core", "config/brokers/mt-channel-broker/roles/*.yaml"),
        ("knative.dev/eventing/config/core", "third_party/eventing-integrations-latest/*-images.yaml"),
    ),
    "serving": (
        ("knative.dev/serving/config/core", "config/core/**/*.yaml"),
        ("knative.dev/networking/config", "config/*.yaml"),
        ("knative.dev/caching/config", "config/*.yaml"),
    ),
}
# The autoscalers of the control plane would take the cores of the tests; the cache has no controller.
LEFT_OUT = re.compile(r"(^|-)hpa\.yaml$|^999-cache\.yaml$")

# With Deployments before their roles some programs crash once or twice before they find their way.
ORDER = (
    "Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding",
    "RoleBinding", "ConfigMap", "Secret", "Service", "Deployment", "StatefulSet",
    "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)  # fmt: skip

CHANGES = {
    "config-network": {"ingress-class": INGRESS_CLASS},
    "config-deployment": {"queue-sidecar-cpu-request": "10m"},
}
CPU_SHARE = 5
PATIENCE = {"timeoutSeconds": 10, "failureThreshold": 12}


def create(places: Places, product: str) -> None:
    """Create all of the product's objects but those of its own kinds, which need its webhooks."""
    resources = [resource for resource in release(product) if resource["kind"] in ORDER]
    resources.sort(key=lambda resource: ORDER.index(resource["kind"]))
    create_all(places, resources)


def create_own_kinds(places: Places, product: str) -> None:
    """Create the objects of the product's own kinds, once its webhooks answer."""
    create_all(places, [resource for resource in release(product) if resource["kind"] not in ORDER])


def create_all(places: Places, resources: Iterable[Resource]) -> None:
    """Create objects in this order; do nothing for none."""
    stream = "\n".join(json.dumps(resource) for resource in resources)
    if stream:
        kubectl(places, "create", "-f", "-", stdin=stream.encode())


def release(product: str) -> Iterator[Resource]:
    """Every object of the product's release, fitted to this cluster."""
    for path in release_files(product):
        for resource in yaml.load_all(with_image_names(path.read_text(), product), Loader=yaml.CSafeLoader):
            if resource:
                yield fitted(resource)


def release_files(product: str) -> list[Path]:
    """The YAML files of the release, without those that this cluster has no use for."""
    found = [
        path
        for package, pattern in RELEASES[product]
        for path in programs.source(product, package).glob(pattern)
    ]
    return sorted(path for path in found if not LEFT_OUT.search(path.name))


def with_image_names(text: str, product: str) -> str:
    """Put the names of our images where the release names packages to build (`ko://...`)."""
    package = re.compile(rf"ko://({re.escape(programs.PRODUCTS[product])}/cmd/[\w/-]+)")
    return package.sub(lambda found: image_name(product, found[1]), text)


def fitted(resource: Resource) -> Resource:
    """Ask for a fifth of the processor time, and set what differs from the released configuration."""
    if resource["kind"] in ("Deployment", "StatefulSet"):
        for container in resource["spec"]["template"]["spec"]["containers"]:
            if "livenessProbe" in container:  # a machine under load is no reason to restart what is on it
                container["livenessProbe"].update(PATIENCE)
            requests = container.get("resources", {}).get("requests", {})
            if "cpu" in requests:
                requests["cpu"] = smaller(requests["cpu"])
    elif resource["kind"] == "ConfigMap" and resource["metadata"]["name"] in CHANGES:
        resource.setdefault("data", {}).update(CHANGES[resource["metadata"]["name"]])
    return resource


def smaller(cpu: str) -> str:
    """A fifth of a processor quantity, such as `20m` for `100m`."""
    milli = int(cpu[:-1]) if cpu.endswith("m") else round(float(cpu) * 1000)
    return f"{max(1, milli // CPU_SHARE)}m"
