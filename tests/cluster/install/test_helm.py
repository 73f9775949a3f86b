"""A release on the cluster: installed, tested, upgraded and rolled back under calls, and removed."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.cluster.chart.charts import ROOT
from tests.cluster.install import load
from tests.cluster.install.pages import Shell, commands
from tests.cluster.install.releases import RELEASE, Helm, logs, remains, restarts
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, Forward, Platform

pytestmark = pytest.mark.timeout(900)

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:beckon-"


@pytest.fixture(scope="module")
def release(helm: Helm) -> Iterator[Helm]:
    """The chart with its default values, installed; gone after these tests."""
    helm.install()
    # Helm makes the namespace without it; what `helm test` brings has to meet it, too.
    helm.kube.run("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    yield helm
    helm.remove()


@pytest.fixture
def platform(release: Helm) -> Iterator[Platform]:
    """The release, as its users reach it."""
    forward = Forward(release.kube.within(NAMESPACE), "service/beckon-agent", 80)
    yield Platform(release.kube, forward)
    forward.close()


def test_helm_test_makes_a_real_call_and_leaves_nothing(release: Helm) -> None:
    kinds = ("configmaps", "deployments", "pods", "services", "triggers", "eventtypes", "tools")
    before, replied = remains(release.kube, *kinds), calls_replied(release.kube)

    said = release.run("test", RELEASE, "--timeout=4m")

    (outcome,) = re.findall(r"TEST SUITE: +beckon-test-call\n(?:.+\n)*?Phase: +(\w+)", said)
    assert outcome == "Succeeded"
    assert calls_replied(release.kube) > replied
    until(lambda: remains(release.kube, *kinds) <= before, within=60, what="the end of the test's objects")


def calls_replied(kube: Kube) -> float:
    """Return how many calls the replicas of the shim have been replied to."""
    within = kube.within(NAMESPACE)
    total = 0.0
    for pod in within.list_objects("pods", "app.kubernetes.io/component=shim"):
        forward = Forward(within, f"pod/{pod['metadata']['name']}", 8083)
        text = httpx.get(f"{forward.url}/metrics", timeout=30).text
        forward.close()
        found = re.search(r'^beckon_shim_calls_total\{outcome="replied"\} (\S+)$', text, re.MULTILINE)
        total += float(found[1]) if found else 0
    return total


def test_a_chat_calls_a_tool(release: Helm, platform: Platform) -> None:
    answer = ""

    def answered() -> bool:
        nonlocal answer
        answer = platform.ask("What is 17% of 2340?")
        return "397.8" in answer

    with load.tool(release.kube):
        until(answered, within=60, what="an answer by the tool")

    assert answer.startswith("[demo model]")


def test_an_upgrade_and_a_rollback_lose_no_call(release: Helm) -> None:
    changed = {
        "logLevel": "debug",
        "shim": {"replicas": 2},
        "resources": {"agent": {"limits": {"memory": "700Mi"}}},
    }
    with load.tool(release.kube), load.calling(release.kube):
        before = load.seen(release.kube)
        release.upgrade(changed)
        upgraded = load.seen(release.kube)
        replicas = release.kube.within(NAMESPACE).get("deployment", "beckon-shim")["spec"]["replicas"]
        release.run("rollback", RELEASE, "--wait", "--timeout=5m")
        until(lambda: load.seen(release.kube).calls > upgraded.calls + 50, within=60, what="calls afterwards")
        after = load.seen(release.kube)

    assert replicas == 2
    assert release.kube.within(NAMESPACE).get("deployment", "beckon-shim")["spec"]["replicas"] == 3
    assert upgraded.calls > before.calls + 100, after
    assert after.failures == []


def test_an_upgrade_that_changes_nothing_restarts_nothing(release: Helm) -> None:
    pods = restarts(release.kube)

    release.upgrade({})

    assert restarts(release.kube) == pods


def test_the_page_on_upgrades_is_true(release: Helm) -> None:
    page, printed = ROOT / "docs" / "upgrade.md", {}
    with ExitStack() as stack:
        for command in (*commands(page, "With Helm"), *commands(page, "Back")):
            printed[command] = Shell(release, stack).run(command)

    assert [command.split()[1] for command in printed] == ["apply", "upgrade", "test", "rollback"]
    assert "Rollback was a success" in printed["helm rollback beckon --namespace beckon --wait"]


def test_nothing_was_forbidden_and_nothing_crashed(release: Helm) -> None:
    assert set(restarts(release.kube).values()) == {0}
    # In a namespace that is going, everything is forbidden, to everybody.
    lines = [line for text in logs(release.kube).values() for line in text.splitlines()]
    assert lines
    assert [line for line in lines if "forbidden" in line.lower() and "being terminated" not in line] == []


@pytest.mark.parametrize(
    ("component", "verb", "what", "allowed"),
    [
        ("operator", "list", "eventtypes.eventing.knative.dev", True),
        ("operator", "patch", "eventtypes.eventing.knative.dev", False),
        ("operator", "update", "eventtypes.eventing.knative.dev", False),
        ("operator", "delete", "triggers.eventing.knative.dev", True),
        ("operator", "update", "triggers.eventing.knative.dev", False),
        ("operator", "patch", "brokers.eventing.knative.dev", False),
        ("operator", "update", "tools.beckon.dev", True),
        ("operator", "get", "secrets/beckon-shim-keys", True),
        ("operator", "get", "secrets/another", False),
        ("operator", "list", "secrets", False),
        ("webhook", "get", "secrets/beckon-webhook-tls", True),
        ("webhook", "get", "secrets/beckon-shim-keys", False),
        ("webhook", "patch", "mutatingwebhookconfigurations/beckon-webhook", True),
        ("webhook", "patch", "mutatingwebhookconfigurations/another", False),
        ("shim", "watch", "brokers.eventing.knative.dev", True),
        ("shim", "get", "secrets/beckon-shim-keys", False),
        ("shim", "create", "serviceaccounts/beckon-shim --subresource=token", True),
        ("shim", "create", "serviceaccounts/beckon-agent --subresource=token", False),
        ("agent", "watch", "agents.beckon.dev --namespace=default", True),
        ("agent", "watch", "agents.beckon.dev --namespace=kube-system", False),
        ("agent", "patch", "agents.beckon.dev --subresource=status --namespace=default", True),
        ("agent", "patch", "tools.beckon.dev --namespace=default", True),
        ("agent", "get", "secrets/beckon-model --namespace=default", True),
        ("agent", "get", "secrets/another --namespace=default", False),
        ("demo-model", "list", "pods", False),
    ],
)
def test_an_account_may_do_what_it_must_and_no_more(
    release: Helm, component: str, verb: str, what: str, allowed: bool
) -> None:
    words = ["auth", "can-i", verb, *what.split(), f"--as={ACCOUNT}{component}"]

    said = release.kube.within(NAMESPACE).attempt(*words).stdout.strip()

    assert said == ("yes" if allowed else "no")


def test_who_may_edit_a_namespace_may_write_agents_and_only_view_tools(release: Helm) -> None:
    kube = release.kube
    kube.run("create", "serviceaccount", "beckon-person")
    kube.run(
        "create",
        "rolebinding",
        "beckon-person",
        "--clusterrole=edit",
        "--serviceaccount=default:beckon-person",
    )
    try:
        request = ("create agents.beckon.dev", "list tools.beckon.dev", "patch tools.beckon.dev")
        said = [
            kube.attempt(
                "auth", "can-i", *each.split(), "--as=system:serviceaccount:default:beckon-person"
            ).stdout
            for each in request
        ]
    finally:
        kube.run("delete", "serviceaccount,rolebinding", "beckon-person")

    assert [each.strip() for each in said] == ["yes", "yes", "no"]


def test_a_broken_upgrade_is_reported_and_rolled_back(release: Helm, tmp_path: Path) -> None:
    pods = set(restarts(release.kube))

    with pytest.raises(AssertionError, match="nonsense"):
        release.upgrade({"nonsense": True})

    assert set(restarts(release.kube)) == pods
