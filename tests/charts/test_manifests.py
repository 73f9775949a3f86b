"""The plain manifests: complete, in order, pointing at what exists, and with no right too many."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from beckon_agent.settings import Settings as AgentSettings
from beckon_cli.settings_page import field_names
from beckon_contract.kubernetes_objects import from_object
from beckon_demo.__main__ import Settings as DemoSettings
from beckon_operator.conditions.namespace_view import JudgingRules
from beckon_operator.reply_path.wanted import plan_triggers
from beckon_operator.settings import Settings as OperatorSettings
from beckon_operator.webhook.settings import WebhookSettings
from beckon_shim.settings import Settings as ShimSettings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPONENTS: Mapping[str, type[BaseSettings]] = {
    "operator": OperatorSettings,
    "webhook": WebhookSettings,
    "shim": ShimSettings,
    "agent": AgentSettings,
    "demo-model": DemoSettings,
}


@cache
def objects() -> tuple[dict[str, Any], ...]:
    listed = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text("utf-8"))["resources"]
    texts = [(DEPLOY / name).read_text(encoding="utf-8") for name in listed]
    return tuple(found for text in texts for found in yaml.safe_load_all(text))


def of_kind(*kinds: str) -> Iterator[dict[str, Any]]:
    return (found for found in objects() if found["kind"] in kinds)


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in of_kind(kind) if each["metadata"]["name"] == name]
    return found


def deployment(component: str) -> dict[str, Any]:
    return named("Deployment", f"beckon-{component}")


def pod(component: str) -> dict[str, Any]:
    found: dict[str, Any] = deployment(component)["spec"]["template"]["spec"]
    return found


def container(component: str) -> dict[str, Any]:
    (found,) = pod(component)["containers"]
    return dict(found)


def ports(component: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(component)["ports"]}


def environment(component: str) -> dict[str, str]:
    return {each["name"]: str(each.get("value", "")) for each in container(component)["env"]}


def test_every_numbered_file_is_applied_in_the_order_of_its_number() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text("utf-8"))

    assert kustomization["resources"] == sorted(path.name for path in DEPLOY.glob("[0-9]*.yaml"))


def test_every_deployment_is_one_of_the_components() -> None:
    assert {found["metadata"]["name"] for found in of_kind("Deployment")} == {
        f"beckon-{component}" for component in COMPONENTS
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_service_is_given_settings_that_it_knows(component: str) -> None:
    known = {name for name, _ in field_names(COMPONENTS[component])}

    assert set(environment(component)) <= known
    assert "BECKON_LOG_LEVEL" in environment(component)


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_services_beside_a_pod_set_nothing_in_its_environment(component: str) -> None:
    # Kubernetes would set BECKON_PORT=tcp://… for a Service called beckon.
    assert pod(component)["enableServiceLinks"] is False


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_meets_the_strictest_of_the_pod_security_standards(component: str) -> None:
    spec, security = pod(component), container(component)["securityContext"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_has_requests_a_limit_of_memory_and_none_of_cpu(component: str) -> None:
    resources = container(component)["resources"]

    assert set(resources["requests"]) >= {"cpu", "memory"}
    assert "memory" in resources["limits"]
    assert "cpu" not in resources["limits"]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_has_an_account_of_its_own_and_its_token_only_where_it_has_rights(component: str) -> None:
    account = f"beckon-{component}"
    granted = {
        subject["name"]
        for binding in of_kind("RoleBinding", "ClusterRoleBinding")
        for subject in binding["subjects"]
    }

    assert pod(component)["serviceAccountName"] == account
    assert named("ServiceAccount", account)["automountServiceAccountToken"] is False
    assert pod(component)["automountServiceAccountToken"] is (account in granted)


@pytest.mark.parametrize("component", COMPONENTS)
def test_probes_ask_ports_that_exist(component: str) -> None:
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container(component)[probe]["httpGet"]["port"] in ports(component)


@pytest.mark.parametrize(
    ("component", "settings"),
    [
        ("shim", ("BECKON_SHIM_LEAVE_SECONDS", "BECKON_DRAIN_SECONDS")),
        ("agent", ("BECKON_DRAIN_SECONDS",)),
    ],
)
def test_a_pod_has_more_time_to_end_than_its_service_needs(component: str, settings: tuple[str, ...]) -> None:
    before = container(component).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    needed = before + sum(float(environment(component)[name]) for name in settings)

    assert pod(component)["terminationGracePeriodSeconds"] >= needed + 10


def selected(selector: Mapping[str, str]) -> list[str]:
    """Return the components whose pods have these labels."""
    found = {
        component: deployment(component)["spec"]["template"]["metadata"]["labels"] for component in COMPONENTS
    }
    return [component for component, labels in found.items() if selector.items() <= labels.items()]


def test_every_service_leads_to_a_port_of_its_component() -> None:
    for service in of_kind("Service"):
        (component,) = selected(service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports(component), service["metadata"]["name"]


def test_every_component_of_several_replicas_has_a_budget_and_is_spread_over_nodes() -> None:
    several = {name for name in COMPONENTS if deployment(name)["spec"]["replicas"] > 1}

    budgets = [selected(found["spec"]["selector"]["matchLabels"]) for found in of_kind("PodDisruptionBudget")]

    assert sorted(budgets) == sorted([name] for name in several)
    for component in several:
        (spread,) = pod(component)["topologySpreadConstraints"]
        assert selected(spread["labelSelector"]["matchLabels"]) == [component]
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_the_network_is_closed_but_for_what_is_allowed() -> None:
    denied = named("NetworkPolicy", "beckon-default-deny")["spec"]

    assert selected(denied["podSelector"]["matchLabels"]) == list(COMPONENTS)
    assert sorted(denied["policyTypes"]) == ["Egress", "Ingress"]
    assert not {"ingress", "egress"} & set(denied)


@pytest.mark.parametrize(
    ("component", "open_to_all", "open_to_the_cluster", "open_to"),
    [
        ("operator", [], [8080], {}),
        ("webhook", [8443], [8080], {}),
        ("shim", [], [8083], {8082: "agent"}),
        ("agent", [8080], [], {9090: "namespace monitoring"}),
        ("demo-model", [], [], {8084: "agent"}),
    ],
)
def test_a_component_is_reached_only_by_those_who_need_it(
    component: str, open_to_all: list[int], open_to_the_cluster: list[int], open_to: dict[int, str]
) -> None:
    policy = named("NetworkPolicy", f"beckon-{component}")["spec"]
    found: dict[str, Any] = {"all": [], "cluster": [], "pods": {}}
    for rule in policy["ingress"]:
        numbers = [port["port"] for port in rule["ports"]]
        assert set(numbers) <= set(ports(component).values())
        match rule.get("from"):
            case None:
                found["all"] += numbers
            case [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}]:
                found["pods"] |= dict.fromkeys(numbers, f"namespace {namespace}")
            case [{"namespaceSelector": {}}]:
                found["cluster"] += numbers
            case [{"podSelector": {"matchLabels": labels}}]:
                (caller,) = selected(labels)
                found["pods"] |= dict.fromkeys(numbers, caller)
            case other:
                pytest.fail(f"an unknown form: {other}")

    assert selected(policy["podSelector"]["matchLabels"]) == [component]
    assert found == {"all": open_to_all, "cluster": open_to_the_cluster, "pods": open_to}


def test_the_agent_cannot_reach_the_addresses_where_clouds_hand_out_credentials() -> None:
    (rule,) = named("NetworkPolicy", "beckon-agent")["spec"]["egress"]
    blocks = {each["ipBlock"]["cidr"]: each["ipBlock"]["except"] for each in rule["to"] if "ipBlock" in each}

    assert set(blocks) == {"0.0.0.0/0", "::/0"}
    assert "169.254.0.0/16" in blocks["0.0.0.0/0"]


def test_agent_and_shim_have_the_same_keys_and_calls_without_them_are_refused() -> None:
    secret = {
        component: {
            volume["secret"]["secretName"] for volume in pod(component)["volumes"] if "secret" in volume
        }
        for component in ("agent", "shim")
    }

    assert "beckon-shim-keys" in secret["agent"] & secret["shim"]
    assert environment("agent")["BECKON_SHIM_KEYS_FILE"].endswith("/keys")
    assert environment("shim")["BECKON_SHIM_KEYS_FILE"].endswith("/keys")
    assert "BECKON_SHIM_OPEN_CALLS" not in environment("shim")


@pytest.mark.parametrize(
    ("policy", "account", "resource"),
    [
        ("beckon-webhook", "beckon-webhook", "mutatingwebhookconfigurations"),
        ("beckon-webhook-secrets", "beckon-webhook", "secrets"),
        ("beckon-operator-secrets", "beckon-operator", "secrets"),
        ("beckon-operator-triggers", "beckon-operator", "triggers"),
        ("beckon-operator-statuses", "beckon-operator", "brokers/status"),
    ],
)
def test_a_policy_holds_an_account_to_what_it_writes(policy: str, account: str, resource: str) -> None:
    spec = named("ValidatingAdmissionPolicy", policy)["spec"]
    binding = named("ValidatingAdmissionPolicyBinding", policy)["spec"]

    assert spec["failurePolicy"] == "Fail"
    assert resource in spec["matchConstraints"]["resourceRules"][0]["resources"]
    (condition,) = spec["matchConditions"]
    assert f"'system:serviceaccount:beckon:{account}'" in condition["expression"]
    assert binding == {"policyName": policy, "validationActions": ["Deny"]}
    named("ServiceAccount", account)


def test_the_webhook_fails_open_and_is_called_for_what_clients_write() -> None:
    (hook,) = named("MutatingWebhookConfiguration", "beckon-webhook")["webhooks"]
    service = hook["clientConfig"]["service"]

    assert hook["failurePolicy"] == "Ignore"
    assert hook["matchPolicy"] == "Exact"
    assert hook["timeoutSeconds"] <= 5
    assert hook["rules"][0]["resources"] == ["eventtypes"]
    assert named("Service", service["name"])["spec"]["ports"][0]["port"] == service["port"]


def test_dead_letters_come_to_the_shim_and_the_operator_writes_the_triggers() -> None:
    (broker,) = of_kind("Broker")
    rules = JudgingRules(OperatorSettings.model_construct().replies_url)
    resource = from_object(broker)

    assert broker["spec"]["delivery"]["deadLetterSink"]["uri"] == rules.dead_letters
    assert "BECKON_OPERATOR_REPLY_TRIGGERS" not in environment("operator")
    changes, problems = plan_triggers(resource, None, [], {}, rules)
    assert [one.name for one in changes] == ["default-beckon-replies", "default-beckon-progress"]
    assert not problems
    assert not list(of_kind("Trigger"))
