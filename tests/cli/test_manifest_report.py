"""What `beckon up` says about an edit of the manifests that takes a tool away."""

from collections.abc import Callable
from pathlib import Path

import pytest

from beckon_cli.local.manifest_report import ManifestReport
from beckon_cli.local.services import wanted
from beckon_sources.folders import ManifestFolders

GREET = """\
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: greet
  annotations:
    beckon.dev/parameters: '{"name": {"type": "string"}}'
spec:
  type: greet
  description: Greet a person.
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata:
  name: greet
spec:
  broker: default
  filter:
    attributes:
      type: greet
  subscriber:
    ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: greet}
"""
SERVICE = """\
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: greet
  annotations:
    beckon.dev/local-command: python -m greeting
"""
Edit = Callable[[str], list[str]]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    """Write a manifest, and return what is said about it without the folder's name."""
    report, folder, file = ManifestReport("/caller"), ManifestFolders((tmp_path,)), tmp_path / "greet.yaml"

    def write(text: str) -> list[str]:
        file.write_text(text)
        folder.refresh()
        lines = report.review(folder.resources, wanted(folder.resources))
        return [line.replace(f"{tmp_path}/", "") for line in lines]

    assert write(GREET + SERVICE) == []
    return write


@pytest.mark.parametrize(
    ("old", "new", "place", "cure"),
    [
        (
            "}}'",
            "}'",
            "EventType default/greet (greet.yaml, line 6) metadata.annotations[beckon.dev/parameters]: is",
            "write the JSON Schema in annotation beckon.dev/parameters",
        ),
        (
            "      type: greet",
            "      type: great",
            "EventType default/greet (greet.yaml, line 8) spec.type: no Trigger brings events of type",
            "its filter wants 'great', the call has 'greet'; write a Trigger with",
        ),
        (
            "broker: default",
            "broker: ",
            "EventType default/greet (greet.yaml, line 8) spec.type: ",
            "spec.broker",
        ),
        (
            "  description: Greet a person.\n",
            "",
            "EventType default/greet (greet.yaml, line 7) spec: no spec.description",
            "write one",
        ),
        (
            SERVICE,
            SERVICE.replace("name: greet", "name: greets"),
            "Trigger default/greet (greet.yaml, line 20) spec.subscriber: nothing serves default/greet here: "
            "no manifest has the Service default/greet; did you mean greets?; write one",
            "with beckon.dev/local-command or beckon.dev/local-url",
        ),
        (
            "python -m greeting",
            "'echo \"greeting'",
            "Service default/greet (greet.yaml, line 28) metadata.annotations[beckon.dev/local-command]: ",
            "its annotation beckon.dev/local-command is no command: No closing quotation",
        ),
        (
            "  annotations:\n    beckon.dev/local-command: python -m greeting\n",
            "",
            "Service default/greet (greet.yaml, line 25) metadata.annotations[beckon.dev/local-command]: ",
            "annotate its Service with beckon.dev/local-command or beckon.dev/local-url",
        ),
    ],
)
def test_an_edit_that_takes_a_tool_away_is_reported_once_with_file_line_and_cure(
    edit: Edit, old: str, new: str, place: str, cure: str
) -> None:
    broken = (GREET + SERVICE).replace(old, new)
    assert broken != GREET + SERVICE

    first, *others = edit(broken)

    assert first.startswith(f"greet is no longer offered: {place}")
    assert cure in first
    assert [line for line in others if not line.startswith("Trigger default/greet")] == []
    assert edit(broken + "---\n") == []


def test_the_same_mistake_is_reported_again_after_it_was_corrected(edit: Edit) -> None:
    broken = GREET.replace("}}'", "}'") + SERVICE

    assert len(edit(broken)) == 1
    assert edit(GREET + SERVICE) == []
    assert len(edit(broken)) == 1


def test_a_tool_that_is_deleted_is_no_mistake(edit: Edit) -> None:
    assert edit(SERVICE) == []


def test_an_error_that_takes_no_tool_away_is_reported_too(edit: Edit) -> None:
    event_type, _, _ = GREET.replace("name: greet", "name: other").replace("}}'", "}'").partition("---")

    (line,) = edit(GREET + SERVICE + "---\n" + event_type)

    assert line.startswith("EventType default/other (greet.yaml, line 35) metadata.annotations[")


def test_a_tool_that_another_trigger_still_brings_is_not_reported_as_taken_away(edit: Edit) -> None:
    _, _, trigger = GREET.partition("---\n")
    second = trigger.replace("name: greet\n", "name: log\n").replace("name: greet}", "name: log}")

    (line,) = edit(GREET + "---\n" + second + SERVICE)

    assert line.startswith(
        "Trigger default/log (greet.yaml, line 32) spec.subscriber: nothing serves default/log"
    )
