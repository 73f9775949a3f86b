"""Brokers of the class and their Triggers: what Knative's contract asks of a control plane."""

import asyncio
from collections import Counter
from typing import Any

from tests.operator.broker_class.class_platform import (
    DISPATCHER,
    NAMESPACE,
    ClassPlatform,
    class_platform,
    until,
)

Document = dict[str, Any]

BECKON = {"annotations": {"eventing.knative.dev/broker.class": "Beckon"}}
KSERVICE = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "weather"}
ADDRESS = {"address": {"url": "http://weather.team.svc.cluster.local"}}
URI = {"uri": "http://weather.example/calls"}


async def apply_broker(platform: ClassPlatform, name: str = "default", **spec: Any) -> None:
    await platform.apply("brokers", name, spec, **BECKON)


async def apply_trigger(
    platform: ClassPlatform, name: str = "weather", subscriber: Document | None = None, **spec: Any
) -> None:
    annotations = {"annotations": spec.pop("annotations")} if "annotations" in spec else {}
    base = {"broker": "default", "subscriber": subscriber or URI}
    await platform.apply("triggers", name, {**base, **spec}, **annotations)


async def test_a_broker_becomes_ready_with_an_address() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await platform.wait_for("brokers", "default", "True")

        status = platform.status("brokers", "default")
        assert status["address"] == {
            "name": "http",
            "url": "http://beckon-broker-ingress.beckon.svc.cluster.local/team/default",
        }
        assert status["observedGeneration"] == 1
        names = [one["type"] for one in status["conditions"]]
        assert names == sorted(names)
        assert {"Ready", "Addressable", "IngressReady", "DeadLetterSinkResolved"} <= set(names)
        assert all(one["lastTransitionTime"] for one in status["conditions"])


async def test_a_trigger_is_ready_once_every_pod_routes_by_it() -> None:
    async with class_platform() as platform:
        deaf = await platform.start_pod("deaf", follows=False)
        await apply_broker(platform)
        await apply_trigger(platform)
        message = "not in force yet in deaf"
        await platform.wait_for_words("triggers", "weather", ("Unknown", "NotInForce", message))
        await until(lambda: deaf.requests > 3, lambda: f"{deaf.requests} requests")
        assert platform.condition("triggers", "weather")[0] == "Unknown"

        await platform.stop_pod("deaf")
        await platform.wait_for("triggers", "weather", "True")

        status = platform.status("triggers", "weather")
        assert status["subscriberUri"] == URI["uri"]
        assert "deadLetterSinkUri" not in status
        assert platform.pods["ingress-0"].subscribers() == [URI["uri"]]


async def test_a_trigger_is_not_ready_before_those_who_deliver_know_it() -> None:
    async with class_platform() as platform:
        await platform.start_pod("dispatcher", follows=False, service=DISPATCHER)
        await apply_broker(platform)
        await apply_trigger(platform)
        message = "not in force yet in dispatcher"
        await platform.wait_for_words("triggers", "weather", ("Unknown", "NotInForce", message))

        await platform.stop_pod("ingress-0")
        reason, _ = await platform.wait_for("brokers", "default", "False")
        assert reason == "NoIngress"


async def test_many_triggers_take_few_requests() -> None:
    async with class_platform(pods=0) as platform:
        await apply_broker(platform)
        names = [f"t{number}" for number in range(300)]
        for name in names:
            await apply_trigger(platform, name, {"uri": f"http://{name}.example"})
        await until(
            lambda: all(platform.status("triggers", name) for name in names),
            lambda: "a Trigger has no status",
        )
        pod = await platform.start_pod("ingress-0")
        for name in names:
            await platform.wait_for("triggers", name, "True")

        assert pod.requests < 30
        writes = [
            path for method, path in platform.api.requests if method == "PATCH" and "/triggers/" in path
        ]
        # One for each state: the Broker is not judged, has no ingress; the Trigger is not in force, the pods
        # that it waits for are named once that takes long (on a busy machine), it is in force.
        assert max(Counter(writes).values()) <= 5


async def test_a_trigger_becomes_ready_when_its_subscriber_appears() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform, subscriber={"ref": KSERVICE})
        reason, message = await platform.wait_for("triggers", "weather", "False")
        assert reason == "Unable to get the Subscriber's URI"
        assert "Service team/weather (serving.knative.dev/v1) does not exist" in message
        assert platform.status("triggers", "weather")["subscriberUri"] == ""

        await platform.publish("services", "weather", {})
        await until(
            lambda: "no status.address.url" in platform.condition("triggers", "weather")[2],
            lambda: str(platform.status("triggers", "weather")),
        )
        await platform.publish("services", "weather", ADDRESS)
        await platform.wait_for("triggers", "weather", "True")
        assert platform.status("triggers", "weather")["subscriberUri"] == ADDRESS["address"]["url"]

        await platform.api.delete("services", "weather", NAMESPACE)
        await platform.wait_for("triggers", "weather", "False")
        await until(lambda: not platform.pods["ingress-0"].subscribers(), lambda: "it is still routed")


