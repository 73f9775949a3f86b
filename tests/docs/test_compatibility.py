"""The compatibility page says what the code, the chart and the tests' programs have."""

import re
from pathlib import Path

import yaml

from beckon_agent.store import migrations
from beckon_contract.cloudevents import extensions
from beckon_contract.knative import reply_triggers
from beckon_contract.resources.tools import ORIGIN_ATTRIBUTE
from tests.cluster.machine import programs
from tests.docs.blocks import ROOT, table

PAGE = ROOT / "docs" / "compatibility.md"


def first_words(rows: list[list[str]]) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in rows}


def crd_versions(path: Path) -> list[str]:
    return [version["name"] for version in yaml.safe_load(path.read_text())["spec"]["versions"]]


def test_the_versions_are_those_of_the_chart_and_of_the_tests() -> None:
    rows = first_words(table(PAGE, "part"))
    chart = yaml.safe_load((ROOT / "charts/beckon/Chart.yaml").read_text())
    python = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "cli/pyproject.toml").read_text())

    assert python is not None
    assert rows["Python"][0] == f"{python[1]} or later"
    assert chart["kubeVersion"] == f">={rows['Kubernetes'][0].removesuffix(' or later')}.0-0"
    for part, product in (
        ("Kubernetes", "kubernetes"),
        ("Knative Eventing", "eventing"),
        ("Knative Serving", "serving"),
        ("Helm", "helm"),
        ("NATS server, for the Broker class `Beckon`", "nats-server"),
    ):
        assert programs.release(product).startswith(f"{rows[part][1]}."), part


def test_the_versions_of_the_resources_are_those_of_the_crds() -> None:
    rows = first_words(table(PAGE, "resource"))

    for kind in ("tool", "agent"):
        (path,) = (ROOT / "deploy").glob(f"20?-crd-{kind}.yaml")
        assert rows[f"{kind.capitalize()} (`beckon.dev`)"][0] == ", ".join(crd_versions(path))


def test_every_attribute_of_the_code_is_on_the_page() -> None:
    own = {
        value
        for value in vars(extensions).values()
        if isinstance(value, str) and re.fullmatch("beckon[a-z]+", value)
    }
    others = {reply_triggers.CORRELATION_ATTRIBUTE, reply_triggers.REPLY_ATTRIBUTE, extensions.CAUSE}
    listed = {row[0].strip("`") for row in table(PAGE, "attribute")}
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith("These are between")]
    internal = set(re.findall(r"`(beckon[a-z]+)`", line))

    assert listed & internal == set()
    assert listed | internal == own | others | {ORIGIN_ATTRIBUTE, "expirytime"}


def test_the_revision_of_the_database_is_the_newest() -> None:
    assert first_words(table(PAGE, "question"))["revision of this release"] == [migrations.HEAD]
