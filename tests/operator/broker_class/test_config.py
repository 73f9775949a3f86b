"""ConfigMaps and EventPolicies of Brokers of the class."""

from typing import Any

import pytest

from beckon_contract.knative.broker_class import LogReport
from beckon_contract.kubernetes_objects import from_object
from beckon_operator.broker_class.broker_config import BrokerConfig, compare_config
from beckon_operator.broker_class.event_policies import applies_to
from tests.operator.broker_class.class_platform import NAMESPACE, ClassPlatform, class_platform
from tests.operator.broker_class.test_class import apply_broker
from tests.sources.api_server import Document

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nats", "namespace": NAMESPACE}
NATS = LogReport("a.nats:4222, b.nats:4222", "", "file", 3)


async def put_config(platform: ClassPlatform, **data: str) -> None:
    metadata = {"namespace": NAMESPACE, "name": "nats"}
    await platform.api.put("configmaps", {"metadata": metadata, "data": data})


@pytest.mark.parametrize(
    ("data", "reason", "words"),
    [
        ({"nats_url": "nats://a"}, "InvalidConfig", "unknown key 'nats_url'"),
        ({"replicas": "2"}, "InvalidConfig", "replicas of ConfigMap team/nats is '2'"),
        ({"storage": "disk"}, "InvalidConfig", "must be file or memory"),
        ({"nats-url": "http://nats:4222"}, "InvalidConfig", "nats-url of ConfigMap team/nats"),
        ({"nats-url": "nats://other:4222"}, "ConfigDiffers", "nats-url is other:4222"),
        ({"replicas": "3"}, "ConfigDiffers", "replicas is 3, but the broker's pods have 1"),
        ({"nats-credentials-secret": "mine"}, "ConfigDiffers", "nats-credentials-secret is mine"),
    ],
)
async def test_a_wrong_configuration_is_named_by_its_key(
    data: dict[str, str], reason: str, words: str
) -> None:
    async with class_platform() as platform:
        await put_config(platform, **data)
        await apply_broker(platform, config=CONFIG)
        found, message = await platform.wait_for("brokers", "default", "False")

        assert (found, words in message) == (reason, True), message
        assert "address" not in platform.status("brokers", "default")
        assert platform.pods["ingress-0"].topology.brokers == {}


async def test_a_missing_configuration_is_named() -> None:
    async with class_platform() as platform:
        await apply_broker(platform, config=CONFIG)
        _, message = await platform.wait_for("brokers", "default", "False")

        assert "ConfigMap team/nats does not exist" in message


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"nats-url": "nats://nats.beckon.svc:4222", "storage": "file", "replicas": "1"},
        {"nats-credentials-secret": "nats"},
        # What Knative's webhook gives to a Broker without a configuration.
        {"channel-template-spec": "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\n"},
    ],
)
async def test_a_configuration_that_the_pods_have_is_taken(data: dict[str, str]) -> None:
    async with class_platform() as platform:
        await put_config(platform, **data)
        await apply_broker(platform, config=CONFIG)
        await platform.wait_for("brokers", "default", "True")


def test_servers_are_compared_as_a_set() -> None:
    assert compare_config(BrokerConfig("nats://b.nats, nats://a.nats:4222", replicas=3), NATS, "") == ""
    assert "nats-url" in compare_config(BrokerConfig("nats://a.nats"), NATS, "")
    assert "pods have memory" in compare_config(BrokerConfig("nats://a.nats"), LogReport(), "")


async def test_an_event_policy_closes_a_broker() -> None:
    async with class_platform() as platform:
        await apply_broker(platform)
        await apply_broker(platform, "open")
        await platform.wait_for("brokers", "default", "True")
        ref = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"}
        await platform.apply("eventpolicies", "limits", {"to": [{"ref": ref}], "from": []})
        reason, message = await platform.wait_for("brokers", "default", "False")
        assert (reason, "EventPolicy limits" in message) == ("EventPoliciesNotSupported", True)
        assert "address" not in platform.status("brokers", "default")
        assert platform.condition("brokers", "open")[0] == "True"

        await platform.api.delete("eventpolicies", "limits", NAMESPACE)
        await platform.wait_for("brokers", "default", "True")


BROKER = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker"}
A_OR_B = {"key": "app", "operator": "In", "values": ["a", "b"]}


@pytest.mark.parametrize(
    ("to", "applies"),
    [
        (None, True),
        ([{"ref": {**BROKER, "name": "default"}}], True),
        ([{"ref": {**BROKER, "name": "other"}}], False),
        ([{"ref": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "default"}}], False),
        ([{"selector": {**BROKER, "matchLabels": {"app": "a"}}}], True),
        ([{"selector": {**BROKER, "matchLabels": {"app": "b"}}}], False),
        ([{"selector": {**BROKER}}], True),
        ([{"selector": {**BROKER, "matchExpressions": [A_OR_B]}}], True),
        ([{"selector": {**BROKER, "matchExpressions": [{**A_OR_B, "operator": "NotIn"}]}}], False),
        ([{"selector": {**BROKER, "matchExpressions": [{"key": "x", "operator": "Exists"}]}}], False),
    ],
)
def test_a_policy_applies_to_what_it_names(to: list[Document] | None, applies: bool) -> None:
    metadata: dict[str, Any] = {"name": "default", "namespace": NAMESPACE, "labels": {"app": "a"}}
    broker = from_object({**BROKER, "metadata": metadata})

    assert applies_to({"to": to} if to is not None else {}, broker) is applies
