"""What a Tool says of the Triggers of its calls: where they lead, and how they deliver."""

from typing import Any

import pytest

from beckon_contract.knative.routes import CallRoute, read_routes
from beckon_contract.kubernetes_objects import from_object
from beckon_operator.tools import tool_document, wanted_tool
from tests.operator.documents import (
    KSERVICE,
    SHIM,
    Document,
    broker,
    event_type,
    ready,
    reply_trigger,
    service,
    trigger,
)
from tests.operator.judged import Judged

TO_SERVICE = {"subscriber": {"ref": KSERVICE}}
SINK = {"deadLetterSink": {"uri": f"{SHIM}/dead-letters"}}


def routes(*documents: Document) -> list[CallRoute]:
    """Return what an agent reads of the Tool that the operator writes among these objects."""
    judged = Judged(event_type(), reply_trigger(), *documents)
    written = tool_document(wanted_tool(judged.verdict()), None, "2026-01-01T00:00:00Z")
    return read_routes(from_object(written).status)


def test_a_tool_says_which_service_its_trigger_leads_to() -> None:
    (found,) = routes(broker(), service(), trigger(spec=TO_SERVICE))

    assert found.subscriber is not None
    assert (found.trigger, found.filter) == ("weather", "type = get.weather")
    assert (found.subscriber.kind, found.subscriber.namespace, found.subscriber.name) == (
        "Service",
        "team",
        "weather",
    )
    assert found.service("team") == "weather"
    assert found.service("shop") == "team/weather"
    assert found.address == "http://weather.team.svc.cluster.local"


def test_the_address_is_the_one_that_knative_has_resolved() -> None:
    status = {**ready(), "subscriberUri": "https://weather.team.example:8443/calls"}

    (found,) = routes(broker(), trigger(spec=TO_SERVICE, status=status), service())

    assert found.address == "https://weather.team.example:8443"


def test_of_a_plain_uri_nothing_is_reported_but_its_host() -> None:
    uri = "https://me:word@hooks.example/services/T0/SECRET?token=SECRET"

    (found,) = routes(broker(), trigger(spec={"subscriber": {"uri": uri}}))

    assert (found.subscriber, found.address) == (None, "https://hooks.example")
    assert found.service("team") == "hooks.example"


@pytest.mark.parametrize(
    ("of_broker", "of_trigger", "retries", "dead_letters"),
    [
        ({"delivery": {"retry": 3, **SINK}}, {}, 3, True),
        ({"delivery": {"retry": 3, **SINK}}, {"delivery": {"retry": 1}}, 1, False),
        ({"delivery": {"retry": 3}}, {"delivery": SINK}, 0, True),
        ({}, {}, 10, False),
    ],
    ids=["broker's", "trigger's", "replaced-whole", "default"],
)
def test_how_a_trigger_delivers_is_its_own_word_or_its_brokers(
    of_broker: Document, of_trigger: Document, retries: int, dead_letters: object
) -> None:
    (found,) = routes(broker(spec=of_broker), trigger(spec=of_trigger))

    assert (found.retries, found.dead_letters) == (retries, dead_letters)


def test_a_trigger_that_is_not_ready_is_reported_too_where_no_other_is() -> None:
    assert [one.trigger for one in routes(broker(), trigger(status=ready("False", "Gone")))] == ["weather"]


def test_without_a_broker_no_one_knows_how_is_delivered() -> None:
    (found,) = routes(trigger())

    assert (found.retries, found.dead_letters) == (None, None)


def test_a_direct_tool_has_no_routes() -> None:
    reference = {"apiVersion": "v1", "kind": "Service", "name": "weather"}
    notes = {"beckon.dev/dispatch": "direct", "beckon.dev/parameters": "{}"}
    judged = Judged(broker(), event_type(spec={"reference": reference}, annotations=notes))

    assert judged.verdict().routes == ()


def test_a_route_follows_its_trigger() -> None:
    judged = Judged(broker(), event_type(), reply_trigger(), trigger())
    judged.see(trigger(spec={"subscriber": {"uri": "http://elsewhere.example"}}))

    assert [one.address for one in judged.verdict().routes] == ["http://elsewhere.example"]


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"routes": "none"},
        {"routes": [3, {"trigger": 4}, {"filter": "any event"}]},
    ],
)
def test_what_no_operator_has_written_is_no_route(written: dict[str, Any]) -> None:
    assert read_routes(written) == []


def test_of_an_odd_route_the_rest_is_read() -> None:
    odd = {"trigger": "t", "retries": True, "deadLetters": 1, "subscriber": {"kind": "Service"}, "address": 3}

    assert read_routes({"routes": [odd]}) == [CallRoute("t")]
