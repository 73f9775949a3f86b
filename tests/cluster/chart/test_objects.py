"""What the chart renders: by default the plain manifests, and for each switch what it promises."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.chart.cases import CASES, KAFKA
from tests.cluster.chart.charts import CHART, DEPLOY, Chart, Key, Object, Refused, by_key, read_documents

OF_THE_RELEASE = {
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
}


def plain() -> dict[Key, Object]:
    """Return the plain manifests, without what Helm takes care of: namespace and CRDs."""
    listed = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text("utf-8"))["resources"]
    texts = [(DEPLOY / name).read_text(encoding="utf-8") for name in listed]
    found = by_key(each for text in texts for each in read_documents(text))
    return {
        key: each for key, each in found.items() if key[0] not in ("Namespace", "CustomResourceDefinition")
    }


def deployments(found: Mapping[Key, Object]) -> dict[str, Object]:
    return {name: each for (kind, _, name), each in found.items() if kind == "Deployment"}


def container(found: Mapping[Key, Object], name: str) -> Object:
    (only,) = found["Deployment", "beckon", name]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def environment(found: Mapping[Key, Object], name: str) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(found, name)["env"]}


def test_helm_has_nothing_to_say_against_the_chart(chart: Chart) -> None:
    said = chart.run("lint", "--strict", str(chart.folder))

    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_by_default_the_chart_is_the_plain_manifests(chart: Chart) -> None:
    rendered = chart.render()
    for each in rendered.values():
        for label in OF_THE_RELEASE:
            del each["metadata"]["labels"][label]

    wanted = plain()

    assert set(rendered) == set(wanted)
    for key, each in wanted.items():
        assert rendered[key] == each, key
    assert len(wanted) > 40


@pytest.mark.parametrize("case", CASES)
def test_every_rendering_is_consistent(chart: Chart, case: str) -> None:
    found = chart.render(CASES[case])

    accounts = {name for kind, _, name in found if kind == "ServiceAccount"}
    for name, each in deployments(found).items():
        pod = each["spec"]["template"]["spec"]
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert pod["serviceAccountName"] in accounts
        assert pod["securityContext"]["runAsNonRoot"], name
        assert all(only["securityContext"]["readOnlyRootFilesystem"] for only in pod["containers"])
    for (kind, _, name), each in found.items():
        assert set(each["metadata"]["labels"]) >= OF_THE_RELEASE, (kind, name)
        if kind.endswith("RoleBinding"):
            role = each["roleRef"]["kind"], each["roleRef"]["name"]
            assert role in {(other, named) for other, _, named in found}, name


@pytest.mark.parametrize("case", CASES)
def test_everything_follows_the_namespace_of_the_release(chart: Chart, case: str) -> None:
    there = chart.text(CASES[case], "elsewhere")

    assert (
        chart.text(CASES[case])
        .replace("namespace: beckon", "namespace: elsewhere")
        .replace(".beckon.svc", ".elsewhere.svc")
        .replace("system:serviceaccount:beckon:", "system:serviceaccount:elsewhere:")
        .replace("namespace == 'beckon'", "namespace == 'elsewhere'")
        == there
    )


def test_the_demo_model_runs_only_where_no_model_is_set(chart: Chart) -> None:
    real = {"baseURL": "https://models.example/v1"}

    assert "beckon-demo-model" in deployments(chart.render())
    assert "beckon-demo-model" not in deployments(chart.render({"model": real}))
    assert "beckon-demo-model" in deployments(chart.render({"model": real, "demoModel": {"enabled": True}}))


def test_without_any_model_every_agent_names_its_own(chart: Chart) -> None:
    found = chart.render({"demoModel": {"enabled": False}})

    assert environment(found, "beckon-agent")["OPENAI_BASE_URL"] == ""
    assert "beckon-demo-model" not in deployments(found)


def test_a_model_is_called_with_the_key_of_the_secret_that_is_named(chart: Chart) -> None:
    model = {"baseURL": "https://models.example/v1", "name": "m", "dialect": "hermes"}

    found = environment(
        chart.render({"model": {**model, "existingSecret": "k", "key": "token"}}), "beckon-agent"
    )

    assert (found["OPENAI_BASE_URL"], found["BECKON_MODEL"], found["BECKON_DIALECT"]) == tuple(model.values())
    assert found["OPENAI_API_KEY"] == {"secretKeyRef": {"name": "k", "key": "token"}}


def test_a_key_that_no_one_named_may_be_missing(chart: Chart) -> None:
    found = environment(chart.render(), "beckon-agent")

    assert found["OPENAI_API_KEY"]["secretKeyRef"]["optional"] is True


def test_without_the_webhook_nothing_of_it_is_left(chart: Chart) -> None:
    found = chart.render({"webhook": {"enabled": False}})

    assert [key for key in found if "webhook" in key[2] or key[0].startswith("Mutating")] == []


def test_budgets_are_for_several_replicas_only(chart: Chart) -> None:
    budgets = {
        name for kind, _, name in chart.render({"agent": {"replicas": 1}}) if kind == "PodDisruptionBudget"
    }

    assert budgets == {"beckon-operator", "beckon-webhook", "beckon-shim"}


@pytest.mark.parametrize(
    ("switch", "kind"),
    [("networkPolicies", "NetworkPolicy"), ("podDisruptionBudgets", "PodDisruptionBudget")],
)
def test_a_switch_takes_all_of_its_kind_away(chart: Chart, switch: str, kind: str) -> None:
    assert [key for key in chart.render() if key[0] == kind]
    assert [key for key in chart.render({switch: {"enabled": False}}) if key[0] == kind] == []


def test_the_autoscaler_decides_how_many_shims_run(chart: Chart) -> None:
    found = chart.render(CASES["autoscaled"])
    spec = found["HorizontalPodAutoscaler", "beckon", "beckon-shim"]["spec"]

    assert "replicas" not in found["Deployment", "beckon", "beckon-shim"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 6)
    assert spec["metrics"][0]["pods"]["metric"]["name"] == "beckon_shim_waiting_calls"
    with pytest.raises(Refused, match="maxReplicas is less than"):
        chart.render({"shim": {"replicas": 20, "autoscaling": {"enabled": True}}})


def test_the_agent_has_its_rights_in_its_namespaces_alone(chart: Chart) -> None:
    found = chart.render(CASES["several-namespaces"])
    roles = {place for kind, place, name in found if (kind, name) == ("Role", "beckon-agent")}
    (secrets,) = [
        rule for rule in found["Role", "team-b", "beckon-agent"]["rules"] if rule["resources"] == ["secrets"]
    ]

    assert roles == {"team-a", "team-b"}
    assert secrets["resourceNames"] == ["openai", "local"]
    assert environment(found, "beckon-agent")["BECKON_NAMESPACES"] == "team-a,team-b"
    assert environment(found, "beckon-agent")["BECKON_AGENT_NAMESPACE"] == "team-a"


def test_an_agent_for_all_namespaces_has_a_cluster_role(chart: Chart) -> None:
    found = chart.render(CASES["everywhere"])

    assert ("ClusterRole", "", "beckon-agent") in found
    assert ("ClusterRoleBinding", "", "beckon-agent") in found
    assert not [key for key in found if key[0] == "Role" and key[2] == "beckon-agent"]
    assert environment(found, "beckon-agent")["BECKON_AGENT_NAMESPACE"] == "default"


def test_an_operator_of_some_namespaces_has_no_rights_in_others(chart: Chart) -> None:
    found = chart.render(CASES["several-namespaces"])

    assert ("ClusterRoleBinding", "", "beckon-operator") not in found
    assert {key[1] for key in found if key[2] == "beckon-operator-watches"} == {"team-a", "team-b"}
    assert environment(found, "beckon-operator")["BECKON_OPERATOR_WATCH_NAMESPACES"] == "team-a,team-b"


def test_a_broker_is_made_only_where_requested_and_the_operator_writes_its_triggers(chart: Chart) -> None:
    found = chart.render(CASES["several-namespaces"])
    others = chart.render({"operator": {"replyTriggers": False}})
    policy = "ValidatingAdmissionPolicy", "", "beckon-operator-triggers"

    assert {key[1:] for key in found if key[0] == "Broker"} == {("team-a", "default")}
    assert not [key for key in found if key[0] == "Trigger"]
    assert policy in found
    assert _verbs_for_triggers(found) == {"list", "watch", "create", "patch", "delete"}
    assert policy not in others
    assert _verbs_for_triggers(others) == {"list", "watch"}
    assert environment(others, "beckon-operator")["BECKON_OPERATOR_REPLY_TRIGGERS"] == "false"


def test_the_operator_writes_the_time_limit_of_kafka_brokers_without_one_and_of_no_others(
    chart: Chart,
) -> None:
    limited = {**KAFKA, "name": "limited", "deliveryTimeout": "PT45S"}
    found = chart.render({"brokers": [KAFKA, limited, {"namespace": "default", "name": "memory"}]})
    (rule,) = found["Role", "default", "beckon-operator-broker-default"]["rules"]

    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["brokers"], ["default"], ["patch"])
    assert [key for key in found if "beckon-operator-broker-" in key[2]] == [
        ("Role", "default", "beckon-operator-broker-default"),
        ("RoleBinding", "default", "beckon-operator-broker-default"),
    ]
    assert environment(found, "beckon-operator")["BECKON_OPERATOR_TIMEOUT_BROKERS"] == "default/default"
    assert found["Broker", "default", "limited"]["spec"]["delivery"]["timeout"] == "PT45S"
    policy = "ValidatingAdmissionPolicy", "", "beckon-operator-brokers"
    assert policy in found
    assert policy not in chart.render()


def _verbs_for_triggers(found: Mapping[tuple[str, str, str], dict[str, Any]]) -> set[str]:
    rules = found["ClusterRole", "", "beckon-operator"]["rules"]
    return {verb for rule in rules if "triggers" in rule["resources"] for verb in rule["verbs"]}


def test_a_broker_has_the_class_and_the_configuration_that_it_is_given(chart: Chart) -> None:
    broker = chart.render(CASES["kafka"])["Broker", "default", "default"]

    assert broker["metadata"]["annotations"] == {"eventing.knative.dev/broker.class": "Kafka"}
    assert broker["spec"]["config"] == KAFKA["config"]
    assert broker["spec"]["delivery"]["deadLetterSink"]["uri"].endswith("/dead-letters")


def test_keys_of_ones_own_are_none_of_the_operators_business(chart: Chart) -> None:
    found = chart.render(CASES["own-keys"])
    (volume,) = found["Deployment", "beckon", "beckon-shim"]["spec"]["template"]["spec"]["volumes"]
    rules = found["Role", "beckon", "beckon-operator"]["rules"]

    assert volume["secret"]["secretName"] == "my-keys"
    mounted = found["Deployment", "beckon", "beckon-agent"]["spec"]["template"]["spec"]["volumes"]
    assert {each["name"]: each["secret"]["secretName"] for each in mounted} == {
        "keys": "our-people",
        "shim-keys": "my-keys",
    }
    assert environment(found, "beckon-operator")["BECKON_OPERATOR_KEYS_SECRET"] == ""
    assert environment(found, "beckon-operator")["BECKON_OPERATOR_AGENT_KEYS_SECRET"] == ""
    assert [rule for rule in rules if "secrets" in rule["resources"]] == []


def test_the_agent_lets_no_one_in_without_a_key_unless_a_setting_says_so(chart: Chart) -> None:
    closed, opened = chart.render(), chart.render(CASES["open-to-everybody"])

    assert environment(closed, "beckon-agent")["BECKON_KEYS_FILE"] == "/etc/beckon/access/keys.jsonl"
    assert not {"BECKON_ANONYMOUS", "BECKON_OPEN_EVENTS"} & environment(closed, "beckon-agent").keys()
    assert environment(opened, "beckon-agent")["BECKON_ANONYMOUS"] == "true"
    assert "BECKON_KEYS_FILE" not in environment(opened, "beckon-agent")
    assert environment(opened, "beckon-operator")["BECKON_OPERATOR_AGENT_KEYS_SECRET"] == ""


def test_tokens_are_checked_against_the_issuer_that_is_named(chart: Chart) -> None:
    found = environment(chart.render(CASES["tokens"]), "beckon-agent")

    assert found["BECKON_OIDC_ISSUER"] == "https://login.example.com"
    assert found["BECKON_OIDC_AUDIENCE"] == "beckon"
    assert found["BECKON_OIDC_CA_FILE"] == "/etc/beckon/issuer/ca.crt"
    assert found["BECKON_DENY_BY_DEFAULT"] == "true"
    assert found["BECKON_STORE"] == {"secretKeyRef": {"name": "database", "key": "url"}}


def test_a_file_of_runs_is_for_one_replica_and_stays_when_the_release_goes(chart: Chart) -> None:
    found = chart.render(CASES["a-file-of-runs"])

    assert environment(found, "beckon-agent")["BECKON_STORE"] == "sqlite:////var/lib/beckon/runs.db"
    assert found["Deployment", "beckon", "beckon-agent"]["spec"]["strategy"] == {"type": "Recreate"}
    claim = found["PersistentVolumeClaim", "beckon", "beckon-agent-store"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert claim["spec"]["storageClassName"] == "fast"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"store": {"sqlite": {"size": "1Gi"}}}, "set agent.replicas to 1"),
        ({"access": {"oidc": {"issuer": "https://i"}}}, "access.oidc.audience is not"),
    ],
    ids=["two-replicas-of-a-file", "an-issuer-for-anybody"],
)
def test_values_that_cannot_work_are_refused(chart: Chart, given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        chart.render(given)


def test_images_come_from_the_registry_with_the_tag_and_the_secrets(chart: Chart) -> None:
    found = chart.render(CASES["from-a-registry"])

    assert {container(found, name)["image"] for name in deployments(found)} == {
        f"registry.example/team/beckon-{image}:1.2.3" for image in ("agent", "shim", "operator")
    }
    for each in deployments(found).values():
        assert each["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_a_component_is_placed_as_it_is_said(chart: Chart) -> None:
    found = chart.render(CASES["placed"])
    pods = {name: each["spec"]["template"]["spec"] for name, each in deployments(found).items()}

    assert pods["beckon-agent"]["nodeSelector"] == {"disk": "fast"}
    assert pods["beckon-agent"]["priorityClassName"] == "high"
    assert pods["beckon-shim"]["affinity"] == {"podAntiAffinity": {}}
    assert pods["beckon-demo-model"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert "nodeSelector" not in pods["beckon-shim"]


def test_the_metrics_of_the_agent_are_for_those_alone_whom_the_values_name(chart: Chart) -> None:
    def readers(**agent: Any) -> list[Any]:
        policy = chart.render({"agent": agent})["NetworkPolicy", "beckon", "beckon-agent"]
        return [rule.get("from") for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == 9090]

    mine = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    (usual,) = readers()
    assert usual[0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert readers(metricsFrom=mine) == [mine]
    assert readers(metricsFrom=[]) == []


def test_prometheus_is_sent_to_services_that_have_metrics(chart: Chart) -> None:
    found = chart.render(CASES["monitored"])
    monitor = found["ServiceMonitor", "beckon", "beckon"]
    (among,) = monitor["spec"]["selector"]["matchExpressions"]
    (endpoint,) = monitor["spec"]["endpoints"]
    scraped = {
        name
        for (kind, _, name), each in found.items()
        if kind == "Service"
        and each["metadata"]["labels"]["app.kubernetes.io/component"] in among["values"]
        and endpoint["port"] in [port["name"] for port in each["spec"]["ports"]]
    }

    of_agent = found["ServiceMonitor", "beckon", "beckon-agent"]["spec"]
    assert scraped == {"beckon-operator", "beckon-webhook", "beckon-shim-replies"}
    assert of_agent["selector"]["matchLabels"]["app.kubernetes.io/component"] == "agent"
    assert of_agent["endpoints"] == [{"port": "metrics", "path": "/metrics"}]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


def test_a_misspelt_value_is_refused_before_anything_is_made(chart: Chart) -> None:
    with pytest.raises(Refused, match="replica"):
        chart.render({"shim": {"replica": 3}})


def test_the_chart_can_be_packaged(chart: Chart, tmp_path: Path) -> None:
    chart.run("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.iterdir()

    listed = subprocess.run(["tar", "tzf", str(package)], capture_output=True, text=True, check=True).stdout

    assert "beckon/crds/200-crd-tool.yaml" in listed
    assert "beckon/files/call.py" in listed
    assert "beckon/templates/_helpers/_names.tpl" in listed


def test_the_operator_is_held_to_the_secrets_that_it_makes(chart: Chart) -> None:
    def rule(values: Mapping[str, Any]) -> str:
        policy = chart.render(values).get(("ValidatingAdmissionPolicy", "", "beckon-operator-secrets"))
        return str(policy["spec"]["validations"][0]["expression"]) if policy else ""

    both = {"shim": {"existingSecret": "mine"}, "access": {"existingSecret": "ours"}}

    assert "['beckon-agent-keys', 'beckon-first-key']" in rule({"shim": {"existingSecret": "mine"}})
    assert "['beckon-shim-keys']" in rule({"access": {"anonymous": True}})
    assert rule(both) == ""


def test_calls_need_a_credential_unless_they_are_opened(chart: Chart) -> None:
    assert "BECKON_SHIM_OPEN_CALLS" not in environment(chart.render(), "beckon-shim")
    opened = environment(chart.render({"shim": {"openCalls": True}}), "beckon-shim")
    assert opened["BECKON_SHIM_OPEN_CALLS"] == "true"
