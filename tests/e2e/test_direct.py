"""An EventType that asks for direct dispatch: its Service is called, and no Trigger is there at all."""

import yaml

from tests.e2e.conftest import Workbench
from tests.e2e.manifests import tool_manifests
from tests.e2e.test_platform import beckon

DIRECT = {"beckon.dev/dispatch": "direct"}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
SERVE = "python -m beckon_tools serve tests.e2e.tools:"


def without_trigger(text: str) -> str:
    remaining = [document for document in yaml.safe_load_all(text) if document["kind"] != "Trigger"]
    return yaml.safe_dump_all(remaining)


def test_a_direct_tool_is_called_with_no_trigger_at_all(workbench: Workbench) -> None:
    sleep = tool_manifests("test-sleep", "Sleep.", SECONDS, command=SERVE + "sleep", annotations=DIRECT)

    with workbench.tools("test_sleep", sleep=without_trigger(sleep)):
        (tool,) = workbench.platform.tools()
        answer = beckon("call", "test_sleep", "seconds=0", platform=workbench.platform)

    assert tool["triggers"] == []
    assert answer.stdout == '"slept 0 seconds"\n', answer.stderr


def test_a_direct_tool_that_ships_runs_because_an_eventtype_names_it(workbench: Workbench) -> None:
    eventtype = {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {"name": "clock", "annotations": DIRECT},
        "spec": {
            "type": "current.time",
            "description": "Tell the time.",
            "reference": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "current-time"},
        },
    }

    with workbench.tools("clock", clock=yaml.safe_dump(eventtype)):
        answer = beckon("call", "clock", platform=workbench.platform)

    assert answer.returncode == 0, answer.stderr
    assert "UTC" in answer.stdout
