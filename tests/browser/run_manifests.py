"""The manifests for the tests of the views Tools and Runs: good tools, and broken routes."""

from pathlib import Path
from typing import Any

from tests.e2e.manifests import tool_manifests

_SERVE = "python -m beckon_tools serve tests.browser.run_tools:"
_ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "description": "What is wanted.", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "gift": {"type": "boolean", "default": False},
        "place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "Norway"}},
            "required": ["city"],
        },
        "notes": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["item"],
}
_SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
_NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
_SEAT = {"type": "object", "properties": {"seat": {"type": "string"}}, "required": ["seat"]}
_FILE = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
_HOLDS = {"beckon.dev/read-only": "true", "beckon.dev/timeout": "100s"}
_READS = {"beckon.dev/read-only": "true"}
_LONELY = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata: {name: test.lonely}
spec: {type: test.lonely, description: "No one routes it."}
"""
_FAR = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata: {name: test.far}
spec: {type: test.far, description: "Its service is not there."}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: test-far}
spec:
  broker: default
  filter: {attributes: {type: test.far}}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: test-far}}
"""
_HALF = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata: {name: test.half, annotations: {beckon.dev/parameters: "{no json"}}
spec: {type: test.half, description: "Its parameters cannot be read."}
"""


def run_manifests(folder: Path) -> None:
    """Write them."""
    for name, description, parameters, attribute, annotations in (
        ("order", "Order something from the shop.", _ORDER, "order", _READS),
        ("pause", "Take some time.", _SECONDS, "pause", _READS),
        ("hold", "Wait until there is a file.", _FILE, "hold", _HOLDS),
        ("next", "Answer with another number every time.", {}, "next_number", _READS),
        ("square", "Multiply a number by itself.", _NUMBER, "square", _READS),
        ("refuse", "Refuse.", {}, "refuse", {}),
        ("moody", "Answer at the third delivery.", {}, "moody", _READS),
        ("book", "Book a seat.", _SEAT, "book", {"beckon.dev/requires-approval": "true"}),
    ):
        text = tool_manifests(
            f"test-{name}", description, parameters, command=f"{_SERVE}{attribute}", annotations=annotations
        )
        (folder / f"{name}.yaml").write_text(text)
    dead = tool_manifests("test-dead", "No one is there.", {}, url="http://127.0.0.1:9")
    (folder / "dead.yaml").write_text(dead)
    for name, text in (("lonely", _LONELY), ("far", _FAR), ("half", _HALF)):
        (folder / f"{name}.yaml").write_text(text)
