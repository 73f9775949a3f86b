"""What kube-score says of the manifests: nothing, but for what is as it is for a reason."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.chart.cases import CASES
from tests.cluster.chart.charts import CHART, DEPLOY, KUBERNETES, Chart

# Checks that are off unless they are asked for, and hold.
ALSO = ("container-seccomp-profile", "container-ports-check")
# What is as it is, and why.
ACCEPTED: Mapping[str, str] = {
    "container-image-pull-policy": "A tag is never reused; who does reuse one sets Always.",
    "deployment-has-host-podantiaffinity": "Topology spread does it, and does not hold up a small cluster.",
    "deployment-replicas": "The demo model is a stand-in; other parts may have one where it was asked for.",
}
# Values that take something away on purpose, and what the linter says of that.
BY_CHOICE: Mapping[str, set[str]] = {
    "without-extras": {"pod-networkpolicy", "deployment-has-poddisruptionbudget"},
    "a-file-of-runs": {"deployment-strategy"},
}


def findings(kube_score: Path, manifests: str) -> dict[str, set[str]]:
    """Return the checks that do not pass, each with the objects that do not pass it."""
    words = [
        "score",
        "--output-format",
        "json",
        "--ignore-container-cpu-limit",
        "--kubernetes-version",
        "v1.34",
    ]
    for check in ALSO:
        words += ["--enable-optional-test", check]
    done = subprocess.run(
        [str(kube_score), *words, "-"],
        input=manifests,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found: dict[str, set[str]] = {}
    scored: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(scored) > 5, done.stderr
    for each in scored:
        for check in each["checks"]:
            if not check["skipped"] and check["grade"] < 10:
                name = f"{each['type_meta']['kind']} {each['object_meta']['name']}"
                found.setdefault(check["check"]["id"], set()).add(name)
    return found


def test_the_linter_finds_only_what_is_accepted_in_the_plain_manifests(kube_score: Path) -> None:
    files = [*sorted(DEPLOY.glob("[0-9]*.yaml")), *sorted(DEPLOY.glob("broker-class/[0-9]*.yaml"))]
    text = "".join(path.read_text(encoding="utf-8") for path in files)

    found = findings(kube_score, text)

    assert set(found) == set(ACCEPTED), found
    assert found["deployment-replicas"] == {"Deployment beckon-demo-model"}


@pytest.mark.parametrize("case", CASES)
def test_the_linter_finds_only_what_is_accepted_in_the_chart(
    chart: Chart, kube_score: Path, case: str
) -> None:
    found = set(findings(kube_score, chart.text(CASES[case])))

    assert found - set(ACCEPTED) == BY_CHOICE.get(case, set())


def test_the_linter_finds_a_pod_that_may_do_too_much(kube_score: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(DEPLOY.glob("[0-9]*.yaml")))

    found = findings(
        kube_score, text.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")
    )

    assert "container-security-context-readonlyrootfilesystem" in found


def test_the_pods_of_helm_test_are_as_careful(chart: Chart, kube_score: Path) -> None:
    words = ("template", "beckon", str(CHART), "--namespace", "beckon", "--kube-version", KUBERNETES)
    text = chart.run(*words)

    found = findings(kube_score, text)

    tests = {name for names in found.values() for name in names if "beckon-test" in name}
    accepted = {name for check in (*ACCEPTED, "pod-networkpolicy") for name in found.get(check, ())}
    assert tests <= accepted, found
