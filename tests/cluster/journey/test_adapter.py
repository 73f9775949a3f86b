"""An API that knows nothing of events becomes tools: by the adapter of the chart and the example."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.chart.charts import DEPLOY, Chart
from tests.cluster.machine import programs
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, Platform

pytestmark = pytest.mark.timeout(600)

LIBRARY = "http://library.default.svc.cluster.local"
EXAMPLE = DEPLOY / "examples" / "http-library"


@pytest.fixture(scope="module")
def adapted(platform: Platform) -> Iterator[Platform]:
    """The platform with the adapter that the chart makes, allowed to call the library alone."""
    chart = Chart(programs.build(places(), "helm") / "helm")
    wanted = {
        "enabled": True,
        "replicas": 1,
        "allowedHosts": [{"host": LIBRARY, "private": True}],
    }
    objects = chart.render({"adapter": wanted})
    made = [one for (_, _, name), one in objects.items() if "adapter" in name]
    assert {one["kind"] for one in made} >= {"Deployment", "Service", "ServiceAccount", "Role"}
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    anywhere = platform.kube.within("")
    anywhere.apply(everything)
    platform.kube.apply(EXAMPLE)
    platform.kube.within(NAMESPACE).run(
        "rollout", "status", "deployment/beckon-adapter", "--timeout=120s", timeout=140
    )
    platform.kube.wait("ksvc/library", timeout=180)
    platform.wait_until_offered("find_books", "reserve_book")
    yield platform
    platform.kube.run("delete", "--wait=false", "-f", str(EXAMPLE))
    for one in made:
        where = platform.kube.within(one["metadata"].get("namespace", ""))
        where.run("delete", "--wait=false", one["kind"], one["metadata"]["name"])


def test_an_api_is_called_as_a_tool(adapted: Platform) -> None:
    found = adapted.call("find_books", {"subject": "physics"})

    assert found.status_code == 200, found.text
    books = found.json()["result"]
    assert books
    assert {*books[0]} == {"id", "title", "author", "lent"}


def test_a_model_asks_it(adapted: Platform) -> None:
    assert "find_books" in adapted.ask("Find books about physics")


def test_what_the_model_can_mend_is_reported_in_the_words_of_the_api(adapted: Platform) -> None:
    refused = adapted.call("reserve_book", {"id": 999_999, "reader": "ada"})

    assert refused.status_code in (400, 404, 422, 502), refused.text
    assert "999999" in refused.text
