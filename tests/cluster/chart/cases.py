"""Sets of values that people install with, each by its name."""

from collections.abc import Mapping
from typing import Any

KAFKA = {
    "namespace": "default",
    "name": "default",
    "create": True,
    "class": "Kafka",
    "config": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "kafka-broker-config",
        "namespace": "knative-eventing",
    },
}
BECKON = {"namespace": "default", "name": "default", "create": True, "class": "Beckon"}
CASES: Mapping[str, dict[str, Any]] = {
    "defaults": {},
    "a-real-model": {"model": {"baseURL": "https://models.example/v1", "name": "m", "existingSecret": "k"}},
    "a-real-model-beside-the-demo": {
        "model": {"baseURL": "https://models.example/v1"},
        "demoModel": {"enabled": True},
    },
    "one-of-each": {part: {"replicas": 1} for part in ("agent", "shim", "operator", "webhook")},
    "without-extras": {
        "webhook": {"enabled": False},
        "networkPolicies": {"enabled": False},
        "podDisruptionBudgets": {"enabled": False},
        "demoModel": {"enabled": "auto"},
    },
    "autoscaled": {"shim": {"replicas": 2, "autoscaling": {"enabled": True, "maxReplicas": 6}}},
    "monitored": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "labels": {"team": "a"}},
        "tracing": {"endpoint": "http://collector.observability:4318", "ratio": 0.25},
    },
    "several-namespaces": {
        "agent": {"namespaces": ["team-a", "team-b"], "modelSecrets": ["openai", "local"]},
        "operator": {"namespaces": ["team-a", "team-b"]},
        "brokers": [
            {"namespace": "team-a", "name": "default", "create": True},
            {"namespace": "team-b", "name": "events", "create": False},
        ],
    },
    "everywhere": {"agent": {"namespaces": ["*"]}},
    "no-secrets-for-agents": {"agent": {"modelSecrets": []}},
    "kafka": {"brokers": [KAFKA]},
    "no-brokers": {"brokers": []},
    "broker-class": {"brokers": [BECKON]},
    "broker-class-on-a-nats-cluster": {
        "brokers": [BECKON],
        "brokerClass": {
            "ingress": {"replicas": 3, "autoscaling": {"enabled": True, "cpu": "500m"}},
            "dispatcher": {"autoscaling": {"enabled": True, "maxReplicas": 20}},
            "settings": {"BECKON_BROKER_CONCURRENCY": "20"},
        },
        "nats": {
            "url": "tls://nats.nats.svc:4222",
            "credentialsSecret": "nats",
            "caSecret": "nats-ca",
            "replicas": 3,
        },
        "serviceMonitor": {"enabled": True},
    },
    "from-a-registry": {
        "image": {"registry": "registry.example/team", "tag": "1.2.3", "pullSecrets": ["registry"]},
    },
    "own-keys": {"shim": {"existingSecret": "my-keys"}, "access": {"existingSecret": "our-people"}},
    "open-to-everybody": {
        "access": {"anonymous": True, "openEvents": True},
        "agent": {"mcpEvents": 1000},
    },
    "tokens": {
        "access": {
            "denyByDefault": True,
            "publicURL": "https://beckon.example.com",
            "oidc": {
                "issuer": "https://login.example.com",
                "audience": "beckon",
                "caConfigMap": "authorities",
            },
        },
        "store": {"existingSecret": "database"},
    },
    "https": {
        "agent": {"tls": {"issuer": {"name": "own", "kind": "ClusterIssuer"}, "hosts": ["a.example.com"]}}
    },
    "a-file-of-runs": {
        "agent": {"replicas": 1},
        "store": {"sqlite": {"size": "1Gi", "storageClass": "fast"}},
    },
    "placed": {
        "scheduling": {
            "agent": {"nodeSelector": {"disk": "fast"}, "priorityClassName": "high"},
            "demoModel": {"tolerations": [{"key": "spot", "operator": "Exists"}]},
            "shim": {"affinity": {"podAntiAffinity": {}}},
        },
    },
    "open-calls": {"shim": {"openCalls": True}},
    "another-domain": {"clusterDomain": "example.internal", "logLevel": "debug"},
}