async def test_a_uri_beside_a_ref_is_relative_to_it_and_any_scheme_is_an_address() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        service = {"apiVersion": "v1", "kind": "Service", "name": "plain"}
        await platform.publish("services", "plain", {})
        await apply_trigger(platform, "core", {"ref": service, "uri": "/calls?a=1"})
        await apply_trigger(platform, "bad", {"uri": "bad://uri"})
        await apply_trigger(platform, "both", {"ref": service, "uri": "http://other.example"})
        for name in ("core", "bad"):
            await platform.wait_for("triggers", name, "True")
        await platform.wait_for("triggers", "both", "False")

        core = platform.status("triggers", "core")["subscriberUri"]
        assert core == "http://plain.team.svc.cluster.local/calls?a=1"
        assert platform.status("triggers", "bad")["subscriberUri"] == "bad://uri"


async def test_a_broker_is_a_subscriber_like_any_addressable() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_broker(platform, "second")
        ref = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "second"}
        await apply_trigger(platform, subscriber={"ref": ref})
        await platform.wait_for("triggers", "weather", "True")

        assert platform.status("triggers", "weather")["subscriberUri"].endswith("/team/second")


async def test_a_kind_that_is_not_served_is_named() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform, subscriber={"ref": {**KSERVICE, "kind": "Nothing"}})
        _, message = await platform.wait_for("triggers", "weather", "False")

        assert "serves no kind Nothing in serving.knative.dev/v1" in message


async def test_a_trigger_before_its_broker_waits_for_it() -> None:
    async with class_platform() as platform:
        await apply_trigger(platform)
        await apply_broker(platform)
        await platform.wait_for("triggers", "weather", "True")
        await platform.api.delete("brokers", "default", NAMESPACE)
        reason, message = await platform.wait_for("triggers", "weather", "False")
        assert (reason, message) == ("BrokerDoesNotExist", 'Broker "default" does not exist')
        assert platform.condition("triggers", "weather", "BrokerReady")[1] == "BrokerDoesNotExist"
        await until(lambda: not platform.pods["ingress-0"].subscribers(), lambda: "it is still routed")


async def test_nothing_is_written_to_another_class() -> None:
    async with class_platform() as platform:
        other = {"annotations": {"eventing.knative.dev/broker.class": "MTChannelBasedBroker"}}
        await platform.apply("brokers", "default", {}, **other)
        await platform.apply("brokers", "unnamed", {})
        await apply_trigger(platform)
        await apply_trigger(platform, "second", broker="unnamed")
        await apply_broker(platform, "ours")
        await apply_trigger(platform, "third", broker="ours")
        await platform.wait_for("triggers", "third", "True")

        assert platform.status("brokers", "default") == platform.status("brokers", "unnamed") == {}
        assert platform.status("triggers", "weather") == platform.status("triggers", "second") == {}
        assert len(platform.pods["ingress-0"].topology.brokers) == 1


async def test_a_trigger_without_a_broker_stays_as_it_is() -> None:
    """It has no class, so its status may be another controller's."""
    async with class_platform() as platform:
        await apply_trigger(platform, broker="none")
        judged = {"conditions": [{"type": "Ready", "status": "True"}]}
        await apply_trigger(platform, "judged", broker="none")
        await platform.publish("triggers", "judged", judged)
        await apply_broker(platform)
        await apply_trigger(platform, "ours")
        await platform.wait_for("triggers", "ours", "True")

        assert platform.status("triggers", "weather") == {}
        assert platform.status("triggers", "judged") == judged


async def test_the_delivery_of_a_trigger_replaces_that_of_its_broker() -> None:
    async with class_platform() as platform:
        await apply_broker(platform, delivery={"deadLetterSink": {"uri": "http://broker.example"}})
        await apply_trigger(platform, "plain")
        await apply_trigger(platform, "retries", delivery={"retry": 3})
        await apply_trigger(platform, "own", delivery={"deadLetterSink": {"ref": KSERVICE}})
        for name in ("plain", "retries"):
            await platform.wait_for("triggers", name, "True")
        reason, _ = await platform.wait_for("triggers", "own", "False")
        assert reason == "Unable to get the dead letter sink's URI"
        await platform.publish("services", "weather", ADDRESS)
        await platform.wait_for("triggers", "own", "True")

        sinks = {
            name: platform.status("triggers", name).get("deadLetterSinkUri")
            for name in ("plain", "retries", "own")
        }
        expected = {"plain": "http://broker.example", "retries": None, "own": ADDRESS["address"]["url"]}
        assert sinks == expected
        routed = {
            one.key.name: one.dead_letter for one in platform.pods["ingress-0"].topology.subscriptions()
        }
        assert routed == expected
        assert platform.status("brokers", "default")["deadLetterSinkUri"] == "http://broker.example"


