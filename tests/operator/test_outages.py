"""A tool stays ready while Knative calls its Broker or Triggers not ready and nothing was rewritten."""

from collections.abc import Callable
from typing import Any

import pytest

from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.tools import Refusal, Tool, read_tool
from beckon_operator.desired_state import Action
from beckon_operator.tools import tool_document, wanted_tool
from tests.operator.documents import (
    KSERVICE,
    NAMESPACE,
    Document,
    broker,
    event_type,
    ready,
    reply_trigger,
    service,
    trigger,
)
from tests.operator.judged import Judged, words
from tests.operator.test_tools import NOW, stored

AWAY = ready("False", "FilterNotReady", "the endpoints of the filter are not ready")


def working() -> Judged:
    return Judged(broker(), trigger(), reply_trigger(), event_type())


def offered(judged: Judged) -> Tool | Refusal:
    """Return what an agent reads of the Tool that the operator writes."""
    return read_tool(from_object(stored(tool_document(wanted_tool(judged.verdict()), None, NOW))))


def states(judged: Judged, *names: str) -> list[tuple[str, str]]:
    return [words(judged.condition(name)) for name in names]


@pytest.mark.parametrize(
    ("outage", "reason"),
    [
        ({broker: AWAY}, "BrokerUnavailable"),
        ({trigger: AWAY}, "TriggerUnavailable"),
        ({trigger: ready("Unknown")}, "TriggerUnavailable"),
        ({reply_trigger: AWAY}, "ReplyTriggerUnavailable"),
        ({broker: AWAY, trigger: AWAY, reply_trigger: AWAY}, "BrokerUnavailable"),
        ({trigger: {}, reply_trigger: {}}, "TriggerUnavailable"),
    ],
    ids=["broker", "trigger", "unknown", "replies", "all", "statuses-lost"],
)
def test_a_tool_stays_offered_through_an_outage_and_says_so(
    outage: dict[Callable[..., Document], Document], reason: str
) -> None:
    judged = working()
    before = offered(judged)

    judged.see(*(make(status=status) for make, status in outage.items()))

    assert isinstance(before, Tool)
    assert offered(judged) == before
    assert states(judged, "Routed", "Answerable") == [("True", "Routed"), ("True", "ReplyTrigger")]
    assert states(judged, "Available", "Ready") == [("False", reason), ("True", reason)]


def test_the_outage_ends_with_everything_as_it_was() -> None:
    judged = working()
    before = judged.verdict()

    judged.see(broker(status=AWAY), trigger(status=AWAY))
    judged.see(broker(), trigger())

    assert judged.verdict().conditions == before.conditions
    assert judged.verdict().spec == before.spec


def test_the_outage_names_what_the_controller_says() -> None:
    judged = working()

    judged.see(broker(status=AWAY))

    message = judged.condition("Ready").message
    assert "Broker default is not ready for now (FilterNotReady the endpoints of the filter" in message


@pytest.mark.parametrize(
    ("gone", "reason"),
    [(trigger(), "NoTrigger"), (broker(), "BrokerNotFound"), (reply_trigger(), "NoReplyTrigger")],
    ids=["trigger", "broker", "replies"],
)
def test_what_is_deleted_takes_the_tool_away_at_once_also_in_an_outage(gone: Document, reason: str) -> None:
    judged = working()
    judged.see(broker(status=AWAY), trigger(status=AWAY), reply_trigger(status=AWAY))
    assert words(judged.condition("Ready")) == ("True", "BrokerUnavailable")

    judged.lose(gone)

    assert words(judged.condition("Ready")) == ("False", reason)
    assert isinstance(offered(judged), Refusal)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"wants": "order.placed"}, "NoTrigger"),
        ({"wants": "get.wether"}, "FilterMismatch"),
        ({"spec": {"broker": "other"}}, "BrokerNotFound"),
        ({"spec": {"subscriber": {"uri": "http://new.team.svc"}}, "status": AWAY}, "TriggerNotReady"),
    ],
    ids=["type", "misspelt", "broker", "subscriber"],
)
def test_a_trigger_that_is_rewritten_has_to_be_ready_anew(changed: dict[str, Any], reason: str) -> None:
    judged = working()

    judged.see(trigger(**changed, generation=2))

    assert words(judged.condition("Ready")) == ("False", reason)


