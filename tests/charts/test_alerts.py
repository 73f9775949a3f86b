"""The alerts: each is tried by Prometheus' own tool, and asks only for metrics that exist."""

import re
import subprocess
from pathlib import Path

import yaml

from tests.charts.test_dashboards import Labels, exposed, problems
from tests.prometheus import program

__all__ = ["exposed"]  # a fixture, found by its name

RULES = Path(__file__).resolve().parents[2] / "charts" / "beckon" / "alerts" / "beckon.yaml"
SITUATIONS = Path(__file__).with_name("alerts.yaml")


def alerts() -> dict[str, str]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def test_each_alert_comes_when_it_should_and_then_only() -> None:
    done = subprocess.run(
        [program("promtool"), "test", "rules", SITUATIONS],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried() -> None:
    situations = yaml.safe_load(SITUATIONS.read_text(encoding="utf-8"))["tests"]

    tried = [test["alertname"] for one in situations for test in one["alert_rule_test"] if test["exp_alerts"]]

    assert set(tried) == alerts().keys()


def test_every_metric_of_an_alert_exists_with_the_labels_of_its_query(exposed: Labels) -> None:
    sides = [side for expression in alerts().values() for side in re.split(r"\bor\b", expression)]

    assert [problem for side in sides for problem in problems(side, exposed)] == []
