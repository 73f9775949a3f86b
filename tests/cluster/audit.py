"""What the API server notes of every write: who wrote what."""

import json

import pytest

from tests.cluster.kube import Kube
from tests.cluster.machine.places import places


def writers(kube: Kube, *resources: str) -> set[str]:
    """Return the names of those that wrote to these resources; skip the test where no one takes notes."""
    audit = places().logs / "audit.log"
    if places().kubeconfig != kube.kubeconfig or not audit.exists():
        pytest.skip("only the cluster of `make cluster` keeps an audit log that this test can read")
    entries = map(json.loads, audit.read_text(encoding="utf-8").splitlines())
    return {entry["user"]["username"] for entry in entries if entry["objectRef"]["resource"] in resources}