def test_a_ready_condition_of_an_earlier_generation_proves_nothing_of_the_next() -> None:
    judged = Judged(broker(), reply_trigger(), event_type())
    earlier = {"observedGeneration": 1}
    judged.see(trigger(status=earlier | ready(), generation=2))
    judged.see(trigger(status={"observedGeneration": 2} | ready("False", "Gone"), generation=2))

    assert words(judged.condition("Ready")) == ("False", "TriggerNotReady")


def test_what_was_never_ready_never_offers_its_tool() -> None:
    judged = Judged(broker(), reply_trigger(), event_type(), trigger(status=AWAY))
    judged.see(trigger(status=ready("Unknown")))

    assert words(judged.condition("Ready")) == ("False", "TriggerNotReady")


@pytest.mark.parametrize("made_anew", [trigger, broker])
def test_what_is_made_anew_under_its_old_name_has_never_been_ready(made_anew: Any) -> None:
    judged = working()

    judged.lose(made_anew())
    judged.see(made_anew(status=AWAY, uid="another"))

    assert judged.condition("Ready").status == "False"


def test_a_subscriber_that_cannot_be_found_is_no_outage() -> None:
    judged = working()
    unresolved = {"type": "SubscriberResolved", "status": "False", "reason": "Unable", "message": "not found"}
    status: Document = {"conditions": [*ready("False", "Unable")["conditions"], unresolved]}

    judged.see(trigger(status=status))

    assert words(judged.condition("Ready")) == ("False", "TriggerNotReady")


def test_a_service_that_is_deleted_takes_its_tool_away_also_in_an_outage() -> None:
    to_service = {"subscriber": {"ref": KSERVICE}}
    judged = Judged(broker(), trigger(spec=to_service), reply_trigger(), service(), event_type())
    judged.see(broker(status=AWAY), trigger(spec=to_service, status=AWAY))
    assert words(judged.condition("Ready")) == ("True", "BrokerUnavailable")

    judged.lose(service())

    assert words(judged.condition("Ready")) == ("False", "ServiceNotFound")


def test_one_of_two_triggers_that_is_away_changes_nothing() -> None:
    judged = Judged(broker(), trigger(), trigger("second"), reply_trigger(), event_type())

    judged.see(trigger("second", status=AWAY))

    assert states(judged, "Available", "Ready") == [("True", "Available"), ("True", "Ready")]
    assert judged.verdict().spec["triggers"] == ["second", "weather"]


def test_an_operator_that_starts_in_the_outage_knows_from_the_tools_what_was_ready() -> None:
    documents = broker(), trigger(), reply_trigger(), event_type()
    tool = stored(tool_document(wanted_tool(Judged(*documents).verdict()), None, NOW))
    away = broker(status=AWAY), trigger(status=AWAY), reply_trigger(status=AWAY), event_type()

    judged = Judged(tool, *away)

    assert words(judged.condition("Ready")) == ("True", "BrokerUnavailable")
    assert words(Judged(*away).condition("Ready")) == ("False", "BrokerNotReady")


@pytest.mark.parametrize(
    "change",
    [{"generation": 2}, {"uid": "another"}],
    ids=["rewritten", "made-anew"],
)
def test_an_operator_that_starts_in_the_outage_believes_no_tool_of_what_was_rewritten(
    change: dict[str, Any],
) -> None:
    tool = stored(tool_document(wanted_tool(working().verdict()), None, NOW))

    judged = Judged(tool, broker(), reply_trigger(), trigger(status=AWAY, **change), event_type())

    assert words(judged.condition("Ready")) == ("False", "TriggerNotReady")


def test_an_outage_that_goes_on_writes_each_tool_once() -> None:
    judged = working()
    judged.see(broker(status=AWAY))
    tool = stored(tool_document(wanted_tool(judged.verdict()), None, NOW), version=10**6)

    judged.see(tool)
    judged.see(broker(status=AWAY), trigger())

    assert judged.desired.next_action(NAMESPACE, "get.weather") is Action.NOTHING


@pytest.mark.parametrize(
    "broken", [None, "x", [1], [{"kind": "Broker"}], [{"kind": 1, "name": [], "uid": {}}]]
)
def test_a_list_of_what_was_ready_that_no_operator_wrote_is_passed_over(broken: object) -> None:
    tool = stored(tool_document(wanted_tool(working().verdict()), None, NOW))
    tool["status"]["lastReady"] = broken

    judged = Judged(tool, broker(), reply_trigger(), trigger(status=AWAY), event_type())

    assert words(judged.condition("Ready")) == ("False", "TriggerNotReady")
