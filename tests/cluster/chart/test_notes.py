"""What the chart says after an install."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.chart.cases import CASES, KAFKA
from tests.cluster.chart.charts import CHART, Chart


def notes(chart: Chart, folder: Path, given: Mapping[str, object]) -> str:
    """Return what Helm would print after an install: it renders it for no one else."""
    shutil.copytree(CHART, folder / "beckon")
    (folder / "beckon" / "templates" / "NOTES.txt").rename(folder / "beckon" / "NOTES.txt")
    probe = (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, "
        'notes: {{ tpl (.Files.Get "NOTES.txt") . | quote }}}'
    )
    (folder / "beckon" / "templates" / "notes.yaml").write_text(probe, encoding="utf-8")
    found = Chart(chart.helm, folder / "beckon").render(given)
    return str(found["ConfigMap", "", "notes"]["notes"])


def test_the_notes_name_the_next_command_and_what_is_weak(chart: Chart, tmp_path: Path) -> None:
    text = notes(chart, tmp_path, {})

    assert "helm test beckon --namespace beckon" in text
    assert "port-forward service/beckon-agent 8080:80" in text
    assert "get secret beckon-first-key" in text
    assert "demo model answers" in text
    assert "InMemoryChannel" in text
    assert "replicas is 1" not in text


def test_the_notes_show_only_of_weaknesses_that_are_there(chart: Chart, tmp_path: Path) -> None:
    strong = {
        "model": {"baseURL": "https://models.example/v1"},
        "brokers": [KAFKA],
        "agent": {"tls": {"existingSecret": "certificate"}},
        "access": {"existingSecret": "keys"},
        "store": {"existingSecret": "database"},
    }

    weak = notes(chart, tmp_path, strong).partition("What is weak")[2].splitlines()[1:]

    assert [line for line in weak if line.strip()] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"demoModel": {"enabled": False}}, "There is no model"),
        ({"agent": {"replicas": 1}}, "agent.replicas is 1"),
        ({"agent": {"replicas": 2}}, "agent.tls is not set"),
        ({"operator": {"replicas": 1}}, "operator.replicas is 1"),
        ({"shim": {"replicas": 1}}, "shim.replicas is 1"),
        ({"webhook": {"replicas": 1}}, "webhook.replicas is 1"),
        ({"webhook": {"enabled": False}}, "webhook.enabled is false"),
        ({"podDisruptionBudgets": {"enabled": False}}, "podDisruptionBudgets.enabled is false"),
        ({"networkPolicies": {"enabled": False}}, "networkPolicies.enabled is false"),
        ({}, "make keys of your own"),
        ({}, "each replica keeps runs in its memory"),
        ({"access": {"anonymous": True}}, "everybody who reaches the agent may call tools"),
        ({"access": {"openEvents": True}}, "access.openEvents is true"),
        ({"agent": {"namespaces": ["default", "b"]}}, "Namespace b has no Broker"),
        (CASES["several-namespaces"], "Broker team-b/events is not made here"),
    ],
    ids=str,
)
def test_a_weakness_is_reported(chart: Chart, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    assert said in notes(chart, tmp_path, given)
