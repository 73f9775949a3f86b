"""Helm and the linter, built like the other programs of the cluster."""

from pathlib import Path

import pytest

from tests.cluster.install.charts import Chart
from tests.cluster.install.releases import LEFT, Helm, remains
from tests.cluster.kube import Kube
from tests.cluster.machine import programs
from tests.cluster.machine.places import places


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put these tests before the others of the cluster, which install Beckon once and leave it there."""
    here = Path(__file__).parent
    items.sort(key=lambda item: here not in item.path.parents)


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
