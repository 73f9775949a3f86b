"""Every status that the class writes has the conditions that Knative's API conventions ask.

knative/specs, specs/common/error-signalling.md. All versions of the statuses count, the passing ones too.
"""

from collections.abc import Iterator
from typing import Any

from tests.operator.broker_class.class_platform import ClassPlatform, class_platform, until
from tests.operator.broker_class.test_class import ADDRESS, KSERVICE, URI, apply_broker, apply_trigger

Document = dict[str, Any]


async def pass_many_states(platform: ClassPlatform) -> None:
    """Bring Brokers and Triggers through most of their states, up to Ready."""
    await platform.start_pod("deaf", follows=False)
    await apply_broker(platform)
    await apply_broker(platform, "letters", delivery={"deadLetterSink": {"ref": KSERVICE}})
    await apply_trigger(platform)
    await apply_trigger(platform, "missing", {"ref": KSERVICE})
    await apply_trigger(platform, "oidc", {**URI, "audience": "tools"})
    await apply_trigger(platform, "letters", delivery={"deadLetterSink": {"ref": KSERVICE}})
    await platform.wait_for("brokers", "letters", "False")
    await platform.wait_for("triggers", "weather", "Unknown")
    await platform.stop_pod("deaf")
    await platform.wait_for("triggers", "weather", "True")
    for name in ("missing", "oidc", "letters"):
        await platform.wait_for("triggers", name, "False")
    await platform.publish("services", "weather", ADDRESS)
    await platform.wait_for("brokers", "letters", "True")
    for name in ("missing", "letters"):
        await platform.wait_for("triggers", name, "True")


def written_statuses(platform: ClassPlatform) -> Iterator[Document]:
    """Yield every status that was written."""
    for _, _, plural, document in platform.api.events:
        if plural in ("brokers", "triggers") and (status := document.get("status")):
            yield status


def judge_status(status: Document) -> list[str]:
    """Return what is wrong with the conditions of a status."""
    conditions = status["conditions"]
    found = {one["type"]: one["status"] for one in conditions}
    others = {state for name, state in found.items() if name != "Ready"}
    ready = found.get("Ready")
    problems = [] if len(found) == len(conditions) else ["a type is there twice"]
    if ready not in ("True", "False", "Unknown"):
        problems.append("there is no condition Ready")
    if "False" in others and ready != "False":
        problems.append(f"Ready is {ready}, although a condition is False: {found}")
    if "Unknown" in others and ready == "True":
        problems.append(f"Ready is True, although a condition is Unknown: {found}")
    silent = [one for one in conditions if not (one.get("reason") and one.get("message"))]
    return problems + [f"no reason or message: {one}" for one in silent if one["status"] != "True"]


async def test_conditions_are_those_of_knatives_api() -> None:
    async with class_platform() as platform:
        await pass_many_states(platform)
        statuses = list(written_statuses(platform))

    seen = {one["status"] for status in statuses for one in status["conditions"]}
    assert seen == {"True", "False", "Unknown"}
    assert [problem for status in statuses for problem in judge_status(status)] == []


async def test_the_conditions_of_a_status_are_of_its_generation() -> None:
    """A version with a new `observedGeneration` has the conditions of that generation already."""
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform)
        await platform.wait_for("triggers", "weather", "True")
        await apply_trigger(platform, subscriber={"ref": KSERVICE})
        await platform.wait_for("triggers", "weather", "False")
        await until(
            lambda: platform.status("triggers", "weather")["observedGeneration"] == 2,
            lambda: str(platform.status("triggers", "weather")),
        )
        versions = [
            (status["observedGeneration"], status["subscriberUri"])
            for status in written_statuses(platform)
            if "subscriberUri" in status
        ]

    assert set(versions) == {(1, URI["uri"]), (2, "")}
