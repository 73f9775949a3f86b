"""The manifests of tools that are Knative Services, made for one test each."""

import json
import textwrap
from dataclasses import dataclass, field

from tests.cluster.images.inputs import reference

IMAGE = reference("tools")
WINDOW = "10s"  # after so long without a call a Service goes to sleep; 6s is the least


@dataclass(frozen=True)
class Service:
    """A calculator behind a Trigger; `delay` makes it start slowly, `settings` make revisions differ.

    A `direct` one has no Trigger: its EventType names it.
    """

    name: str
    delay: float = 0
    settings: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    direct: bool = False

    def all(self) -> str:
        """Return all that makes it a tool."""
        triggers = () if self.direct else (self.trigger(),)
        return "\n---\n".join((self.source(), self.event_type(), *triggers, self.service()))

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
        annotations = {"beckon.dev/parameters": json.dumps(parameters), **self.annotations}
        spec: dict[str, object] = {"type": self.name, "description": f"Calculates, as {self.name}."}
        if self.direct:
            annotations["beckon.dev/dispatch"] = "direct"
            spec["reference"] = self.reference()
        return json.dumps(
            {
                "apiVersion": "eventing.knative.dev/v1beta2",
                "kind": "EventType",
                "metadata": {"name": self.name, "annotations": annotations},
                "spec": spec,
            }
        )

    def trigger(self) -> str:
        """Return the Trigger that brings its calls to the Service itself."""
        return json.dumps(
            {
                "apiVersion": "eventing.knative.dev/v1",
                "kind": "Trigger",
                "metadata": {"name": self.name},
                "spec": {
                    "broker": "default",
                    "filter": {"attributes": {"type": self.name}},
                    "subscriber": {"ref": self.reference()},
                },
            }
        )

    def reference(self) -> dict[str, str]:
        """Return where its calls go: the Service itself."""
        return {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": self.name}

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
