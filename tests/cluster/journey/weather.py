"""A service, its EventType and its Trigger; the service repeats its arguments, which is enough here."""

import json
from pathlib import Path

from tests.cluster.images.inputs import reference

MANIFESTS = Path(__file__).parent / "manifests"
EVENT_TYPE = MANIFESTS / "event-type.yaml"
TRIGGER = MANIFESTS / "trigger.yaml"

SOURCE = '''
from beckon_tools import tool


@tool(type="get.current.weather")
async def get_current_weather(location: str, unit: str = "celsius") -> dict[str, str]:
    """Get the current weather in a given location."""
    return {"location": location, "unit": unit, "sky": "eleven small clouds"}
'''


def manifests() -> str:
    """Return the Knative Service `get-current-weather`, its code in a ConfigMap."""
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "weather-source"},
        "data": {"weather.py": SOURCE},
    }
    container = {
        "image": reference("tools"),
        "command": ["python", "-m", "beckon_tools"],
        "args": ["serve", "weather:get_current_weather", "--host=0.0.0.0"],
        "env": [{"name": "PYTHONPATH", "value": "/source"}],
        "ports": [{"containerPort": 8080}],
        "volumeMounts": [{"name": "source", "mountPath": "/source", "readOnly": True}],
        "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}},
    }
    volume = {"name": "source", "configMap": {"name": "weather-source"}}
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            "name": "get-current-weather",
            "labels": {"networking.knative.dev/visibility": "cluster-local"},
        },
        "spec": {"template": {"spec": {"containers": [container], "volumes": [volume]}}},
    }
    return f"{json.dumps(configuration)}\n---\n{json.dumps(service)}"
