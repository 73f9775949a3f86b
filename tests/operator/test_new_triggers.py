"""A Trigger of Knative's default Broker counts once it has been Ready for some seconds."""

import asyncio
import time
from typing import Any

import pytest

from beckon_operator.conditions.last_ready import SETTLING_SECONDS
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.metrics import Metrics
from beckon_operator.tools import tool_document, wanted_tool
from tests.operator.documents import (
    RULES,
    Document,
    broker,
    event_type,
    ready,
    reply_trigger,
    trigger,
)
from tests.operator.judged import KINDS, Judged, words
from tests.operator.test_tools import NOW, stored
from tests.patience import until

HALF = SETTLING_SECONDS / 2
WAITS = ("False", "TriggerNotReady")
READY = ("True", "Ready")


def knative_broker(class_: str = "MTChannelBasedBroker", **metadata: Any) -> Document:
    return broker(annotations={"eventing.knative.dev/broker.class": class_}, **metadata)


def new_tool() -> Judged:
    """Return a Broker that has served for long, and a new Trigger with its EventType."""
    judged = Judged(knative_broker(), reply_trigger(), trigger("other", "other"), event_type("other"))
    judged.wait(SETTLING_SECONDS)
    assert words(judged.verdict("other").ready) == READY
    judged.see(trigger(), event_type())
    return judged


def test_its_tool_is_ready_after_this_time_and_says_so_until_then() -> None:
    judged = new_tool()

    assert words(judged.condition("Ready")) == WAITS
    assert "Trigger 'weather' passes it and is not ready" in judged.condition("Ready").message
    assert "Ready for less than 3 s" in judged.condition("Ready").message
    judged.wait(HALF)
    assert words(judged.condition("Ready")) == WAITS
    judged.wait(HALF)
    assert words(judged.condition("Ready")) == READY


@pytest.mark.parametrize("class_", ["Beckon", "Kafka", "RabbitMQBroker"])
def test_a_trigger_of_another_class_counts_at_once(class_: str) -> None:
    judged = Judged(knative_broker(class_), reply_trigger(), trigger(), event_type())

    assert words(judged.condition("Ready")) == READY


def test_a_change_beside_it_neither_shortens_nor_lengthens_the_time() -> None:
    judged = new_tool()
    judged.wait(HALF)
    judged.see(trigger("third", "third"), event_type("third"))
    assert words(judged.condition("Ready")) == WAITS

    judged.wait(HALF)

    assert words(judged.condition("Ready")) == READY
    assert words(judged.verdict("third").ready) == WAITS
    judged.wait(HALF)
    assert words(judged.verdict("third").ready) == READY


def test_the_time_begins_again_when_the_trigger_is_not_ready_in_between() -> None:
    judged = new_tool()
    judged.wait(HALF)
    judged.see(trigger(status=ready("False", "NotSubscribed")))
    judged.see(trigger())

    judged.wait(HALF)

    assert words(judged.condition("Ready")) == WAITS
    judged.wait(HALF)
    assert words(judged.condition("Ready")) == READY


@pytest.mark.parametrize("change", [{"generation": 2}, {"uid": "another"}], ids=["rewritten", "made-anew"])
def test_a_changed_trigger_has_to_stay_ready_again(change: dict[str, Any]) -> None:
    judged = new_tool()
    judged.wait(SETTLING_SECONDS)

    judged.see(trigger(**change))

    assert words(judged.condition("Ready")) == WAITS
    judged.wait(SETTLING_SECONDS)
    assert words(judged.condition("Ready")) == READY


def test_an_outage_of_a_trigger_that_counts_takes_no_tool_away() -> None:
    judged = new_tool()
    judged.wait(SETTLING_SECONDS)

    judged.see(trigger(status=ready("False", "Gone")))
    assert words(judged.condition("Ready")) == ("True", "TriggerUnavailable")
    judged.see(trigger())

    assert words(judged.condition("Ready")) == READY


def test_a_new_reply_trigger_waits_too() -> None:
    judged = Judged(knative_broker(), trigger(), event_type())
    judged.wait(SETTLING_SECONDS)
    judged.see(reply_trigger())

    assert words(judged.condition("Ready")) == ("False", "ReplyTriggerNotReady")
    judged.wait(SETTLING_SECONDS)
    assert words(judged.condition("Ready")) == READY


def test_an_operator_that_starts_takes_no_offered_tool_away() -> None:
    judged = new_tool()
    judged.wait(SETTLING_SECONDS)
    tool = stored(tool_document(wanted_tool(judged.verdict()), None, NOW))

    restarted = Judged(tool, knative_broker(), reply_trigger(), trigger(), event_type())

    assert words(restarted.condition("Ready")) == READY


def test_a_namespace_without_tools_is_not_judged_again() -> None:
    judged = Judged(knative_broker(), trigger())
    again: list[str] = []
    judged.judge.add_observer(lambda namespace, _: again.append(namespace))

    judged.wait(SETTLING_SECONDS)

    assert again == []


async def test_the_operator_judges_again_by_itself_when_the_time_is_over() -> None:
    desired = DesiredState()
    judge = Judge(desired, RULES, Metrics())
    for document in (knative_broker(), reply_trigger(), trigger(), event_type()):
        judge.cluster.observe_object(KINDS[document["kind"]], document)
    states: list[tuple[float, tuple[str, str]]] = []
    judge.add_observer(
        lambda _, verdicts: states.extend((time.monotonic(), words(one.ready)) for one in verdicts)
    )
    judging = asyncio.create_task(judge.judge_changes())
    try:
        await until(lambda: states and states[-1][1] == READY)
    finally:
        judging.cancel()

    assert [state for _, state in states] == [WAITS, READY]
    assert states[1][0] - states[0][0] >= SETTLING_SECONDS
