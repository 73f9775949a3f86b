"""Custom metrics of pods, as an autoscaler asks for them: a stand-in for Prometheus and its adapter.

Runs in a pod of the tests, on the standard library alone: `python adapter.py`. It answers what the
autoscaler asks of `custom.metrics.k8s.io/v1beta2` by asking the pods themselves at port 8083.
"""

import json
import re
import ssl
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GROUP = "custom.metrics.k8s.io/v1beta2"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CERTIFICATE = "/certificate/tls.pem"
METRICS_PATH = re.compile(rf"/apis/{GROUP}/namespaces/([^/]+)/pods/\*/([^/]+)")


def pods(namespace: str, selector: str) -> list[tuple[str, str]]:
    """Return name and IP of the pods that run and have these labels."""
    query = urllib.parse.urlencode({"labelSelector": selector})
    url = f"https://kubernetes.default.svc/api/v1/namespaces/{namespace}/pods?{query}"
    token = (ACCOUNT / "token").read_text()
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        found = json.load(answer)["items"]
    return [(pod["metadata"]["name"], pod["status"]["podIP"]) for pod in found if pod["status"].get("podIP")]


def value(address: str, metric: str) -> int | None:
    """Return a gauge of a pod, `None` while it answers nothing."""
    try:
        with urllib.request.urlopen(f"http://{address}:8083/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    found = re.search(rf"^{metric} (\S+)$", text, re.MULTILINE)
    return None if found is None else int(float(found[1]))


def metrics(namespace: str, metric: str, selector: str) -> dict[str, Any]:
    """Return the metric of every pod as a MetricValueList."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    items = [
        {
            "describedObject": {"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "/v1"},
            "metric": {"name": metric},
            "timestamp": now,
            "value": str(found),
        }
        for name, address in pods(namespace, selector)
        if (found := value(address, metric)) is not None
    ]
    return {"kind": "MetricValueList", "apiVersion": GROUP, "metadata": {}, "items": items}


class Handler(BaseHTTPRequestHandler):
    """Answers the discovery of the group, and the one question."""

    def do_GET(self) -> None:
        """Answer."""
        path, _, query = self.path.partition("?")
        sent = METRICS_PATH.fullmatch(urllib.parse.unquote(path))
        selector = urllib.parse.parse_qs(query).get("labelSelector", [""])[0]
        if sent:
            document = metrics(sent[1], sent[2], selector)
        else:
            document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP, "resources": []}
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("", 6443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
