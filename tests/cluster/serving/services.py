"""The manifests of tools that are Knative Services, made for one test each."""

import json
import textwrap
from dataclasses import dataclass, field

IMAGE = "dev.local/beckon-tools:0.1.0"
WINDOW = "10s"  # after so long without a call a Service goes to sleep; 6s is the least


@dataclass(frozen=True)
class Service:
    """A calculator behind a Trigger; `delay` makes it start slowly, `settings` make revisions differ."""

    name: str
    delay: float = 0
    settings: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)

    def all(self) -> str:
        """Return all that makes it a tool."""
        return "\n---\n".join((self.source(), self.event_type(), self.trigger(), self.service()))

    def source(self) -> str:
        """Return the ConfigMap with its code: a tool answers events of its own type alone."""
        code = f"""
            from beckon_tools import tool
            from beckon_tools.shipped.calculator import calculator


            @tool(type={self.name!r})
            async def answer(expression: str) -> dict[str, object]:
                \"\"\"Calculate.\"\"\"
                return dict(await calculator.function(expression))
            """
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{self.name}-source"},
                "data": {"source.py": textwrap.dedent(code)},
            }
        )

    def event_type(self) -> str:
        """Return its EventType, with one parameter."""
        parameters = {"type": "object", "properties": {"expression": {"type": "string"}}}
        return json.dumps(
            {
                "apiVersion": "eventing.knative.dev/v1beta2",
                "kind": "EventType",
                "metadata": {
                    "name": self.name,
                    "annotations": {"beckon.dev/parameters": json.dumps(parameters), **self.annotations},
                },
                "spec": {"type": self.name, "description": f"Calculates, as {self.name}."},
            }
        )

    def trigger(self) -> str:
        """Return the Trigger that brings its calls to the Service itself."""
        subscriber = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": self.name}
        return json.dumps(
            {
                "apiVersion": "eventing.knative.dev/v1",
                "kind": "Trigger",
                "metadata": {"name": self.name},
                "spec": {
                    "broker": "default",
                    "filter": {"attributes": {"type": self.name}},
                    "subscriber": {"ref": subscriber},
                },
            }
        )

    def service(self) -> str:
        """Return the Knative Service, started by a shell that can be slow."""
        serve = "exec python -m beckon_tools serve source:answer --host=0.0.0.0"
        command = self.command or ("sh", "-c", f"sleep {self.delay}; {serve}")
        container = {
            "image": IMAGE,
            "command": list(command),
            "ports": [{"containerPort": 8080}],
            "env": [
                {"name": name, "value": value}
                for name, value in {"PYTHONPATH": "/source", **self.settings}.items()
            ],
            "volumeMounts": [{"name": "source", "mountPath": "/source", "readOnly": True}],
            "readinessProbe": {"httpGet": {"path": "/readyz"}},
            "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}},
        }
        template = {
            "metadata": {
                "annotations": {
                    "autoscaling.knative.dev/min-scale": "0",
                    "autoscaling.knative.dev/window": WINDOW,
                }
            },
            "spec": {
                "timeoutSeconds": 60,
                "containers": [container],
                "volumes": [{"name": "source", "configMap": {"name": f"{self.name}-source"}}],
            },
        }
        return json.dumps(
            {
                "apiVersion": "serving.knative.dev/v1",
                "kind": "Service",
                "metadata": {
                    "name": self.name,
                    "labels": {"networking.knative.dev/visibility": "cluster-local"},
                },
                "spec": {"template": template},
            }
        )
