"""Every value of the chart does something."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from tests.cluster.chart.charts import CHART, Chart, Key, Object

CHANGES: Mapping[str, Any] = {
    "image.registry": "r",
    "image.tag": "2",
    "image.pullPolicy": "Always",
    "image.pullSecrets": ["s"],
    "model.baseURL": "http://m/v1",
    "model.name": "m",
    "model.dialect": "hermes",
    "model.existingSecret": "s",
    "model.key": "k",
    "demoModel.enabled": True,
    "brokers": [],
    "agent.replicas": 4,
    "agent.namespaces": ["a"],
    "agent.modelSecrets": [],
    "agent.mcpEvents": 10,
    "agent.tls.existingSecret": "s",
    "agent.tls.issuer.name": "i",
    "agent.tls.issuer.kind": "ClusterIssuer",
    "agent.tls.hosts": ["agent.example.com"],
    "agent.answerSink": "http://b",
    "agent.settings": {"BECKON_LATE_SECONDS": "60"},
    "access.existingSecret": "s",
    "access.anonymous": True,
    "access.openEvents": True,
    "access.denyByDefault": True,
    "access.publicURL": "https://b",
    "access.oidc.issuer": "https://i",
    "access.oidc.audience": "b",
    "access.oidc.userClaim": "email",
    "access.oidc.groupsClaim": "roles",
    "access.oidc.caConfigMap": "c",
    "store.existingSecret": "s",
    "store.key": "k",
    "store.keepDays": 7,
    "store.sqlite.size": "1Gi",
    "store.sqlite.storageClass": "c",
    "shim.replicas": 4,
    "shim.existingSecret": "s",
    "shim.openCalls": True,
    "shim.autoscaling.enabled": True,
    "shim.autoscaling.maxReplicas": 7,
    "shim.autoscaling.metric": "m",
    "shim.autoscaling.waitingCalls": 7,
    "agent.metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
    "operator.replicas": 4,
    "operator.namespaces": ["a"],
    "operator.replyTriggers": False,
    "operator.probeSeconds": 0,
    "webhook.enabled": False,
    "webhook.replicas": 4,
    "adapter.enabled": True,
    "adapter.replicas": 4,
    "adapter.namespaces": ["a"],
    "adapter.allowedHosts": [{"host": "api.example.com"}],
    "adapter.credentials": [
        {"name": "n", "hosts": ["api.example.com"], "type": "bearer", "secret": "s", "key": "k"}
    ],
    "adapter.progressSink": "http://b",
    "brokerClass.enabled": True,
    "brokerClass.ingress.replicas": 4,
    "brokerClass.ingress.autoscaling.enabled": True,
    "brokerClass.ingress.autoscaling.maxReplicas": 7,
    "brokerClass.ingress.autoscaling.cpu": "300m",
    "brokerClass.dispatcher.replicas": 4,
    "brokerClass.dispatcher.autoscaling.enabled": True,
    "brokerClass.dispatcher.autoscaling.maxReplicas": 7,
    "brokerClass.dispatcher.autoscaling.cpu": "300m",
    "brokerClass.dispatcher.keda.enabled": True,
    "brokerClass.dispatcher.keda.prometheus": "http://p:9090",
    "brokerClass.dispatcher.keda.maxReplicas": 7,
    "brokerClass.dispatcher.keda.queueLength": 7,
    "brokerClass.settings": {"BECKON_BROKER_CONCURRENCY": "7"},
    "nats.url": "nats://n:4222",
    "nats.existingSecret": "s",
    "nats.key": "k",
    "nats.credentialsSecret": "s",
    "nats.credentialsKey": "k",
    "nats.caSecret": "s",
    "nats.caKey": "k",
    "nats.stream": "s",
    "nats.replicas": 3,
    "nats.maxBytes": 7,
    "nats.embedded.image": "i:1",
    "nats.embedded.size": "2Gi",
    "nats.embedded.storageClass": "c",
    "networkPolicies.enabled": False,
    "podDisruptionBudgets.enabled": False,
    "serviceMonitor.enabled": True,
    "alerts.enabled": True,
    "alerts.labels": {"a": "b"},
    "serviceMonitor.labels": {"a": "b"},
    "dashboards.enabled": True,
    "dashboards.labels": {"a": "b"},
    "tracing.endpoint": "http://c:4318",
    "tracing.ratio": "0.5",
    "tracing.captureContent": True,
    "logLevel": "debug",
    "clusterDomain": "d",
    "resources.operator": {"limits": {"memory": "1Mi"}},
    "resources.webhook": {"limits": {"memory": "1Mi"}},
    "resources.shim": {"limits": {"memory": "1Mi"}},
    "resources.agent": {"limits": {"memory": "1Mi"}},
    "resources.adapter": {"limits": {"memory": "1Mi"}},
    "resources.demoModel": {"limits": {"memory": "1Mi"}},
    "resources.brokerIngress": {"limits": {"memory": "1Mi"}},
    "resources.brokerDispatcher": {"limits": {"memory": "1Mi"}},
    "resources.nats": {"limits": {"memory": "1Mi"}},
    "scheduling": {"shim": {"nodeSelector": {"a": "b"}}},
}
BROKER_CLASS: dict[str, Any] = {"brokerClass": {"enabled": True}}
SCALED_INGRESS = {"brokerClass": {"enabled": True, "ingress": {"autoscaling": {"enabled": True}}}}
SCALED_DISPATCHER = {"brokerClass": {"enabled": True, "dispatcher": {"autoscaling": {"enabled": True}}}}
KEDA = {"enabled": True, "prometheus": "http://prometheus:9090"}
SCALED_BY_KEDA = {"brokerClass": {"enabled": True, "dispatcher": {"keda": KEDA}}}
# What has an effect only beside another value.
BESIDE: Mapping[str, dict[str, Any]] = {
    "demoModel.enabled": {"model": {"baseURL": "http://m/v1"}},
    "serviceMonitor.labels": {"serviceMonitor": {"enabled": True}},
    "alerts.labels": {"alerts": {"enabled": True}},
    "dashboards.labels": {"dashboards": {"enabled": True}},
    "tracing.ratio": {"tracing": {"endpoint": "http://c:4318"}},
    "tracing.captureContent": {"tracing": {"endpoint": "http://c:4318"}},
    "access.oidc.issuer": {"access": {"oidc": {"audience": "a"}}},
    "access.oidc.audience": {"access": {"oidc": {"issuer": "https://i", "audience": "a"}}},
    "access.oidc.userClaim": {"access": {"oidc": {"issuer": "https://i", "audience": "a"}}},
    "access.oidc.groupsClaim": {"access": {"oidc": {"issuer": "https://i", "audience": "a"}}},
    "access.oidc.caConfigMap": {"access": {"oidc": {"issuer": "https://i", "audience": "a"}}},
    "adapter.replicas": {"adapter": {"enabled": True}},
    "adapter.namespaces": {"adapter": {"enabled": True}},
    "adapter.allowedHosts": {"adapter": {"enabled": True}},
    "adapter.credentials": {"adapter": {"enabled": True}},
    "adapter.progressSink": {"adapter": {"enabled": True}},
    "resources.adapter": {"adapter": {"enabled": True}},
    "agent.tls.issuer.kind": {"agent": {"tls": {"issuer": {"name": "i"}}}},
    "agent.tls.hosts": {"agent": {"tls": {"issuer": {"name": "i"}}}},
    "store.key": {"store": {"existingSecret": "s"}},
    "store.sqlite.size": {"agent": {"replicas": 1}},
    "store.sqlite.storageClass": {"agent": {"replicas": 1}, "store": {"sqlite": {"size": "1Gi"}}},
    "shim.autoscaling.maxReplicas": {"shim": {"autoscaling": {"enabled": True}}},
    "shim.autoscaling.metric": {"shim": {"autoscaling": {"enabled": True}}},
    "shim.autoscaling.waitingCalls": {"shim": {"autoscaling": {"enabled": True}}},
    **{
        f"brokerClass.{path}": BROKER_CLASS
        for path in ("ingress.replicas", "dispatcher.replicas", "settings")
    },
    "brokerClass.ingress.autoscaling.enabled": BROKER_CLASS,
    "brokerClass.ingress.autoscaling.maxReplicas": SCALED_INGRESS,
    "brokerClass.ingress.autoscaling.cpu": SCALED_INGRESS,
    "brokerClass.dispatcher.autoscaling.enabled": BROKER_CLASS,
    "brokerClass.dispatcher.autoscaling.maxReplicas": SCALED_DISPATCHER,
    "brokerClass.dispatcher.autoscaling.cpu": SCALED_DISPATCHER,
    "brokerClass.dispatcher.keda.enabled": {
        "brokerClass": {"enabled": True, "dispatcher": {"keda": {"prometheus": "http://prometheus:9090"}}}
    },
    "brokerClass.dispatcher.keda.prometheus": SCALED_BY_KEDA,
    "brokerClass.dispatcher.keda.maxReplicas": SCALED_BY_KEDA,
    "brokerClass.dispatcher.keda.queueLength": SCALED_BY_KEDA,
    **{f"nats.{path}": BROKER_CLASS for path in ("url", "existingSecret", "stream", "replicas", "maxBytes")},
    "nats.key": BROKER_CLASS | {"nats": {"existingSecret": "s"}},
    "nats.credentialsSecret": BROKER_CLASS,
    "nats.caSecret": BROKER_CLASS,
    "nats.caKey": BROKER_CLASS | {"nats": {"caSecret": "s"}},
    "nats.credentialsKey": BROKER_CLASS | {"nats": {"credentialsSecret": "s"}},
    **{f"nats.embedded.{path}": BROKER_CLASS for path in ("image", "size", "storageClass")},
    **{f"resources.{pod}": BROKER_CLASS for pod in ("brokerIngress", "brokerDispatcher", "nats")},
}


@pytest.mark.parametrize("path", CHANGES)
def test_every_value_changes_what_is_rendered(chart: Chart, path: str) -> None:
    beside = BESIDE.get(path, {})

    assert chart.render(merged(beside, path, CHANGES[path])) != rendered_once(chart, json.dumps(beside))


@cache
def rendered_once(chart: Chart, values: str) -> Mapping[Key, Object]:
    """Render a release with values in JSON, which many tests change."""
    return chart.render(json.loads(values))


def merged(beside: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return values with one more, by its path."""
    first, _, rest = path.partition(".")
    inner = beside.get(first, {})
    return {**beside, first: merged(inner, rest, value) if rest else value}


def test_no_value_is_left_out_of_these_tests() -> None:
    assert set(CHANGES) == set(leaves(yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))))


def leaves(found: Mapping[str, Any], above: str = "") -> list[str]:
    paths: list[str] = []
    for key, value in found.items():
        path = f"{above}{key}"
        inner = isinstance(value, dict) and value and not above.startswith("resources")
        paths += leaves(value, f"{path}.") if inner else [path]
    return paths
