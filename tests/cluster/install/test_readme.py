"""The chart's README, followed by hand, and docs/install.md, to the end of both."""

import re
from contextlib import ExitStack

import pytest

from tests.cluster.chart.charts import CHART, ROOT
from tests.cluster.install.pages import Shell, commands
from tests.cluster.install.releases import LEFT, Helm, assert_remains
from tests.cluster.platform import NAMESPACE

pytestmark = pytest.mark.timeout(900)


def test_the_readme_followed_by_hand_ends_where_it_says(helm: Helm) -> None:
    printed: dict[str, str] = {}
    with ExitStack() as stack:
        shell = Shell(helm, stack)
        for command in commands(CHART / "README.md"):
            printed[command] = shell.run(command)
    verbs = [
        re.sub(r" .*", "", command.removeprefix("helm ")) for command in printed if command.startswith("helm")
    ]
    (answer,) = [text for command, text in printed.items() if command.startswith("curl")]

    assert_remains(helm.kube, {*LEFT, "Secret beckon/beckon-model"})
    with ExitStack() as stack:
        for command in commands(ROOT / "docs" / "install.md", "Remove it"):
            Shell(helm, stack).run(command.replace("helm uninstall", "helm uninstall --ignore-not-found"))

    assert verbs == ["install", "test", "upgrade", "uninstall"]
    assert '"model":"beckon"' in answer.replace(" ", "")
    assert_remains(helm.kube, set())


def test_the_plain_manifests_are_applied_and_deleted_in_one_go_each(helm: Helm) -> None:
    kube, everywhere = helm.kube, helm.kube.within("")
    deploy = str(ROOT / "deploy")
    try:
        said = everywhere.run("apply", "-k", deploy)
        for name in ("operator", "webhook", "shim", "agent", "demo-model"):
            kube.within(NAMESPACE).run(
                "rollout", "status", f"deployment/beckon-{name}", "--timeout=180s", timeout=190
            )
        kube.wait("broker/default", timeout=90)
        kube.wait("trigger/default-beckon-replies", timeout=90)
        applied = everywhere.attempt("diff", "-k", deploy)
    finally:
        everywhere.run("delete", "-k", deploy, "--ignore-not-found", "--timeout=180s", timeout=190)

    assert "unchanged" not in said
    assert (applied.returncode, applied.stdout) == (0, "")
    assert_remains(kube, set())
