"""A tool of a few lines in a pod: its source in a ConfigMap, run by the image of tools."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.cluster.images.inputs import reference
from tests.cluster.kube import until
from tests.cluster.platform import Platform

PLAIN = ["source:app", "--host=0.0.0.0", "--port=8080", "--lifespan=off"]
"""The arguments of uvicorn for a source without the SDK."""


@dataclass(frozen=True)
class PodTool:
    """A function of the SDK's that has the name of its tool and of its type; `parameters` is JSON Schema.

    With `plain` the source is an ASGI application `app` instead, served without the SDK.
    """

    name: str
    source: str
    parameters: str
    environment: Mapping[str, str] = field(default_factory=dict)
    plain: bool = False

    def documents(self) -> list[dict[str, object]]:
        """Return all that it needs, its EventType and its Trigger included."""
        named = {"name": self.name}
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"source.py": self.source}},
            self._deployment(named, {"app": self.name}),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": named,
                "spec": {"selector": {"app": self.name}, "ports": [{"port": 80, "targetPort": 8080}]},
            },
            {
                "apiVersion": "eventing.knative.dev/v1",
                "kind": "Trigger",
                "metadata": named,
                "spec": {
                    "broker": "default",
                    "filter": {"attributes": {"type": self.name}},
                    "subscriber": {"ref": {"apiVersion": "v1", "kind": "Service", "name": self.name}},
                },
            },
            {
                "apiVersion": "eventing.knative.dev/v1beta2",
                "kind": "EventType",
                "metadata": {**named, "annotations": {"beckon.dev/parameters": self.parameters}},
                "spec": {"type": self.name, "description": f"Use {self.name}."},
            },
        ]

    def _deployment(self, named: dict[str, str], labels: dict[str, str]) -> dict[str, object]:
        environment = {"PYTHONPATH": "/source", **self.environment}
        container = {
            "name": "tool",
            "image": reference("tools"),
            "command": ["python", "-m", "uvicorn" if self.plain else "beckon_tools"],
            "args": PLAIN if self.plain else ["serve", f"source:{self.name}", "--host=0.0.0.0"],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "volumeMounts": [{"name": "source", "mountPath": "/source", "readOnly": True}],
        }
        pod = {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "volumes": [{"name": "source", "configMap": named}]},
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": named,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        }


@contextmanager
def offered(platform: Platform, tool: PodTool) -> Iterator[None]:
    """Have a tool until the end of the block, beginning when the agent offers it."""
    kube = platform.kube
    for document in tool.documents():
        kube.apply(json.dumps(document))
    try:
        kube.run("rollout", "status", f"deployment/{tool.name}", "--timeout=90s", timeout=100)
        until(lambda: kube.find("tool", tool.name), what="the Tool")
        kube.wait(f"tool/{tool.name}")
        platform.wait_until_offered(tool.name)
        yield
    finally:
        kube.run("delete", "deployment,service,configmap,trigger,eventtype", tool.name, "--ignore-not-found")
