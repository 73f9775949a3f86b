"""The API server as a pod sees it, by the standard library."""

import json
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Resource = dict[str, Any]

SERVER = "https://kubernetes.default.svc"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API = "/apis/networking.internal.knative.dev/v1alpha1"
INGRESSES = f"{API}/ingresses"
WATCH_SECONDS = 240


def request(path: str, *, patch: Resource | None = None, seconds: float = 30) -> Any:
    """Open a request as the pod's service account; a `patch` is a JSON merge patch. Raises `OSError`."""
    sent = urllib.request.Request(
        SERVER + path,
        method="GET" if patch is None else "PATCH",
        data=None if patch is None else json.dumps(patch).encode(),
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
            "Content-Type": "application/merge-patch+json",
        },
    )
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    return urllib.request.urlopen(sent, timeout=seconds, context=trust)


def ingresses() -> tuple[list[Resource], str]:
    """All KIngress resources, and the version to watch from."""
    with request(INGRESSES) as answer:
        listed = json.load(answer)
    return listed["items"], listed["metadata"]["resourceVersion"]


def changes(version: str) -> Iterator[tuple[str, Resource]]:
    """`ADDED`, `MODIFIED` or `DELETED` with the resource, until the API server ends the watch."""
    path = f"{INGRESSES}?watch=1&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
    with request(path, seconds=WATCH_SECONDS + 30) as answer:
        for line in answer:
            change = json.loads(line)
            if change["type"] == "ERROR":  # the version is too old: list again
                return
            yield change["type"], change["object"]


def write_status(ingress: Resource, status: Resource) -> None:
    """Merge `status` into the resource's status."""
    meta = ingress["metadata"]
    path = f"{API}/namespaces/{meta['namespace']}/ingresses/{meta['name']}"
    with request(f"{path}/status", patch={"status": status}):
        pass
