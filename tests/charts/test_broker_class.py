"""The plain manifests of the Broker class: they follow the others, and fit what the operator expects."""

import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from beckon_broker.settings import Settings as BrokerSettings
from beckon_cli.settings_page import field_names
from beckon_operator.settings import Settings as OperatorSettings
from tests.charts.test_manifests import DEPLOY, named, objects
from tests.cluster.machine import node_images, programs
from tests.nats_server import NAME, program

FOLDER = DEPLOY / "broker-class"
ROLES = ("ingress", "dispatcher")


@cache
def own() -> tuple[dict[str, Any], ...]:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))["resources"]
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in listed]
    return tuple(found for text in texts for found in yaml.safe_load_all(text))


def of_kind(*kinds: str) -> Iterator[dict[str, Any]]:
    return (found for found in own() if found["kind"] in kinds)


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in of_kind(kind) if each["metadata"]["name"] == name]
    return found


def pods() -> dict[str, dict[str, Any]]:
    found = of_kind("Deployment", "StatefulSet")
    return {each["metadata"]["name"]: each["spec"]["template"] for each in found}


def container(name: str) -> dict[str, Any]:
    (found,) = pods()[name]["spec"]["containers"]
    return dict(found)


def environment(role: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(f"beckon-broker-{role}")["env"]}


def selected(selector: Mapping[str, Any]) -> set[str]:
    """Return the pods that a selector takes."""
    labels = {name: template["metadata"]["labels"] for name, template in pods().items()}
    names = {name for name, own_ in labels.items() if selector.get("matchLabels", {}).items() <= own_.items()}
    for rule in selector.get("matchExpressions", ()):
        assert rule["operator"] == "In"
        names = {name for name in names if labels[name].get(rule["key"]) in rule["values"]}
    return names


def test_every_file_is_applied_in_the_order_of_its_number_and_makes_nothing_twice() -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
    keys = [(each["kind"], each["metadata"]["name"]) for each in (*objects(), *own())]

    assert kustomization["resources"] == sorted(path.name for path in FOLDER.glob("[0-9]*.yaml"))
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("role", ROLES)
def test_a_pod_of_the_broker_has_its_role_and_settings_that_it_knows(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name for name, _ in field_names(BrokerSettings)}

    found = environment(role)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    settings = BrokerSettings()

    assert set(found) <= known
    assert (settings.roles, settings.source) == (role, "cluster")


def test_both_roles_share_a_log_which_is_that_of_the_nats_beside_them() -> None:
    logs = [{key: value for key, value in environment(role).items() if "_NATS_" in key} for role in ROLES]
    service = one("Service", "beckon-nats")
    (port,) = service["spec"]["ports"]

    assert logs[0] == logs[1]
    host = f"beckon-nats.{service['metadata']['namespace']}.svc.cluster.local"
    assert logs[0]["BECKON_NATS_URL"] == f"nats://{host}:{port['port']}"


def test_the_operator_finds_the_pods_by_the_services_of_its_settings() -> None:
    settings = OperatorSettings.model_fields
    names = {settings["broker_ingress"].default, settings["broker_dispatcher"].default}

    assert names == {f"beckon-broker-{role}" for role in ROLES}
    for name in names:
        service = one("Service", name)["spec"]
        (port,) = service["ports"]
        assert selected({"matchLabels": service["selector"]}) == {name}
        # The operator writes this Service's name without a port into the address of a Broker.
        assert (port["name"], port["port"], port["targetPort"]) == ("http", 80, "http")


@pytest.mark.parametrize("name", [*(f"beckon-broker-{role}" for role in ROLES), "beckon-nats"])
def test_a_pod_meets_the_strictest_of_the_pod_security_standards(name: str) -> None:
    spec, security = pods()[name]["spec"], container(name)["securityContext"]
    ports = {port["name"] for port in container(name)["ports"]}

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert spec["enableServiceLinks"] is False
    assert {"cpu", "memory"} <= set(container(name)["resources"]["requests"])
    assert "memory" in container(name)["resources"]["limits"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container(name)[probe]["httpGet"]["port"] in ports


@pytest.mark.parametrize("role", ROLES)
def test_a_pod_of_the_broker_reads_the_cluster_and_has_time_to_end(role: str) -> None:
    name = f"beckon-broker-{role}"
    spec = pods()[name]["spec"]
    lingers = container(name)["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert named("ServiceAccount", spec["serviceAccountName"])
    assert named("ClusterRoleBinding", spec["serviceAccountName"])
    assert spec["automountServiceAccountToken"] is True
    needed = lingers + float(environment(role)["BECKON_DRAIN_SECONDS"])
    assert spec["terminationGracePeriodSeconds"] >= needed + 10
    assert one("PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1


def test_nats_has_no_token_and_is_reached_by_the_pods_of_the_broker_alone() -> None:
    policy = one("NetworkPolicy", "beckon-nats")["spec"]
    (rule,) = policy["ingress"]
    (source,) = rule["from"]

    assert pods()["beckon-nats"]["spec"]["automountServiceAccountToken"] is False
    assert selected(policy["podSelector"]) == {"beckon-nats"}
    assert selected(source["podSelector"]) == {f"beckon-broker-{role}" for role in ROLES}
    assert rule["ports"] == [{"port": 4222, "protocol": "TCP"}]


def test_the_operator_may_ask_the_pods_of_the_broker() -> None:
    policy = one("NetworkPolicy", "beckon-operator-broker")["spec"]
    (rule,) = policy["egress"]
    labels = named("Deployment", "beckon-operator")["spec"]["template"]["metadata"]["labels"]

    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert selected(rule["to"][0]["podSelector"]) == {f"beckon-broker-{role}" for role in ROLES}
    (port,) = container("beckon-broker-ingress")["ports"]
    assert rule["ports"] == [{"port": port["containerPort"], "protocol": "TCP"}]


def test_a_dispatcher_cannot_reach_the_addresses_where_clouds_hand_out_credentials() -> None:
    (rule,) = one("NetworkPolicy", "beckon-broker-dispatcher")["spec"]["egress"]
    blocks = {each["ipBlock"]["cidr"]: each["ipBlock"]["except"] for each in rule["to"] if "ipBlock" in each}

    assert set(blocks) == {"0.0.0.0/0", "::/0"}
    assert "169.254.0.0/16" in blocks["0.0.0.0/0"]


def test_the_server_takes_its_configuration(tmp_path: Path) -> None:
    configuration = tmp_path / "nats.conf"
    configuration.write_text(one("ConfigMap", "beckon-nats")["data"]["nats.conf"])

    done = subprocess.run([program(), "--config", configuration, "-t"], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_image_of_the_cluster_tests_has_the_name_and_the_version_of_the_published_one() -> None:
    image = container("beckon-nats")["image"]
    version = programs.version(NAME).removeprefix("v")

    assert image == node_images.nats_image_name()
    assert version.startswith(f"{image.rpartition(':')[2]}.")
