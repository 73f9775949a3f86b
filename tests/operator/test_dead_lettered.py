import pytest

from tests.operator.documents import SHIM, Document, broker, event_type, ready, reply_trigger, trigger
from tests.operator.judged import Judged, words

TO_SHIM = {"deadLetterSink": {"uri": f"{SHIM}/dead-letters"}}
ELSEWHERE = {"deadLetterSink": {"uri": "http://elsewhere.svc/"}}


@pytest.mark.parametrize(
    ("documents", "status", "reason", "says"),
    [
        ([broker(), trigger()], "True", "ToShim", "dead letters go to"),
        ([broker(spec={}), trigger()], "False", "NoDeadLetterSink", "Broker default has no dead-letter sink"),
        ([broker(spec={"delivery": {"retry": 3}}), trigger()], "False", "NoDeadLetterSink", "time-out"),
        ([broker(spec={"delivery": ELSEWHERE}), trigger()], "False", "OtherSink", "http://elsewhere.svc/"),
        (
            [broker(), trigger(spec={"delivery": {"retry": 1}})],
            "False",
            "TriggerOverrides",
            "Trigger weather",
        ),
        ([broker(), trigger(spec={"delivery": ELSEWHERE})], "False", "OtherSink", "Trigger weather"),
        ([broker(spec={}), trigger(spec={"delivery": TO_SHIM})], "True", "ToShim", "dead letters go to"),
        (
            [broker(), trigger(), trigger("b", spec={"delivery": {}})],
            "False",
            "TriggerOverrides",
            "Trigger b",
        ),
        ([broker()], "True", "ToShim", "dead letters go to"),
        ([broker(spec={})], "False", "NoDeadLetterSink", "Broker default"),
        ([trigger()], "Unknown", "BrokerNotFound", "no usable Broker default"),
        ([broker(spec={"delivery": {"retry": "x"}}), trigger()], "Unknown", "BrokerNotFound", "no usable"),
    ],
)
def test_the_sink_that_is_in_force_decides(
    documents: list[Document], status: str, reason: str, says: str
) -> None:
    found = Judged(event_type(), *documents).condition("DeadLettered")

    assert words(found) == (status, reason)
    assert says in found.message


def test_a_sink_by_reference_is_where_knative_resolved_it_to() -> None:
    sink = {"deadLetterSink": {"ref": {"apiVersion": "example.dev/v1", "kind": "Sink", "name": "x"}}}
    resolved = {**ready(), "deadLetterSinkUri": f"{SHIM}/dead-letters"}

    judged = Judged(event_type(), trigger(), broker(spec={"delivery": sink}, status=resolved))

    assert words(judged.condition("DeadLettered")) == ("True", "ToShim")


def test_knatives_fallback_in_the_status_of_an_overriding_trigger_is_not_believed() -> None:
    status = {**ready(), "deadLetterSinkUri": f"{SHIM}/dead-letters"}
    overriding = trigger(spec={"delivery": {"retry": 1}}, status=status)

    found = Judged(event_type(), broker(), overriding).condition("DeadLettered")

    assert words(found) == ("False", "TriggerOverrides")


def test_a_tool_without_a_dead_letter_sink_is_ready_and_its_reason_says_what_is_missing() -> None:
    verdict = Judged(event_type(), broker(spec={}), trigger(), reply_trigger()).verdict()

    assert words(verdict.ready) == ("True", "NoDeadLetterSink")
    assert verdict.ready.message.startswith("Broker default has no dead-letter sink")
