"""Brokers of the class on a real cluster: what Knative's control plane contract asks, line by line.

knative/specs, eventing/control-plane.md; the names of tests are in the table of docs/brokers.md.
"""

import json

import pytest

from tests.broker.subscribers import Subscriber
from tests.cluster.broker_class.conftest import ServedClass
from tests.cluster.broker_class.objects import EVENTING, becomes, broker, trigger
from tests.cluster.kube import Kube, condition, until
from tests.cluster.operator.objects import Document, apply, thing

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("alone")]


def test_a_broker_has_its_address_and_conditions_as_kubectl_shows_them(
    ours: Kube, served: ServedClass
) -> None:
    found = ours.get("broker", "default")
    url = f"http://beckon-broker-ingress.{served.home.namespace}.svc.cluster.local/{ours.namespace}/default"

    assert found["status"]["address"]["url"] == url
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert ours.run("get", "brokers").splitlines()[1].split()[:2] == ["default", url]
    # Knative's webhook has given it the configuration of its own default class, and its delivery.
    assert found["spec"]["config"]["name"] == "config-br-default-channel"
    assert found["spec"]["delivery"]["retry"] == 10


def test_an_event_reaches_the_subscriber_of_a_ready_trigger(
    ours: Kube, served: ServedClass, tool: Subscriber
) -> None:
    apply(ours, trigger(subscriber={"uri": tool.url}, filter={"attributes": {"type": "a"}}))
    becomes(ours, "trigger", "weather", "True")

    assert served.post(ours, "a").status_code == 202
    assert served.post(ours, "b").status_code == 202
    until(lambda: tool.requests, what="the event")
    assert [one.event.type for one in tool.requests] == ["a"]
    assert ours.get("trigger", "weather")["status"]["subscriberUri"] == tool.url


def test_a_broker_takes_no_events_after_its_deletion(ours: Kube, served: ServedClass) -> None:
    apply(ours, trigger())
    becomes(ours, "trigger", "weather", "True")
    ours.run("delete", "broker", "default")

    assert becomes(ours, "trigger", "weather", "False")[0] == "BrokerDoesNotExist"
    until(lambda: served.post(ours, "a").status_code == 404, what="404")


def test_a_trigger_may_come_before_its_broker(served: ServedClass, namespace: Kube) -> None:
    apply(namespace, trigger())
    apply(namespace, broker())
    becomes(namespace, "trigger", "weather", "True")


def test_references_of_every_kind_are_resolved(ours: Kube) -> None:
    channel = thing("messaging.knative.dev/v1", "Channel", "pipe", {})
    service = thing("v1", "Service", "plain", {"ports": [{"port": 80}], "selector": {"no": "pod"}})
    to_channel = {"ref": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "pipe"}}
    to_service = {"ref": {"apiVersion": "v1", "kind": "Service", "name": "plain"}, "uri": "/calls"}
    to_knative = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "none"}}
    apply(
        ours, trigger("channel", to_channel), trigger("service", to_service), trigger("knative", to_knative)
    )
    for name in ("channel", "service", "knative"):
        reason, message = becomes(ours, "trigger", name, "False")
        assert (reason, "does not exist" in message) == ("Unable to get the Subscriber's URI", True), message
        assert ours.get("trigger", name)["status"]["subscriberUri"] == ""

    apply(ours, channel, service)
    for name in ("channel", "service"):
        becomes(ours, "trigger", name, "True")
    url = ours.get("channels.messaging.knative.dev", "pipe")["status"]["address"]["url"]
    assert ours.get("trigger", "channel")["status"]["subscriberUri"] == url
    address = f"http://plain.{ours.namespace}.svc.cluster.local/calls"
    assert ours.get("trigger", "service")["status"]["subscriberUri"] == address


def test_dead_letter_sinks_are_resolved(ours: Kube) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "name": "sink"}
    apply(ours, broker("letters", delivery={"deadLetterSink": {"ref": service}}))
    apply(ours, trigger("own", delivery={"deadLetterSink": {"ref": service}}))
    assert becomes(ours, "broker", "letters", "False")[0] == "Unable to get the dead letter sink's URI"
    assert becomes(ours, "trigger", "own", "False")[0] == "Unable to get the dead letter sink's URI"

    apply(ours, thing("v1", "Service", "sink", {"ports": [{"port": 80}]}))
    becomes(ours, "broker", "letters", "True")
    becomes(ours, "trigger", "own", "True")
    url = f"http://sink.{ours.namespace}.svc.cluster.local"
    found = [ours.get("broker", "letters"), ours.get("trigger", "own")]
    assert [one["status"]["deadLetterSinkUri"] for one in found] == [url, url]


