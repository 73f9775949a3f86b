"""An EventType with its parameters in schemaData, on a Knative that erases them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from beckon_contract.resources.tools import CONDITIONS
from tests.cluster.journey.weather import EVENT_TYPE, TRIGGER
from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import NAMESPACE, Platform
from tests.shared_data import shared_data

NAME = "get.current.weather"


def test_it_becomes_a_ready_tool_with_both_parameters(installed: Platform) -> None:
    ready(installed.kube)

    tool = installed.kube.get("tool", NAME)

    assert set(tool["spec"]["parameters"]["properties"]) == {"location", "unit"}
    # The operator probes a Broker once a minute: RepliesArrive is Unknown until then.
    until(lambda: not unmet(installed.kube), within=90, what="every condition")


def test_knative_has_erased_the_schema_by_then(installed: Platform) -> None:
    """Otherwise the rest would prove nothing."""
    until(lambda: "schemaData" not in stored(installed.kube)["spec"], what="the loss of spec.schemaData")

    assert "beckon.dev/schema-data" in stored(installed.kube)["metadata"]["annotations"]


def test_it_stays_so_after_a_label_and_a_restart_of_the_operator(installed: Platform) -> None:
    ready(installed.kube)
    installed.kube.run("label", "--overwrite", "eventtype", NAME, "team=weather")
    until(lambda: label(installed.kube) == "weather", what="the label on the Tool")
    beckon = installed.kube.within(NAMESPACE)

    beckon.run("rollout", "restart", "deployment/beckon-operator")
    beckon.run("rollout", "status", "deployment/beckon-operator", "--timeout=120s")
    installed.kube.run("label", "--overwrite", "eventtype", NAME, "team=clouds")
    until(lambda: label(installed.kube) == "clouds", what="the new operator's work")

    tool = installed.kube.get("tool", NAME)
    assert condition(tool, "Ready")[0] == "True"
    assert set(tool["spec"]["parameters"]["properties"]) == {"location", "unit"}


def test_a_chat_is_answered_through_the_broker(installed: Platform) -> None:
    ready(installed.kube)
    installed.wait_until_offered("get_current_weather")

    answer = installed.ask("What is the current weather in Boston, MA?")

    assert "eleven small clouds" in answer
    assert "Boston" in answer


def test_kubectl_shows_it_in_one_readable_line(installed: Platform) -> None:
    ready(installed.kube)

    lines = installed.kube.run("get", "tools", NAME).splitlines()

    assert lines[0].split() == ["NAME", "TYPE", "READY", "AVAILABLE", "ANSWERING", "REASON", "AGE"]
    # ANSWERING is empty as long as no five calls in a row have failed.
    assert lines[1].split()[:5] == [NAME, NAME, "True", "True", "Ready"]


def test_a_tool_that_lost_its_trigger_is_offered_no_more_and_says_why(installed: Platform) -> None:
    ready(installed.kube)

    installed.kube.run("delete", "-f", str(TRIGGER))
    until(lambda: condition(installed.kube.find("tool", NAME), "Ready")[1] == "NoTrigger", what="NoTrigger")
    until(lambda: "get_current_weather" not in names(installed), what="its leaving the catalogue")
    installed.kube.apply(TRIGGER)

    ready(installed.kube)
    installed.wait_until_offered("get_current_weather")


def unmet(kube: Kube) -> list[tuple[str, str, str]]:
    """Return the conditions of the Tool that are not True."""
    tool = kube.get("tool", NAME)
    found = [condition(tool, kind) for kind in CONDITIONS]
    return [one for one in found if one[0] != "True"]


def ready(kube: Kube) -> None:
    until(lambda: kube.find("tool", NAME), what="the Tool")
    kube.wait(f"tool/{NAME}", timeout=60)


def stored(kube: Kube) -> dict[str, dict[str, dict[str, str]]]:
    """Return the EventType in the version that is stored, as nothing but a conversion can hide a field."""
    return kube.get("eventtypes.v1beta2.eventing.knative.dev", NAME)


def label(kube: Kube) -> str:
    tool = kube.find("tool", NAME) or {}
    return str(tool.get("metadata", {}).get("labels", {}).get("team", ""))


def names(platform: Platform) -> set[str]:
    return {tool["name"] for tool in platform.tools()["tools"]}


def test_the_manifest_holds_its_parameters_where_knative_erases_them() -> None:
    text = EVENT_TYPE.read_text(encoding="utf-8")

    assert "annotations:" not in text
    assert "schemaData:" in text


@pytest.mark.parametrize(
    ("ours", "theirs"), [(EVENT_TYPE, "blog-eventtype.yaml"), (TRIGGER, "blog-trigger.yaml")]
)
def test_the_manifests_have_the_fields_of_those_of_knatives_blog(ours: Path, theirs: str) -> None:
    """Skipped where the blog's own manifests are not beside the checkout."""
    published = shared_data("examples", theirs)

    assert fields(ours) == fields(published)


def fields(manifest: Path) -> set[tuple[str, ...]]:
    """Return the paths of all fields of a manifest."""

    def walk(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from walk(inner, (*path, name))
        else:
            yield path

    return set(walk(yaml.safe_load(manifest.read_text(encoding="utf-8")), ()))
