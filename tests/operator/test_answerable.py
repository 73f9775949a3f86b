import json

import pytest
import yaml

from beckon_operator.conditions.namespace_view import JudgingRules
from tests.operator.documents import SHIM, Document, broker, event_type, ready, reply_trigger, thing, trigger
from tests.operator.judged import Judged, words

SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "beckon-shim-replies", "namespace": "beckon"}


def answerable(*documents: Document) -> tuple[str, str]:
    return words(Judged(event_type(), broker(), trigger(), *documents).condition("Answerable"))


@pytest.mark.parametrize(
    "subscriber",
    [
        {"uri": f"{SHIM}/replies"},
        {"uri": f"{SHIM}:80/replies/"},
        {"uri": "http://beckon-shim-replies.beckon.svc/replies"},
        {"ref": SERVICE, "uri": "/replies"},
    ],
)
def test_a_trigger_on_the_reply_attribute_that_leads_to_the_shim_is_enough(subscriber: Document) -> None:
    assert answerable(reply_trigger(spec={"subscriber": subscriber})) == ("True", "ReplyTrigger")


def test_what_knative_resolved_counts() -> None:
    other = {"ref": {"apiVersion": "example.dev/v1", "kind": "Sink", "name": "x"}}
    status = {**ready(), "subscriberUri": f"{SHIM}/replies"}

    assert answerable(reply_trigger(spec={"subscriber": other}, status=status)) == ("True", "ReplyTrigger")


def test_another_reply_attribute_is_for_the_setting_to_say() -> None:
    documents = [
        event_type(),
        broker(),
        trigger(),
        reply_trigger(spec={"filter": {"attributes": {"answer": ""}}}),
    ]

    named = Judged(*documents, rules=JudgingRules(SHIM, reply_attribute="answer"))

    assert words(named.condition("Answerable")) == ("True", "ReplyTrigger")
    assert words(Judged(*documents).condition("Answerable")) == ("False", "NoReplyTrigger")


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [reply_trigger(spec={"broker": "other"})],
        [reply_trigger(spec={"filter": {"attributes": {"replyid": "", "type": "weather.reply"}}})],
        [trigger("everything", wants=None)],
    ],
)
def test_without_a_reply_trigger_the_message_holds_one(documents: list[Document]) -> None:
    judged = Judged(event_type(), broker(), trigger(), *documents)
    found = judged.condition("Answerable")

    assert words(found) == ("False", "NoReplyTrigger")
    (missing,) = yaml.safe_load_all(found.message.partition("write ")[2])
    assert missing["apiVersion"] == "eventing.knative.dev/v1"
    written = thing(
        "eventing.knative.dev/v1", "Trigger", missing["metadata"]["name"], missing["spec"], ready()
    )
    judged.see(json.loads(json.dumps(written)))
    assert words(judged.condition("Answerable")) == ("True", "ReplyTrigger")


@pytest.mark.parametrize("broker_class", ["", "Kafka"])
def test_an_attribute_that_the_event_type_names_needs_a_trigger_of_its_own(broker_class: str) -> None:
    named = event_type(annotations={"beckon.dev/reply-attribute": "responseid"})
    classed = broker(annotations={"eventing.knative.dev/broker.class": broker_class})
    judged = Judged(named, classed, trigger(), reply_trigger())
    found = judged.condition("Answerable")

    assert words(found) == ("False", "NoReplyTrigger")
    (missing,) = yaml.safe_load_all(found.message.partition("write ")[2])
    assert missing["metadata"]["name"] == "default-beckon-replies-responseid"
    judged.see(
        thing("eventing.knative.dev/v1", "Trigger", missing["metadata"]["name"], missing["spec"], ready())
    )
    assert words(judged.condition("Answerable")) == ("True", "ReplyTrigger")


def test_a_broker_of_beckons_class_needs_no_trigger_for_a_named_attribute() -> None:
    named = event_type(annotations={"beckon.dev/reply-attribute": "responseid"})
    stamping = broker(annotations={"eventing.knative.dev/broker.class": "Beckon"})

    judged = Judged(named, stamping, trigger(), reply_trigger())

    assert words(judged.condition("Answerable")) == ("True", "ReplyTrigger")


def test_a_reply_trigger_that_is_not_ready_says_why() -> None:
    waiting = reply_trigger(status=ready("False", "NoSubscription", "Wait."))

    found = Judged(event_type(), broker(), trigger(), waiting).condition("Answerable")

    assert words(found) == ("False", "ReplyTriggerNotReady")
    assert "NoSubscription Wait." in found.message


@pytest.mark.parametrize(
    "url", [f"{SHIM}/other", "http://shim.beckon.svc/replies", "https://x:0x/replies", "http://[/replies"]
)
def test_replies_that_go_elsewhere_are_reported_with_the_address(url: str) -> None:
    astray = reply_trigger(spec={"subscriber": {"ref": SERVICE}}, status={**ready(), "subscriberUri": url})

    found = Judged(event_type(), broker(), trigger(), astray).condition("Answerable")

    assert words(found) == ("False", "RepliesElsewhere")
    assert url in found.message


def test_without_an_answer_a_tool_is_not_ready() -> None:
    verdict = Judged(event_type(), broker(), trigger()).verdict()

    assert words(verdict.ready) == ("False", "NoReplyTrigger")
