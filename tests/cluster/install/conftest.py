"""Helm and the linter, built like the other programs of the cluster."""

from pathlib import Path

import pytest

from tests.cluster.install.charts import Chart
from tests.cluster.install.releases import LEFT, Helm, remains
from tests.cluster.kube import Kube
from tests.cluster.machine import programs
from tests.cluster.machine.places import places


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart, rendered by the Helm that installs it."""
    return Chart(programs.build(places(), "helm") / "helm")


@pytest.fixture(scope="session")
def kube_score() -> Path:
    """The linter of manifests."""
    return programs.build(places(), "kube-score") / "kube-score"


@pytest.fixture(scope="session")
def helm(kube: Kube, chart: Chart) -> Helm:
    """Helm on a cluster where Beckon is not: these tests install it, and remove it."""
    found = remains(kube) - LEFT
    if found:
        pytest.fail(
            f"Beckon is in this cluster already ({len(found)} objects, such as {min(found)}); these tests "
            "install and remove it themselves: remove it, or try another cluster"
        )
    return Helm(chart.helm, kube)
