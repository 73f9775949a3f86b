"""What the chart renders for Brokers of the class Beckon: the plain manifests, and NATS as the values say."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.cluster.chart.cases import BECKON, CASES
from tests.cluster.chart.charts import DEPLOY, Chart, Key, Object, Refused, by_key, read_documents
from tests.cluster.chart.test_objects import OF_THE_RELEASE

ON = {"brokerClass": {"enabled": True}}
BROKERS = ("beckon-broker-ingress", "beckon-broker-dispatcher")
NATS = "beckon-nats"


def added(chart: Chart, given: Mapping[str, Any]) -> dict[Key, Object]:
    """Return what there is beside the objects of the chart's defaults."""
    usual = chart.render()
    return {key: each for key, each in chart.render(given).items() if key not in usual}


def pod(found: Mapping[Key, Object], name: str) -> Object:
    return dict(found["Deployment", "beckon", name]["spec"]["template"]["spec"])


def environment(found: Mapping[Key, Object], name: str) -> dict[str, Any]:
    (container,) = pod(found, name)["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_the_pods_of_the_class_are_those_of_the_plain_manifests(chart: Chart) -> None:
    folder = DEPLOY / "broker-class"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))["resources"]
    texts = [(folder / name).read_text(encoding="utf-8") for name in listed]
    wanted = by_key(each for text in texts for each in read_documents(text))

    rendered = added(chart, ON)
    for each in rendered.values():
        for label in OF_THE_RELEASE:
            del each["metadata"]["labels"][label]

    assert set(rendered) == set(wanted)
    for key, each in wanted.items():
        assert rendered[key] == each, key


def test_they_run_only_where_a_broker_has_the_class_or_the_values_say_so(chart: Chart) -> None:
    def runs(**given: Any) -> bool:
        return ("Deployment", "beckon", BROKERS[0]) in chart.render(given)

    kafka = {**BECKON, "name": "other", "class": "Kafka"}
    assert not runs()
    assert not runs(brokers=[kafka])
    assert runs(brokers=[kafka, BECKON])
    assert not runs(brokers=[BECKON], brokerClass={"enabled": False})
    assert runs(brokers=[], brokerClass={"enabled": True})


def test_nats_of_ones_own_is_used_and_none_is_made(chart: Chart) -> None:
    found = added(chart, CASES["broker-class-on-a-nats-cluster"])

    assert [key for key in found if key[2] == NATS] == []
    for name in BROKERS:
        settings = environment(found, name)
        (mounted,) = pod(found, name)["volumes"]
        assert settings["BECKON_NATS_URL"] == "tls://nats.nats.svc:4222"
        assert settings["BECKON_NATS_CREDENTIALS"] == "/etc/beckon/nats/nats.creds"
        assert settings["BECKON_NATS_REPLICAS"] == "3"
        assert settings["BECKON_BROKER_CONCURRENCY"] == "20"
        assert settings["BECKON_NATS_CA"] == "/etc/beckon/nats/ca.crt"
        sources = [each["secret"] for each in mounted["projected"]["sources"]]
        assert {each["name"]: each["items"] for each in sources} == {
            "nats": [{"key": "nats.creds", "path": "nats.creds"}],
            "nats-ca": [{"key": "ca.crt", "path": "ca.crt"}],
        }
    rules = found["NetworkPolicy", "beckon", BROKERS[0]]["spec"]["egress"]
    assert {"namespaceSelector": {}} in rules[1]["to"]


def test_an_address_with_a_password_is_in_a_secret(chart: Chart) -> None:
    found = added(chart, {**ON, "nats": {"existingSecret": "nats-address", "key": "address"}})

    assert [key for key in found if key[2] == NATS] == []
    for name in BROKERS:
        address = environment(found, name)["BECKON_NATS_URL"]
        assert address == {"secretKeyRef": {"name": "nats-address", "key": "address"}}


def test_the_operator_knows_the_secret_that_the_pods_have(chart: Chart) -> None:
    plain, given = chart.render(ON), chart.render(CASES["broker-class-on-a-nats-cluster"])

    assert "BECKON_NATS_SECRET" not in environment(plain, "beckon-operator")
    assert environment(given, "beckon-operator")["BECKON_NATS_SECRET"] == "nats"


def test_without_a_volume_the_events_are_in_the_pod(chart: Chart) -> None:
    spec = added(chart, {**ON, "nats": {"embedded": {"size": ""}}})["StatefulSet", "beckon", NATS]["spec"]

    assert "volumeClaimTemplates" not in spec
    assert {"name": "data", "emptyDir": {}} in spec["template"]["spec"]["volumes"]


def test_an_autoscaler_decides_how_many_pods_run(chart: Chart) -> None:
    found = added(chart, CASES["broker-class-on-a-nats-cluster"])

    limits = {}
    for name in BROKERS:
        spec = found["HorizontalPodAutoscaler", "beckon", name]["spec"]
        limits[name] = spec["minReplicas"], spec["maxReplicas"]
        assert "replicas" not in found["Deployment", "beckon", name]["spec"]
        assert spec["scaleTargetRef"]["name"] == name
    assert list(limits.values()) == [(3, 10), (2, 20)]


def test_keda_decides_by_the_length_of_the_queues(chart: Chart) -> None:
    keda = {"enabled": True, "prometheus": "http://prometheus.monitoring:9090", "queueLength": 50}
    found = added(chart, {"brokerClass": {"enabled": True, "dispatcher": {"keda": keda}}})

    spec = found["ScaledObject", "beckon", BROKERS[1]]["spec"]
    (trigger,) = spec["triggers"]
    assert "replicas" not in found["Deployment", "beckon", BROKERS[1]]["spec"]
    assert found["Deployment", "beckon", BROKERS[0]]["spec"]["replicas"] == 2
    assert spec["scaleTargetRef"]["name"] == BROKERS[1]
    assert trigger["metadata"]["threshold"] == "50"
    assert trigger["metadata"]["serverAddress"] == keda["prometheus"]
    assert 'beckon_broker_queue_length{namespace="beckon"}' in trigger["metadata"]["query"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"ingress": {"replicas": 20, "autoscaling": {"enabled": True}}},
            "ingress.autoscaling.maxReplicas is",
        ),
        ({"dispatcher": {"keda": {"enabled": True}}}, "name the address of your Prometheus"),
        (
            {"dispatcher": {"replicas": 20, "keda": {"enabled": True, "prometheus": "http://p"}}},
            "keda.maxReplicas is less",
        ),
        (
            {
                "dispatcher": {
                    "autoscaling": {"enabled": True},
                    "keda": {"enabled": True, "prometheus": "http://p"},
                }
            },
            "turn one of them off",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(chart: Chart, values: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        chart.render({"brokerClass": {"enabled": True, **values}})


def test_prometheus_reads_the_metrics_of_the_pods(chart: Chart) -> None:
    monitor = chart.render(CASES["broker-class-on-a-nats-cluster"])["ServiceMonitor", "beckon", "beckon"]

    (among,) = monitor["spec"]["selector"]["matchExpressions"]
    assert {"broker-ingress", "broker-dispatcher"} <= set(among["values"])
