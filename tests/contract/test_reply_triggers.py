"""Which events the filter of the reply Trigger passes, by the class of the Broker."""

from typing import Any

import pytest

from beckon_contract.knative.reply_triggers import named_filter, reply_filter
from beckon_contract.knative.routes import DEFAULT_CALLER
from beckon_contract.knative.triggers import parse_trigger
from tests.contract.manifests import trigger

CALL = {"specversion": "1.0", "id": "1", "type": "weather", "source": DEFAULT_CALLER, "correlationid": "t"}
REPLY = {"specversion": "1.0", "id": "2", "type": "weather.done", "source": "/weather"}


def passes(filtered: dict[str, Any], event: dict[str, Any]) -> bool:
    """Return True if a Trigger with this filter passes the event."""
    return parse_trigger(trigger(wants=None, spec=filtered)).filter(event)


@pytest.mark.parametrize("broker_class", ["", "MTChannelBasedBroker", "Kafka", "Beckon"])
def test_replies_pass_and_calls_and_other_events_do_not(broker_class: str) -> None:
    found = reply_filter(broker_class)

    assert passes(found, {**REPLY, "replyid": "t"})
    assert not passes(found, CALL)
    assert not passes(found, REPLY)


def test_a_copied_correlation_passes_where_the_broker_writes_no_reply_attribute() -> None:
    copied = {**REPLY, "correlationid": "t"}

    assert passes(reply_filter("Kafka"), copied)
    assert not passes(reply_filter("Beckon"), copied)


def test_attributes_that_event_types_name_pass() -> None:
    answered = {**REPLY, "responseid": "t"}

    assert passes(reply_filter("Kafka", named=["responseid", "answerid"]), answered)
    assert passes(named_filter("responseid"), answered)
    assert not passes(named_filter("responseid"), {**REPLY, "replyid": "t"})
    assert not passes(reply_filter("Kafka"), answered)


def test_the_reply_attribute_may_have_another_name() -> None:
    assert passes(reply_filter("", reply="answer"), {**REPLY, "answer": "t"})
    assert not passes(reply_filter("", reply="answer"), {**REPLY, "replyid": "t"})


def test_the_legacy_filter_is_not_written_where_its_meaning_differs() -> None:
    assert set(reply_filter("RabbitMQBroker")) == {"filters"}
