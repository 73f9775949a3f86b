"""Volumes for the claims of pods: folders of the state folder, behind a default storage class.

Kubernetes has no provisioner of its own for these, so some are made beforehand. Each serves one claim, and
is not used again after it.
"""

import json
from typing import Any

from tests.cluster.machine.kubernetes import kubectl
from tests.cluster.machine.places import NODE, Places

COUNT = 12
CLASS = "local"


def create(places: Places) -> None:
    """Make the storage class and its volumes; a claim that names no class gets one of them."""
    folders = [places.volumes / str(number) for number in range(COUNT)]
    for folder in folders:
        folder.mkdir(parents=True)
    volumes = [_volume(f"{CLASS}-{folder.name}", str(folder)) for folder in folders]
    listed = {"apiVersion": "v1", "kind": "List", "items": [_storage_class(), *volumes]}
    kubectl(places, "create", "-f", "-", stdin=json.dumps(listed).encode())


def _storage_class() -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": annotations},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(name: str, folder: str) -> dict[str, Any]:
    node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": CLASS,
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": folder},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
        },
    }
