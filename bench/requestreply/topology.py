"""Setting up what is measured: a tool, the shim, Brokers with their Triggers, and RequestReplies."""

import time
from dataclasses import dataclass
from pathlib import Path
from string import Template

import httpx

from bench.cluster.target import ready_pods, service_address
from bench.cluster.tool_pod import start_tool
from bench.cluster.usage import Pods
from bench.requestreply.calls import headers
from tests.cluster.kube import Kube

NAMESPACE = "t-bench"
_HERE = Path(__file__).parent
_BROKER_URL = "http://broker-ingress.knative-eventing.svc.cluster.local/{namespace}/{name}"
# What moves events in Knative's channel-based Broker: its ingress, the channel's dispatcher, its filter.
BROKER_PODS = (
    "eventing.knative.dev/brokerRole=ingress",
    "eventing.knative.dev/brokerRole=filter",
    "messaging.knative.dev/channel=in-memory-channel,messaging.knative.dev/role=dispatcher",
)
# RequestReply is Ready before the kubelet has brought its key to the pod.
_READY_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Images:
    """The images of the two pods that are started here."""

    shim: str
    tool: str


@dataclass(frozen=True, slots=True)
class Side:
    """One path to the tool: its address, and the pods of its own."""

    name: str
    address: str
    shared: str
    """The path for the Broker that serves both sides."""

    alone: str
    """The path for the Broker that serves this side only."""

    pods: Pods


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that is measured."""

    sides: tuple[Side, ...]
    broker: Pods
    tool: Pods


def install(kube: Kube, images: Images) -> Topology:
    """Make it in the namespace of `kube`, and return it when both sides answer."""
    start_tool(kube, images.tool)
    manifests = Template((_HERE / "topology.yaml").read_text()).substitute(
        namespace=kube.namespace, shim_image=images.shim, broker_url=_BROKER_URL
    )
    kube.apply(manifests)
    kube.run("rollout", "status", "deployment/shim", "--timeout=120s", timeout=130)
    for what in ("broker", "trigger", "requestreply"):
        kube.wait(what, "--all", timeout=120)
    topology = _look(kube)
    for side in topology.sides:
        for path in (side.shared, side.alone):
            wait_for_answer(side, path)
    return topology


def _look(kube: Kube) -> Topology:
    eventing = kube.within("knative-eventing")
    front = ready_pods(eventing, "eventing.knative.dev/part-of=request-reply")
    sides = (
        Side(
            "Beckon's shim",
            service_address(kube, "shim"),
            f"/{kube.namespace}/shared",
            f"/{kube.namespace}/shim-alone",
            Pods(ready_pods(kube, "app=shim").values()),
        ),
        Side(
            "RequestReply",
            service_address(eventing, "request-reply"),
            f"/{kube.namespace}/shared",
            f"/{kube.namespace}/alone",
            Pods(front.values()),
        ),
    )
    broker = {name: uid for labels in BROKER_PODS for name, uid in ready_pods(eventing, labels).items()}
    return Topology(sides, Pods(broker.values()), Pods(ready_pods(kube, "app=tool").values()))


def wait_for_answer(side: Side, path: str) -> None:
    """Wait until a call of this side is answered; raise `TimeoutError` after `_READY_SECONDS`."""
    deadline = time.monotonic() + _READY_SECONDS
    url = f"http://{side.address}{path}"
    with httpx.Client(timeout=70) as client:
        while True:
            answer = client.post(url, headers=dict(headers("bench.echo", wait=5)), content=b"{}")
            if answer.status_code == 200 and answer.content == b"{}":
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{side.name} at {url} answers {answer.status_code}: {answer.text[:200]}")
            time.sleep(0.5)
