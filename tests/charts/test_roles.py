"""The roles of the plain manifests: no right too many, and none to anyone unknown."""

import re
from collections.abc import Iterator
from typing import Any

from beckon_contract.knative.reply_triggers import MANAGED_BY, MANAGER
from beckon_operator.conditions.namespace_view import JudgingRules
from beckon_operator.settings import Settings
from tests.charts.test_manifests import named, of_kind

READING = {"get", "list", "watch"}


def test_every_grant_is_of_a_role_that_exists_to_an_account_that_exists() -> None:
    roles = {
        (found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"])
        for found in all_roles()
    }
    accounts = {found["metadata"]["name"] for found in of_kind("ServiceAccount")}
    granted = set()
    for binding in of_kind("RoleBinding", "ClusterRoleBinding"):
        kind, namespace = binding["roleRef"]["kind"], binding["metadata"].get("namespace")
        granted.add((kind, namespace if kind == "Role" else None, binding["roleRef"]["name"]))
        assert [subject["namespace"] for subject in binding["subjects"]] == ["beckon"]
        assert {subject["name"] for subject in binding["subjects"]} <= accounts

    people = {("ClusterRole", None, name) for name in ("beckon-viewer", "beckon-editor")}
    assert granted | people == roles


def all_roles() -> list[dict[str, Any]]:
    return list(of_kind("Role", "ClusterRole"))


def rules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each role with each of its rules."""
    for role in all_roles():
        for rule in role.get("rules", ()):
            yield f"{role['kind']} {role['metadata']['name']}", rule


def test_no_role_has_wildcards() -> None:
    assert [name for name, rule in rules() if "*" in str(rule)] == []


def test_the_operator_alone_writes_what_is_knatives() -> None:
    writing = [
        (name, tuple(rule["resources"]))
        for name, rule in rules()
        if any(group.endswith("knative.dev") for group in rule["apiGroups"]) and set(rule["verbs"]) - READING
    ]

    assert writing == [
        ("ClusterRole beckon-operator", ("brokers/status", "triggers/status")),
        ("ClusterRole beckon-operator", ("triggers",)),
    ]


def test_the_policy_of_triggers_names_the_shim_and_the_label_that_the_operator_writes() -> None:
    policy = str(named("ValidatingAdmissionPolicy", "beckon-operator-triggers")["spec"])
    rules = JudgingRules(Settings.model_construct().replies_url)

    assert f"in ['{rules.replies}', '{rules.progress}']" in policy
    assert f"== '{rules.dead_letters}'" in policy
    assert policy.count(f"== '{MANAGER}'") == 2
    assert MANAGED_BY in policy


def test_roles_are_aggregated_for_references_alone() -> None:
    selected = {
        role["metadata"]["name"]: [
            tuple(one["matchLabels"]) for one in role["aggregationRule"]["clusterRoleSelectors"]
        ]
        for role in all_roles()
        if "aggregationRule" in role
    }

    assert selected == {
        "beckon-operator-references": [("duck.knative.dev/addressable",), ("duck.knative.dev/source",)]
    }


def test_secrets_are_read_by_name_only_and_listed_by_no_one() -> None:
    for name, rule in rules():
        if "secrets" in rule["resources"] and rule["verbs"] != ["create"]:
            assert rule.get("resourceNames"), name
            assert not {"list", "watch", "delete"} & set(rule["verbs"]), name


def test_what_a_component_may_do_in_the_whole_cluster_is_this_and_no_more() -> None:
    found = {
        (name.partition("beckon-")[2], "/".join(sorted(rule["resources"])), ",".join(rule["verbs"]))
        for name, rule in rules()
        if name.startswith("ClusterRole") and not name.endswith(("viewer", "editor"))
    }

    assert found == CLUSTER_WIDE


CLUSTER_WIDE = {
    ("operator", "brokers/eventpolicies/eventtypes/triggers", "list,watch"),
    ("operator", "brokers/eventtypes", "get"),
    ("operator", "brokers/status/triggers/status", "patch"),
    ("operator", "triggers", "create,patch,delete"),
    ("operator", "configmaps", "get"),
    ("broker", "brokers/triggers", "list,watch"),
    ("operator", "services", "list,watch"),
    ("operator", "tools", "get,list,watch,create,update,delete"),
    ("operator", "events", "create"),
    ("webhook", "mutatingwebhookconfigurations", "get,patch"),
    ("shim", "brokers", "list,watch"),
}


def test_who_may_create_secrets_is_held_to_names_by_a_policy() -> None:
    creating = {
        name.partition(" ")[2]
        for name, rule in rules()
        if "secrets" in rule["resources"] and "create" in rule["verbs"]
    }
    held = {
        found["metadata"]["name"].removesuffix("-secrets") for found in of_kind("ValidatingAdmissionPolicy")
    }

    assert creating
    assert creating <= held


def test_the_policy_of_the_operator_names_the_secrets_that_its_role_names() -> None:
    (names_of_role,) = [
        rule["resourceNames"]
        for name, rule in rules()
        if name == "Role beckon-operator" and "secrets" in rule["resources"] and "get" in rule["verbs"]
    ]
    expression = named("ValidatingAdmissionPolicy", "beckon-operator-secrets")["spec"]["validations"][0][
        "expression"
    ]

    assert re.findall(r"'(beckon-[a-z-]+)'", expression) == names_of_role