async def test_a_broker_with_an_unknown_dead_letter_sink_is_not_ready() -> None:
    async with class_platform() as platform:
        await apply_broker(platform, delivery={"deadLetterSink": {"ref": KSERVICE}})
        reason, _ = await platform.wait_for("brokers", "default", "False")
        assert reason == "Unable to get the dead letter sink's URI"
        await platform.publish("services", "weather", ADDRESS)
        await platform.wait_for("brokers", "default", "True")


async def test_a_changed_filter_is_ready_in_its_new_version_without_a_gap() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform, filter={"attributes": {"type": "old"}})
        await platform.wait_for("triggers", "weather", "True")
        seen = {"True"}

        await apply_trigger(platform, filter={"attributes": {"type": "new"}})

        def is_observed() -> bool:
            seen.add(platform.condition("triggers", "weather")[0])
            return bool(platform.status("triggers", "weather")["observedGeneration"] == 2)

        await until(is_observed, lambda: str(platform.status("triggers", "weather")))
        assert seen == {"True"}
        (routed,) = platform.pods["ingress-0"].topology.subscriptions()
        assert routed.filter({"type": "new"})


async def test_a_dependency_must_be_ready() -> None:
    named = '{"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "name": "clock"}'
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform, annotations={"knative.dev/dependency": named})
        reason, _ = await platform.wait_for("triggers", "weather", "False")
        assert reason == "DependencyDoesNotExist"

        not_ready = {"type": "Ready", "status": "False", "reason": "NoSink"}
        await platform.publish("pingsources", "clock", {"observedGeneration": 1, "conditions": [not_ready]})
        await until(
            lambda: platform.condition("triggers", "weather", "DependencyReady")[1] == "NoSink",
            lambda: str(platform.status("triggers", "weather")),
        )
        assert platform.condition("triggers", "weather")[1] == "NoSink"
        ready = {"type": "Ready", "status": "True"}
        await platform.publish("pingsources", "clock", {"observedGeneration": 0, "conditions": [ready]})
        await until(
            lambda: platform.condition("triggers", "weather", "DependencyReady")[1] == "GenerationNotEqual",
            lambda: str(platform.status("triggers", "weather")),
        )
        await platform.publish("pingsources", "clock", {"observedGeneration": 1, "conditions": [ready]})
        await platform.wait_for("triggers", "weather", "True")


async def test_an_audience_and_certificates_are_refused_plainly() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_trigger(platform, "oidc", {**URI, "audience": "tools"})
        await platform.publish(
            "services", "weather", {"address": {"url": "https://weather", "CACerts": "-----BEGIN"}}
        )
        await apply_trigger(platform, "tls", {"ref": KSERVICE})
        oidc, message = await platform.wait_for("triggers", "oidc", "False")
        tls, _ = await platform.wait_for("triggers", "tls", "False")

        assert (oidc, tls) == ("AudienceNotSupported", "CACertsNotSupported")
        assert "'tools'" in message


async def test_a_log_that_cannot_be_reached_is_named_until_it_answers() -> None:
    async with class_platform() as platform:
        pod = platform.pods["ingress-0"]
        problem = "NATS at nats.beckon.svc:4222 does not answer: connection refused"
        pod.log = pod.log._replace(problem=problem)
        await apply_broker(platform)
        await apply_trigger(platform)
        reason, message = await platform.wait_for("brokers", "default", "False")
        assert (reason, message) == ("LogUnavailable", problem)
        await platform.wait_for("triggers", "weather", "False")
        assert platform.status("brokers", "default")["address"]

        pod.log = pod.log._replace(problem="")
        await platform.wait_for("brokers", "default", "True")
        await platform.wait_for("triggers", "weather", "True")


async def test_without_an_ingress_a_broker_is_not_ready() -> None:
    async with class_platform(pods=0) as platform:
        await apply_broker(platform)
        # The operator learns of the endpoints by a watch that never says that there are none.
        await platform.start_pod("ingress-0")
        await platform.wait_for("brokers", "default", "True")
        await platform.stop_pod("ingress-0")
        reason, message = await platform.wait_for("brokers", "default", "False")

        assert reason == "NoIngress"
        assert "beckon/beckon-broker-ingress" in message


async def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    async with class_platform() as platform:
        platform.leads = False
        await apply_broker(platform)
        pod = platform.pods["ingress-0"]
        await until(lambda: pod.requests > 0, lambda: "the log was never looked at")
        await asyncio.sleep(0.1)

        assert platform.status("brokers", "default") == {}
