"""The chart with a Broker of the class Beckon and a NATS server of its own: calls pass, and none is lost."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.brokers.brokers import find_unmet_rows
from tests.cluster.brokers.probing import find_ingress, make_kill_command, probe_cluster
from tests.cluster.chart.cases import BECKON
from tests.cluster.chart.charts import DEPLOY
from tests.cluster.install import load
from tests.cluster.install.releases import SMALL, Helm, restarts
from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import NAMESPACE, Forward, Platform

pytestmark = pytest.mark.timeout(600)

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:beckon-"
INGRESS, DISPATCHER = "beckon-broker-ingress", "beckon-broker-dispatcher"
NATS_POD = "beckon-nats-0"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
_ANSWERED = r"good: answered; runs 1; dead letter $"
_IN_TIME = "502 undeliverable with the reason"
# The Triggers of the probe have a delivery of their own, which asks for retries.
PROBED = {
    "reply-trigger": r'good: CESQL .* passes replies alone; `replyid: ""` passes replies alone;',
    "acknowledgement": "good: at once",
    "echo": "good: 20 of 20 answered; runs 1; dead letter $",
    "parallel": "good: 20 of 20 answered, all side by side; runs 1",
    "slow": "good: answered, after 40 s of work; runs 1",
    "refusal": f"good: {_IN_TIME}; runs 1; dead letter code 400, the tool's text, not begun",
    "failure": f"good: {_IN_TIME}; runs 6; dead letter code 500, the tool's text$",
    "refused-connection": f"good: {_IN_TIME}, safe to repeat; .* not begun",
    "plain-json": f"good: {_IN_TIME}; runs 1; dead letter code 502, `the answer 200",
    "broken-connection": f"limited: {_IN_TIME}; runs 6;",
    "dead-letter": "good: the code, the tool's text, whether the tool can have begun",
    "reply-correlationid": _ANSWERED,
    "reply-all-extensions": _ANSWERED,
    "reply-responseid": _ANSWERED,
    "reply-nothing": _ANSWERED,
    "reply-json": _ANSWERED,
    "reply-204": _ANSWERED,
    "reply-202": _ANSWERED,
    "restart": r"(good|limited): \d+ of 104 answered",
}
VALUES = {"brokers": [BECKON], **SMALL}


@pytest.fixture(scope="module")
def release(helm: Helm) -> Iterator[Helm]:
    """The chart with a Broker of the class, in a namespace that admits restricted pods alone."""
    helm.kube.run("create", "namespace", NAMESPACE)
    helm.kube.run("label", "namespace", NAMESPACE, RESTRICTED)
    helm.install(VALUES)
    yield helm
    helm.remove()


@pytest.fixture(scope="module")
def platform(release: Helm) -> Iterator[Platform]:
    """The release with a tool, as its users reach it."""
    forward = Forward(release.kube.within(NAMESPACE), "service/beckon-agent", 80)
    platform = Platform(release.kube, forward)
    with load.tool(release.kube):
        until(lambda: "rolling_sum" in {one["name"] for one in platform.tools()["tools"]}, what="the offer")
        yield platform
    forward.close()


def pods(kube: Kube, component: str) -> list[str]:
    """Return the names of the pods of a component."""
    listed = kube.within(NAMESPACE).list_objects("pods", f"app.kubernetes.io/component={component}")
    return [each["metadata"]["name"] for each in listed]


def sample(kube: Kube, pod: str, metric: str, label: str = f'trigger="{load.TOOL}"') -> float:
    """Return the sum of a metric with this label, at one pod of the broker."""
    forward = Forward(kube.within(NAMESPACE), f"pod/{pod}", 8081)
    try:
        text = httpx.get(f"{forward.url}/metrics", timeout=30).text
    finally:
        forward.close()
    found = re.findall(rf"^{metric}\{{.*{label}.*\}} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def wait_for_calls(kube: Kube, count: int) -> None:
    """Wait until so many calls have ended."""
    until(lambda: load.seen(kube).calls > count, within=60, what="calls afterwards")


def test_the_broker_is_ready_and_a_call_passes_through_the_class(platform: Platform) -> None:
    kube = platform.kube
    kube.wait("broker/default", timeout=90)
    kube.wait("trigger", "--all", timeout=60)

    answer = platform.call("rolling_sum", {"expression": "17 * 2"})

    url = kube.get("broker", "default")["status"]["address"]["url"]
    assert url == f"http://{INGRESS}.{NAMESPACE}.svc.cluster.local/default/default"
    assert (answer.status_code, "34" in answer.text) == (200, True), answer.text
    delivered = [
        sample(kube, pod, "beckon_broker_deliveries_total") for pod in pods(kube, "broker-dispatcher")
    ]
    assert (len(delivered), sum(delivered)) == (2, 1)
    handed_over = [
        sample(kube, pod, "beckon_broker_inbox_replies_total", 'outcome="taken"')
        for pod in pods(kube, "broker-dispatcher")
    ]
    assert sum(handed_over) >= 1


def test_a_probe_of_the_operator_comes_back(platform: Platform) -> None:
    def is_seen() -> bool:
        return condition(platform.kube.find("tool", load.TOOL), "RepliesArrive")[0] == "True"

    until(is_seen, within=150, what="RepliesArrive of the Tool")  # there is a probe once a minute


def test_the_class_treats_calls_as_the_documents_say(platform: Platform) -> None:
    kube, components = platform.kube, "app.kubernetes.io/component in (broker-ingress, broker-dispatcher)"
    names = [f"deployment/{INGRESS}", f"deployment/{DISPATCHER}"]
    restart = make_kill_command(kube, NAMESPACE, components, names)
    report = probe_cluster(kube, find_ingress(kube, NAMESPACE, INGRESS), restart, "class")

    assert find_unmet_rows(report, PROBED) == {}
    assert report.label == "Beckon"


def test_the_end_of_an_ingress_and_a_dispatcher_loses_no_call(platform: Platform) -> None:
    kube, within = platform.kube, platform.kube.within(NAMESPACE)
    with load.calling(kube):
        for component, deployment in (("broker-ingress", INGRESS), ("broker-dispatcher", DISPATCHER)):
            gone, _ = pods(kube, component)
            within.run("delete", "pod", gone)
            within.run("rollout", "status", f"deployment/{deployment}", "--timeout=120s", timeout=130)
            wait_for_calls(kube, load.seen(kube).calls + 50)
        seen = load.seen(kube)

    assert seen.failures == []


def test_a_stored_call_outlives_the_pod_of_nats(platform: Platform) -> None:
    kube, within = platform.kube, platform.kube.within(NAMESPACE)
    kube.run("annotate", "eventtype", load.TOOL, "beckon.dev/timeout=180s", "--overwrite")
    within.run("scale", "deployment", DISPATCHER, "--replicas=0")
    until(lambda: not pods(kube, "broker-dispatcher"), within=90, what="the end of the dispatchers")
    ingress, _ = pods(kube, "broker-ingress")

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(platform.call, "rolling_sum", {"expression": "6 * 7"}, timeout=200)
        until(lambda: sample(kube, ingress, "beckon_broker_queue_length") == 1, what="the stored call")
        within.run("delete", "pod", NATS_POD)
        within.run("rollout", "status", "statefulset/beckon-nats", "--timeout=120s", timeout=130)
        within.run("scale", "deployment", DISPATCHER, "--replicas=2")
        answer = call.result(200)

    assert (answer.status_code, "42" in answer.text) == (200, True), answer.text


def test_more_ingresses_run_while_they_use_more_cpu(release: Helm, platform: Platform) -> None:
    kube = release.kube.within(NAMESPACE)
    more = {"enabled": True, "maxReplicas": 3, "cpu": "1m"}
    release.upgrade({**VALUES, "brokerClass": {"ingress": {"autoscaling": more}}})

    def is_scaled() -> bool:
        return bool(kube.get("deployment", INGRESS)["status"].get("readyReplicas") == 3)

    with load.calling(platform.kube):  # an idle ingress uses less than that
        until(is_scaled, within=240, what="three ready ingresses")
    autoscaler = kube.get("hpa", INGRESS)
    release.upgrade(VALUES)

    assert condition(autoscaler, "ScalingActive")[:2] == ("True", "ValidMetricFound")
    assert autoscaler["status"]["currentMetrics"][0]["resource"]["name"] == "cpu"


def test_no_pod_of_the_class_was_refused_anything_or_crashed(release: Helm, platform: Platform) -> None:
    within = platform.kube.within(NAMESPACE)
    lines = [
        line
        for name in (f"deployment/{INGRESS}", f"deployment/{DISPATCHER}", "statefulset/beckon-nats")
        for line in within.run("logs", name, "--all-pods", "--tail=-1").splitlines()
    ]

    assert set(restarts(release.kube).values()) == {0}
    assert lines
    assert [
        line for line in lines if "forbidden" in line.lower() or "permission denied" in line.lower()
    ] == []


@pytest.mark.parametrize(
    ("component", "verb", "what", "allowed"),
    [
        ("broker", "watch", "brokers.eventing.knative.dev", True),
        ("broker", "list", "triggers.eventing.knative.dev", True),
        ("broker", "patch", "triggers.eventing.knative.dev --subresource=status", False),
        ("broker", "list", "secrets", False),
        ("broker", "get", "configmaps", False),
        ("nats", "list", "pods", False),
        ("nats", "get", "secrets", False),
    ],
)
def test_an_account_of_the_class_may_do_what_it_must_and_no_more(
    release: Helm, component: str, verb: str, what: str, allowed: bool
) -> None:
    words = ["auth", "can-i", verb, *what.split(), f"--as={ACCOUNT}{component}"]

    assert release.kube.within(NAMESPACE).attempt(*words).stdout.strip() == ("yes" if allowed else "no")


def test_the_api_server_takes_the_plain_manifests_of_the_class(release: Helm) -> None:
    folder = str(DEPLOY / "broker-class")

    said = release.kube.within("").run(
        "apply", "-k", folder, "--server-side", "--force-conflicts", "--dry-run=server"
    )

    assert {line.split()[0] for line in said.splitlines()} >= {
        f"deployment.apps/{INGRESS}",
        f"deployment.apps/{DISPATCHER}",
        "statefulset.apps/beckon-nats",
        "networkpolicy.networking.k8s.io/beckon-nats",
    }
