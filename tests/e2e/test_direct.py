"""An EventType that asks for direct dispatch: its Service is called, and no Trigger is there at all."""

from pathlib import Path

import yaml

from tests.e2e.conftest import Start
from tests.e2e.manifests import tool_manifests
from tests.e2e.test_platform import beckon
from tests.patience import wait_until

DIRECT = {"beckon.dev/dispatch": "direct"}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
SERVE = "python -m beckon_tools serve tests.e2e.tools:"


def without_trigger(text: str) -> str:
    kept = [document for document in yaml.safe_load_all(text) if document["kind"] != "Trigger"]
    return yaml.safe_dump_all(kept)


def test_a_direct_tool_is_called_with_no_trigger_at_all(start_platform: Start, tmp_path: Path) -> None:
    sleep = tool_manifests("test-sleep", "Sleep.", SECONDS, command=SERVE + "sleep", annotations=DIRECT)
    (tmp_path / "sleep.yaml").write_text(without_trigger(sleep))
    platform = start_platform(tmp_path)
    (tool,) = platform.tools()
    assert (tool["name"], tool["triggers"]) == ("test_sleep", [])

    answer = beckon("call", "test_sleep", "seconds=0", platform=platform)

    assert answer.stdout == '"slept 0 seconds"\n', answer.stderr
    (tmp_path / "sleep.yaml").unlink()
    wait_until(lambda: platform.tool_names() == set())


def test_a_direct_tool_that_ships_runs_because_an_eventtype_names_it(
    start_platform: Start, tmp_path: Path
) -> None:
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
    (tmp_path / "clock.yaml").write_text(yaml.safe_dump(eventtype))
    platform = start_platform(tmp_path)
    assert platform.tool_names() == {"clock"}

    answer = beckon("call", "clock", platform=platform)

    assert answer.returncode == 0, answer.stderr
    assert "UTC" in answer.stdout
