"""Manifest files as tests write them."""

import json
from pathlib import Path

from beckon_contract.kubernetes_objects import Resource


def an_object(name: str, *, note: str = "", kind: str = "EventType") -> dict[str, object]:
    """Return a small object; the note makes two of one name differ."""
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"type": name, "description": note},
    }


def text_of(*objects: dict[str, object]) -> str:
    """Return objects as the documents of one YAML file."""
    return "".join(f"---\n{json.dumps(one)}\n" for one in objects)


def write(path: Path, *objects: dict[str, object]) -> None:
    """Write a manifest file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(*objects))


def notes(resources: tuple[Resource, ...]) -> dict[str, str]:
    """Return the note of each object by name; the last of a name counts."""
    return {resource.name: resource.spec.get("description", "") for resource in resources}


def mount(folder: Path, version: str, *objects: dict[str, object]) -> None:
    """Write a version as the kubelet does: a hidden folder, and one symbolic link that is swapped."""
    write(folder / version / "tools.yaml", *objects)
    (folder / "..new").symlink_to(version)
    (folder / "..new").rename(folder / "..data")
