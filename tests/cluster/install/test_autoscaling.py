"""More shims while many calls wait: the chart's autoscaler, on a metric that the shim really has."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from beckon_operator.webhook.certificates import new_authority, new_serving
from tests.cluster.install.load import TOOLS_IMAGE
from tests.cluster.install.releases import SMALL, Helm
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, first_key

pytestmark = pytest.mark.timeout(900)

SCALED = {"replicas": 1, "autoscaling": {"enabled": True, "maxReplicas": 3, "waitingCalls": 2}}
CALLS = 8
API = "v1beta2.custom.metrics.k8s.io"
ADAPTER = (Path(__file__).parent / "adapter.py").read_text(encoding="utf-8")
# A service that takes every call and never answers, and callers who wait for it.
SILENCE = "import socket\ns, kept = socket.create_server(('', 8080)), []\nwhile True: kept.append(s.accept())"
CALLERS = f"""
import threading, urllib.request
url = "http://beckon-agent.{NAMESPACE}.svc.cluster.local/tools/silence"
headers = {{"Content-Type": "application/json", "Authorization": "Bearer KEY"}}
def call():
    request = urllib.request.Request(url, b"{{}}", headers)
    urllib.request.urlopen(request, timeout=200)
for _ in range({CALLS}):
    threading.Thread(target=call).start()
"""


def test_more_shims_run_while_more_calls_wait(helm: Helm, namespace: Kube) -> None:
    if namespace.find("apiservice", API):
        pytest.skip("this cluster serves custom metrics of its own; the test would take its place")
    helm.install({**SMALL, "shim": SCALED})
    try:
        with metrics_served(namespace):
            shim = helm.kube.within(NAMESPACE)
            until(lambda: "ValidMetricFound" in str(shim.get("hpa", "beckon-shim")), within=90)
            assert shim.get("deployment", "beckon-shim")["spec"]["replicas"] == 1
            with waiting_calls(helm.kube):
                until(
                    lambda: shim.get("deployment", "beckon-shim")["status"].get("readyReplicas") == 3,
                    within=180,
                    what="three ready shims",
                )
    finally:
        helm.remove()


@contextmanager
def metrics_served(kube: Kube) -> Iterator[None]:
    """Serve the metrics of pods to the autoscaler."""
    host, now = f"metrics.{kube.namespace}.svc", datetime.now(UTC)
    authority = new_authority(timedelta(days=1), now)
    serving = new_serving(authority, [host], timedelta(hours=1), now)
    pair = {"tls.pem": b64encode(serving.certificate_pem + serving.key_pem).decode()}
    kube.apply(json.dumps(object_("v1", "Secret", "certificate", data=pair)))
    kube.apply(json.dumps(object_("v1", "ConfigMap", "adapter", data={"adapter.py": ADAPTER})))
    kube.apply(json.dumps(server(kube.namespace)))
    kube.run("expose", "pod", "metrics", "--port=443", "--target-port=6443")
    kube.within(NAMESPACE).run(
        "create", "rolebinding", "metrics", "--clusterrole=view", f"--serviceaccount={kube.namespace}:default"
    )
    kube.wait("pod/metrics")
    service = {"name": "metrics", "namespace": kube.namespace}
    spec = {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta2",
        "service": service,
        "caBundle": b64encode(authority.certificate_pem).decode(),
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    kube.apply(json.dumps(object_("apiregistration.k8s.io/v1", "APIService", API, spec=spec)))
    try:
        kube.wait(f"apiservice/{API}", condition="Available")
        yield
    finally:
        kube.run("delete", "apiservice", API)


@contextmanager
def waiting_calls(kube: Kube) -> Iterator[None]:
    """Have calls wait for a tool that never answers."""
    event_type = {"type": "silence", "description": "Never answer."}
    trigger = {
        "broker": "default",
        "filter": {"attributes": {"type": "silence"}},
        "subscriber": {"ref": {"apiVersion": "v1", "kind": "Service", "name": "silence"}},
    }
    try:
        run(kube, "silence", SILENCE, "--expose", "--port=8080")
        kube.apply(json.dumps(object_("eventing.knative.dev/v1", "Trigger", "silence", spec=trigger)))
        document = object_("eventing.knative.dev/v1beta2", "EventType", "silence", spec=event_type)
        document["metadata"]["annotations"] = {"beckon.dev/timeout": "180"}
        kube.apply(json.dumps(document))
        until(lambda: kube.find("tool", "silence"), what="the Tool")
        kube.wait("tool/silence")
        run(kube, "callers", CALLERS.replace("KEY", first_key(kube)))
        yield
    finally:
        kube.run("delete", "pod", "callers", "silence", "--ignore-not-found", "--now")
        kube.run("delete", "service,trigger,eventtype", "silence", "--ignore-not-found")


def run(kube: Kube, name: str, program: str, *flags: str) -> None:
    """Run a Python program in a pod."""
    words = ("run", name, f"--image={TOOLS_IMAGE}", "--restart=Never", *flags, "--command", "--")
    kube.run(*words, "python", "-c", program)


def object_(api: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **rest}


def server(namespace: str) -> dict[str, Any]:
    """Return the pod that serves metrics."""
    volumes = [
        {"name": "program", "configMap": {"name": "adapter"}},
        {"name": "certificate", "secret": {"secretName": "certificate"}},
    ]
    container = {
        "name": "adapter",
        "image": TOOLS_IMAGE,
        "command": ["python", "/program/adapter.py"],
        "readinessProbe": {"tcpSocket": {"port": 6443}},
        "volumeMounts": [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes],
    }
    metadata = {"name": "metrics", "namespace": namespace, "labels": {"app": "metrics"}}
    spec = {"containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
