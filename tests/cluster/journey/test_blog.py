"""The manifests of Knative's own blog, byte for byte, on a Knative that erases half of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.journey.weather import manifests
from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import NAMESPACE, ROOT, Platform

EXAMPLES = ROOT.parent / "shared" / "data" / "examples"
EVENT_TYPE = EXAMPLES / "blog-eventtype.yaml"
TRIGGER = EXAMPLES / "blog-trigger.yaml"
NAME = "get.current.weather"


@pytest.fixture(scope="module")
def blog(platform: Platform) -> Iterator[Platform]:
    """The blog's EventType and Trigger, applied as a reader would."""
    kube = platform.kube
    kube.apply(manifests())
    kube.wait("ksvc/get-current-weather", timeout=120)
    for manifest in (EVENT_TYPE, TRIGGER):
        kube.apply(manifest)
    yield platform
    for manifest in (EVENT_TYPE, TRIGGER):
        kube.run("delete", "--wait=false", "-f", str(manifest))
    kube.run("delete", "--wait=false", "-f", "-", stdin=manifests())


def test_it_becomes_a_ready_tool_with_both_parameters(blog: Platform) -> None:
    ready(blog.kube)

    tool = blog.kube.get("tool", NAME)

    assert set(tool["spec"]["parameters"]["properties"]) == {"location", "unit"}
    until(lambda: not unmet(blog.kube), what="every condition")


def test_knative_has_erased_the_schema_by_then(blog: Platform) -> None:
    """Otherwise the rest would prove nothing."""
    until(lambda: "schemaData" not in stored(blog.kube)["spec"], what="the loss of spec.schemaData")

    assert "beckon.dev/schema-data" in stored(blog.kube)["metadata"]["annotations"]


def test_it_stays_so_after_a_label_and_a_restart_of_the_operator(blog: Platform) -> None:
    ready(blog.kube)
    blog.kube.run("label", "--overwrite", "eventtype", NAME, "team=weather")
    until(lambda: label(blog.kube) == "weather", what="the label on the Tool")
    installed = blog.kube.within(NAMESPACE)

    installed.run("rollout", "restart", "deployment/beckon-operator")
    installed.run("rollout", "status", "deployment/beckon-operator", "--timeout=120s")
    blog.kube.run("label", "--overwrite", "eventtype", NAME, "team=clouds")
    until(lambda: label(blog.kube) == "clouds", what="the new operator's work")

    tool = blog.kube.get("tool", NAME)
    assert condition(tool, "Ready")[0] == "True"
    assert set(tool["spec"]["parameters"]["properties"]) == {"location", "unit"}


def test_a_chat_is_answered_by_way_of_the_broker(blog: Platform) -> None:
    ready(blog.kube)
    offered(blog)

    answer = blog.ask("What is the current weather in Boston, MA?")

    assert "eleven small clouds" in answer
    assert "Boston" in answer


def test_kubectl_shows_it_in_one_readable_line(blog: Platform) -> None:
    ready(blog.kube)

    lines = blog.kube.run("get", "tools", NAME).splitlines()

    assert lines[0].split() == ["NAME", "TYPE", "READY", "REASON", "AGE"]
    assert lines[1].split()[:4] == [NAME, NAME, "True", "Ready"]


def test_a_tool_that_lost_its_trigger_is_offered_no_more_and_says_why(blog: Platform) -> None:
    ready(blog.kube)

    blog.kube.run("delete", "-f", str(TRIGGER))
    until(lambda: condition(blog.kube.find("tool", NAME), "Ready")[1] == "NoTrigger", what="NoTrigger")
    until(lambda: "get_current_weather" not in names(blog), what="its leaving the catalogue")
    blog.kube.apply(TRIGGER)

    ready(blog.kube)
    offered(blog)


def unmet(kube: Kube) -> list[tuple[str, str, str]]:
    """Return the conditions of the Tool that are not True."""
    tool = kube.get("tool", NAME)
    found = [condition(tool, kind) for kind in ("Declared", "Routed", "Answerable", "DeadLettered", "Ready")]
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


def offered(platform: Platform) -> None:
    until(lambda: "get_current_weather" in names(platform), what="the tool in the agent's catalogue")


def test_the_manifests_are_those_of_the_blog() -> None:
    texts = [Path(manifest).read_text(encoding="utf-8") for manifest in (EVENT_TYPE, TRIGGER)]

    assert "annotations" not in texts[0]
    assert "schemaData" in texts[0]
