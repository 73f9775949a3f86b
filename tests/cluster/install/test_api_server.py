"""What the API server says of every rendering: each object as it would be stored."""

import json
import re

import pytest

from tests.cluster.chart.cases import CASES
from tests.cluster.chart.charts import Chart, read_documents
from tests.cluster.kube import Kube


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_object(chart: Chart, namespace: Kube, case: str) -> None:
    own = namespace.namespace
    rendered = re.sub(
        r"(?m)^  namespace: (default|team-a|team-b)$", f"  namespace: {own}", chart.text(CASES[case], own)
    )
    # The kind of the last is the Prometheus operator's, which is not here.
    objects = [each for each in read_documents(rendered) if each and each["kind"] != "ServiceMonitor"]

    stream = "\n".join(json.dumps(each) for each in objects)
    said = namespace.run("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=stream)

    assert len(said.splitlines()) == len(objects)
    assert len(objects) > 25
