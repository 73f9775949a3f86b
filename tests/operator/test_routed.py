from typing import Any

import pytest

from tests.operator.documents import (
    KSERVICE,
    Document,
    broker,
    event_type,
    ready,
    reply_trigger,
    service,
    trigger,
)
from tests.operator.judged import Judged, words

TO_SERVICE = {"subscriber": {"ref": KSERVICE}}


def routed(*documents: Document) -> tuple[str, str, str]:
    found = Judged(event_type(), *documents).condition("Routed")
    return found.status, found.reason, found.message


def test_a_tool_with_everything_in_place_is_ready() -> None:
    verdict = Judged(event_type(), broker(), trigger(), reply_trigger()).verdict()

    assert [words(found) for found in verdict.conditions] == [
        ("True", "Declared"),
        ("True", "Routed"),
        ("True", "ReplyTrigger"),
        ("True", "Available"),
        ("Unknown", "NotProbed"),
        ("True", "ToShim"),
        ("True", "Ready"),
    ]
    assert verdict.spec["triggers"] == ["weather"]


@pytest.mark.parametrize(
    ("documents", "reason", "says"),
    [
        ([broker()], "NoTrigger", "write a Trigger with spec.broker: default"),
        (
            [broker(), trigger(wants="get.wether")],
            "FilterMismatch",
            "attribute type: its filter wants 'get.wether'",
        ),
        (
            [broker(), trigger(spec={"filter": {"attributes": {"type": "get.weather", "subject": "x"}}})],
            "FilterMismatch",
            "attribute subject",
        ),
        (
            [broker(), trigger(status=ready("False", "Gone", "It is gone."))],
            "TriggerNotReady",
            "Trigger 'weather' passes it and is not ready (Gone It is gone.)",
        ),
        ([broker(), trigger(status=ready("Unknown"))], "TriggerNotReady", "is not ready"),
        ([broker(), trigger(status={})], "TriggerNotReady", "Knative has not judged it yet"),
        ([broker(), trigger(spec={"subscriber": {}})], "InvalidTrigger", "spec.subscriber"),
        ([broker(), trigger(namespace="shop")], "OtherNamespace", "in namespace 'shop'"),
        ([], "BrokerNotFound", "namespace team has no Broker default; create it"),
        ([broker("other"), trigger()], "BrokerNotFound", "or name one of other in the Trigger"),
        ([broker(status={}), trigger()], "BrokerNotReady", "Knative has not judged it yet"),
        (
            [broker(status=ready("False", "NoChannel", "It has no channel.")), trigger()],
            "BrokerNotReady",
            "Broker default is not ready: NoChannel It has no channel.",
        ),
        (
            [broker(), trigger(spec=TO_SERVICE, status=ready("False", "Unable", "not found"))],
            "ServiceNotFound",
            "Knative Service weather, the subscriber of Trigger weather, does not exist in namespace team",
        ),
        (
            [
                broker(),
                trigger(spec=TO_SERVICE),
                service(status=ready("Unknown", "", "is waiting for a Revision")),
            ],
            "ServiceNotReady",
            "has no ready revision: is waiting for a Revision; see kubectl get revisions -n team",
        ),
    ],
)
def test_each_obstacle_has_a_reason_of_its_own(documents: list[Document], reason: str, says: str) -> None:
    status, found, message = routed(*documents)

    assert (status, found) == ("False", reason)
    assert says in message


def test_a_trigger_of_another_broker_is_no_route() -> None:
    declared = event_type(spec={"broker": "mine"})

    found = Judged(declared, broker("mine"), broker(), trigger()).condition("Routed")

    assert words(found) == ("False", "OtherBroker")
    assert "listens to Broker 'default'" in found.message


def test_what_is_most_to_blame_comes_first() -> None:
    missing = trigger(spec=TO_SERVICE, status=ready("False", "Unable", ""))

    assert routed(trigger(wants="get.wether"))[1] == "BrokerNotFound"
    assert "FilterMismatch" in routed(broker(status={}), trigger(wants="get.wether"))
    assert routed(broker(status={}), missing)[1] == "BrokerNotReady"


def test_a_missing_broker_does_not_hide_what_else_is_wrong() -> None:
    assert "its filter wants 'get.wether'" in routed(trigger(wants="get.wether"))[2]


def test_a_service_with_an_earlier_revision_that_is_ready_takes_calls() -> None:
    rolling = {
        "latestReadyRevisionName": "weather-00001",
        "latestCreatedRevisionName": "weather-00002",
        **ready("False"),
    }

    assert routed(broker(), trigger(spec=TO_SERVICE), service(status=rolling))[0] == "True"


def test_one_working_service_of_two_is_enough() -> None:
    other = trigger("other", spec={"subscriber": {"ref": {**KSERVICE, "name": "missing"}}})

    verdict = Judged(event_type(), broker(), trigger(), other).verdict()

    assert words(verdict.conditions[1]) == ("True", "Routed")
    assert verdict.spec["triggers"] == ["other", "weather"]


def test_services_of_kubernetes_are_for_knative_to_judge() -> None:
    plain = {"ref": {"apiVersion": "v1", "kind": "Service", "name": "weather"}}

    assert routed(broker(), trigger(spec={"subscriber": plain}))[0] == "True"


def test_a_trigger_without_a_filter_is_a_route_and_the_message_says_which() -> None:
    found = routed(broker(), trigger("everything", wants=None))

    assert found[:2] == ("True", "OnlyCatchAll")
    assert "everything" in found[2]


def test_a_broker_or_a_trigger_that_is_being_deleted_is_gone() -> None:
    leaving: Document = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    going = broker()
    going["metadata"] |= leaving

    assert routed(going, trigger())[1] == "BrokerNotFound"
    assert routed(broker(), trigger(**leaving))[1] == "NoTrigger"


def direct(reference: dict[str, Any], *documents: Document) -> Judged:
    notes = {"beckon.dev/dispatch": "direct", "beckon.dev/parameters": "{}"}
    return Judged(event_type(spec={"reference": reference}, annotations=notes), *documents)


def test_a_direct_call_needs_nothing_but_the_service() -> None:
    verdict = direct(KSERVICE, service()).verdict()

    assert [words(found) for found in verdict.conditions[1:]] == [
        ("True", "Direct"),
        ("True", "Direct"),
        ("True", "Direct"),
        ("True", "Direct"),
        ("True", "Direct"),
        ("True", "Ready"),
    ]
    assert verdict.spec["address"] == "http://weather.team.svc.cluster.local"


def test_a_direct_call_to_a_service_of_kubernetes_goes_to_its_name() -> None:
    verdict = direct({"apiVersion": "v1", "kind": "Service", "name": "weather"}).verdict()

    assert verdict.spec["address"] == "http://weather.team.svc.cluster.local"


@pytest.mark.parametrize(
    ("reference", "documents", "reason"),
    [
        (KSERVICE, [], "ServiceNotFound"),
        (KSERVICE, [service(status=ready("Unknown"))], "ServiceNotReady"),
        (KSERVICE, [service(status={"latestReadyRevisionName": "weather-1"})], "AddressUnknown"),
        ({"apiVersion": "v1", "kind": "Pod", "name": "weather"}, [], "AddressUnknown"),
        ({**KSERVICE, "namespace": "shop"}, [], "OtherNamespace"),
    ],
)
def test_a_direct_call_that_leads_nowhere_says_why(
    reference: dict[str, Any], documents: list[Document], reason: str
) -> None:
    found = direct(reference, *documents).condition("Routed")

    assert words(found) == ("False", reason)
    assert "spec.reference" in found.message or "Knative Service weather" in found.message
