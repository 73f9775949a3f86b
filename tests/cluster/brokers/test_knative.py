"""`beckon probe broker` on Knative's Broker in memory, in a cluster: each row is as documented."""

from tests.brokers.brokers import find_unmet_rows
from tests.cluster.brokers.probing import find_ingress, make_kill_command, probe_cluster
from tests.cluster.kube import Kube

EVENTING = "knative-eventing"
DISPATCHER = "deployment/imc-dispatcher"
PODS = "messaging.knative.dev/channel=in-memory-channel,messaging.knative.dev/role=dispatcher"
_ANSWERED = "good: 20 of 20 answered; runs 1; dead letter $"
_ANSWERED_ONCE = "good: answered; runs 1; dead letter $"
_SILENT = "limited: 504 timeout; runs 1; "

ROWS = {
    "reply-trigger": r'good: CESQL .* passes replies alone; `replyid: ""` passes replies alone;',
    "acknowledgement": "limited: after every Trigger is done",
    "echo": _ANSWERED,
    "parallel": "good: 20 of 20 answered, all side by side; runs 1",
    "slow": "good: answered, after 40 s of work; runs 1",
    "refusal": "good: 502 undeliverable with the reason; runs 1; dead letter code 400, the tool's text",
    "failure": "good: 502 undeliverable with the reason; runs 6; dead letter code 500, the tool's text",
    "refused-connection": "limited: 502 undeliverable with the reason, said to be perhaps delivered; ",
    "plain-json": "limited: 502 undeliverable without the reason; runs 6; dead letter no reason",
    "broken-connection": "limited: 502 undeliverable with the reason; runs 6; ",
    "dead-letter": "limited: the code, the tool's text, not whether the tool can have begun",
    "reply-correlationid": _ANSWERED_ONCE,
    "reply-all-extensions": _ANSWERED_ONCE,
    "reply-responseid": _ANSWERED_ONCE,
    "reply-nothing": _SILENT,
    "reply-json": "limited: 502 undeliverable; runs 6; ",
    "reply-204": _SILENT,
    "reply-202": _SILENT,
    # The killed process had the calls in its memory; each still ends with an answer or an error.
    "restart": r"(good|limited): \d+ of 104 answered",
}


def test_knatives_broker_in_memory_treats_calls_as_the_documents_say(broker: Kube) -> None:
    url = find_ingress(broker, EVENTING, "broker-ingress")
    restart = make_kill_command(broker, EVENTING, PODS, [DISPATCHER])
    report = probe_cluster(broker, url, restart, "knative")

    assert find_unmet_rows(report, ROWS) == {}
    assert report.label == "MTChannelBasedBroker"
    assert broker.list_objects("triggers") == []