@pytest.mark.parametrize(
    ("kind", "name", "patch"),
    [
        ("broker", "default", {"metadata": {"annotations": {"eventing.knative.dev/broker.class": "Other"}}}),
        ("broker", "default", {"spec": {"config": {"name": "other"}}}),
        ("trigger", "weather", {"spec": {"broker": "other"}}),
        ("trigger", "weather", {"spec": {"filter": {"attributes": {"Source": "x"}}}}),
        ("trigger", "weather", {"spec": {"filter": {"attributes": {"s-pace": "x"}}}}),
    ],
)
def test_what_must_not_change_is_refused(ours: Kube, kind: str, name: str, patch: Document) -> None:
    apply(ours, trigger())
    done = ours.attempt("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    assert done.returncode != 0
    assert "denied the request" in done.stderr


def test_a_changed_subscriber_and_filter_are_taken_over(
    ours: Kube, served: ServedClass, tool: Subscriber
) -> None:
    apply(ours, trigger())
    becomes(ours, "trigger", "weather", "True")
    apply(ours, trigger(subscriber={"uri": tool.url}, filter={"attributes": {"type": "a"}}))

    def is_observed() -> bool:
        found = ours.get("trigger", "weather")
        observed = found["status"]["observedGeneration"] == found["metadata"]["generation"]
        return bool(observed) and condition(found, "Ready")[0] == "True"

    until(is_observed, what="the new version")
    assert served.post(ours, "a").status_code == 202
    until(lambda: tool.requests, what="the event")


def test_a_dependency_must_be_ready(ours: Kube) -> None:
    named = json.dumps({"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "name": "clock"})
    apply(ours, trigger(annotations={"knative.dev/dependency": named}))
    assert becomes(ours, "trigger", "weather", "False")[0] == "DependencyDoesNotExist"

    sink = {"ref": {"apiVersion": EVENTING, "kind": "Broker", "name": "default"}}
    apply(
        ours, thing("sources.knative.dev/v1", "PingSource", "clock", {"schedule": "0 0 1 1 *", "sink": sink})
    )
    becomes(ours, "trigger", "weather", "True")


def test_an_event_policy_closes_the_broker(ours: Kube, served: ServedClass) -> None:
    to = [{"ref": {"apiVersion": EVENTING, "kind": "Broker", "name": "default"}}]
    sender = [{"sub": "system:serviceaccount:default:default"}]
    policy = thing("eventing.knative.dev/v1alpha1", "EventPolicy", "limits", {"to": to, "from": sender})
    knative = ours.within("knative-eventing")

    def set_oidc(value: str) -> None:
        patch = json.dumps({"data": {"authentication-oidc": value}})
        knative.run("patch", "configmap", "config-features", "--type=merge", "-p", patch)

    # Knative's webhook takes no EventPolicy while the feature is off.
    set_oidc("enabled")
    try:
        text = json.dumps(policy)
        until(lambda: ours.attempt("apply", "-f", "-", stdin=text).returncode == 0, what="the EventPolicy")
        assert becomes(ours, "broker", "default", "False")[0] == "EventPoliciesNotSupported"
        until(lambda: served.post(ours, "a").status_code == 404, what="404")
        ours.run("delete", "eventpolicy", "limits")
        becomes(ours, "broker", "default", "True")
    finally:
        set_oidc("disabled")


def test_a_wrong_key_of_the_configuration_is_named(served: ServedClass, namespace: Kube) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nats", "namespace": namespace.namespace}
    metadata = {"name": "nats"}
    data = {"nats_url": "nats://a"}
    apply(namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    apply(namespace, broker(config=config))
    reason, message = becomes(namespace, "broker", "default", "False")

    assert (reason, "unknown key 'nats_url'" in message) == ("InvalidConfig", True)


def test_brokers_of_other_classes_are_left_to_their_controllers(ours: Kube) -> None:
    apply(ours, broker("memory", "MTChannelBasedBroker"), trigger("theirs", broker="memory"))
    ours.wait("broker/memory", timeout=90)
    ours.wait("trigger/theirs", timeout=90)

    for kind, name in (("broker", "memory"), ("trigger", "theirs")):
        managers = ours.managed_fields(kind, name)
        assert "beckon-operator" not in {one["manager"] for one in managers}
    managers = ours.managed_fields("broker", "default")
    assert {one["manager"] for one in managers if one.get("subresource") == "status"} == {"beckon-operator"}


def test_a_broker_of_the_class_is_a_sink_for_the_sources_and_channels_of_others(
    ours: Kube, tool: Subscriber
) -> None:
    apply(ours, trigger(subscriber={"uri": tool.url}))
    becomes(ours, "trigger", "weather", "True")
    sink = {"ref": {"apiVersion": EVENTING, "kind": "Broker", "name": "default"}}
    ping = {"schedule": "* * * * * *", "data": "{}", "contentType": "application/json", "sink": sink}
    apply(ours, thing("sources.knative.dev/v1", "PingSource", "clock", ping))

    until(lambda: tool.requests, within=90, what="an event of the source")
    assert tool.requests[0].event.type == "dev.knative.sources.ping"


def test_many_triggers_become_ready(ours: Kube) -> None:
    names = [f"t{number}" for number in range(100)]
    apply(ours, *(trigger(name, {"uri": f"http://{name}.example.svc"}) for name in names))

    def are_ready() -> bool:
        found = ours.list_objects("triggers")
        return len(found) == len(names) and all(condition(one, "Ready")[0] == "True" for one in found)

    until(are_ready, within=60, what="a hundred ready Triggers")
