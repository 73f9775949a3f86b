"""The dashboard asks only for metrics that exist, by labels that they have."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from beckon_agent.core.model_types import Usage
from beckon_agent.core.run_events import CallFinished
from beckon_agent.telemetry.metrics import Metrics as AgentMetrics
from beckon_broker.envelope import BrokerName
from beckon_broker.metrics import Metrics as BrokerMetrics
from beckon_contract.kubernetes_objects import Key
from beckon_operator.metrics import Metrics as OperatorMetrics
from beckon_shim.status import Metrics as ShimMetrics
from beckon_tools.telemetry import Metrics as ToolMetrics
from tests.shim.support import shim_in_front_of

DASHBOARDS = Path(__file__).resolve().parents[2] / "charts" / "beckon" / "dashboards"
ALL = sorted(DASHBOARDS.glob("*.json"))
# Prometheus adds these (a metric's own namespace is exported_namespace then), or they are a histogram's own.
SCRAPED = frozenset(("namespace", "exported_namespace", "pod", "le"))
NAME = re.compile(r"\bbeckon_[a-z_]+")

Labels = Mapping[str, frozenset[str]]


def samples(text: str) -> dict[str, frozenset[str]]:
    """Return the names of what is exposed, each with its labels."""
    return {
        sample.name: frozenset(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of_the_agent() -> str:
    metrics = AgentMetrics()
    metrics.count_run("a", "stop")
    metrics.count_call(CallFinished("id", "t", "result", failed=False, seconds=0.1), "a")
    metrics.count_answer("a", "answered", seconds=1.0, first=0.1, usage=Usage(1, 1))
    metrics.count_request("/v1/responses", 429)
    metrics.limit_reached("a", "requests")
    metrics.count_resumed(lost=True)
    metrics.late_reply("taken")
    return metrics.to_text(tools=1, running=0).decode()


def of_the_shim() -> str:
    metrics = ShimMetrics()
    metrics.call("replied")
    metrics.reply("answered")
    metrics.dead_letter("reported")
    return metrics.text().decode()


def of_the_operator() -> str:
    metrics = OperatorMetrics()
    verdict = SimpleNamespace(ready=SimpleNamespace(status="True", reason="Ready"))
    metrics.export_tools(lambda: iter([cast(Any, verdict)]))
    metrics.failures.labels("write").inc()
    metrics.replies_arrive.labels("team/default").set(1)
    return metrics.to_text().decode()


def of_a_tool() -> str:
    metrics = ToolMetrics(lambda: 0)
    with metrics.count_call():
        pass
    return metrics.to_text().decode()


def of_the_broker() -> str:
    metrics, trigger = BrokerMetrics(), Key("eventing.knative.dev", "Trigger", "n", "t")
    metrics.delivered(trigger)
    metrics.handed_over("taken")
    metrics.retried(trigger)
    metrics.dead_lettered(trigger)
    metrics.dropped(trigger, "no-dead-letter-sink")
    metrics.accepted(BrokerName("n", "b"), 1)
    metrics.redelivered()
    metrics.refused("log-unavailable")
    metrics.set_load({trigger: 0}, 0.0)
    return generate_latest(metrics.registry).decode()


@pytest_asyncio.fixture
async def exposed() -> AsyncIterator[Labels]:
    """What the components expose, once each has something to tell."""
    async with (
        shim_in_front_of("http://127.0.0.1:9") as shim,
        aiohttp.ClientSession() as session,
        session.get(f"{shim.url}/metrics") as response,
    ):
        gauges = await response.text()
    texts = (gauges, of_the_shim(), of_the_agent(), of_the_operator(), of_a_tool(), of_the_broker())
    yield {name: labels for text in texts for name, labels in samples(text).items()}


def queries(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Yield every expression of the panels and the variables."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def problems(query: str, exposed: Labels) -> Iterator[str]:
    """Yield what a query asks for that is not there."""
    names = NAME.findall(query)
    if not names:
        yield f"no metric of ours in: {query}"
    request = set(re.findall(r"(\w+)=~?\"|(\w+)!=\"", query))
    grouped = {label.strip() for part in re.findall(r"by \(([^)]*)\)", query) for label in part.split(",")}
    listed = set(re.findall(r"label_values\([^,]*, (\w+)\)", query))
    labels = {label for pair in request for label in pair if label} | grouped | listed
    for name in names:
        if name not in exposed:
            yield f"{name} is exposed by no service"
        else:
            yield from (f"{name} has no label {label}" for label in labels - exposed[name] - SCRAPED)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_metric_of_a_dashboard_exists_with_the_labels_of_its_query(path: Path, exposed: Labels) -> None:
    dashboard = json.loads(path.read_text(encoding="utf-8"))

    found = [problem for query in queries(dashboard) for problem in problems(query, exposed)]

    assert found == []
    assert len(list(queries(dashboard))) > 20


def test_a_metric_or_a_label_that_does_not_exist_is_found(exposed: Labels) -> None:
    bad = 'sum by (tool) (rate(beckon_agent_runs_total{namespace=~"$namespace", colour!="red"}[5m]))'

    assert sorted(problems(bad, exposed)) == [
        "beckon_agent_runs_total has no label colour",
        "beckon_agent_runs_total has no label tool",
    ]
    assert list(problems("rate(beckon_agent_nonsense[5m])", exposed)) == [
        "beckon_agent_nonsense is exposed by no service"
    ]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_panels_have_ids_of_their_own_and_do_not_overlap(path: Path) -> None:
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
