"""Helm on the cluster."""

import pytest

from tests.cluster.chart.charts import Chart
from tests.cluster.install.releases import LEFT, Helm, remains
from tests.cluster.kube import Kube


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
