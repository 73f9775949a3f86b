"""The linter of manifests, built like the other programs of the cluster."""

from pathlib import Path

import pytest

from tests.cluster.machine import programs
from tests.cluster.machine.places import places


@pytest.fixture(scope="session")
def kube_score() -> Path:
    """The linter of manifests."""
    return programs.build(places(), "kube-score") / "kube-score"
