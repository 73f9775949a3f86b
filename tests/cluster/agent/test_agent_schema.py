"""What the API server takes as an Agent, and what it says of the rest."""

from typing import Any

import pytest
import yaml

from tests.cluster.kube import Kube


def agent(name: str = "helper", **spec: Any) -> str:
    metadata = {"name": name}
    return yaml.safe_dump(
        {"apiVersion": "beckon.dev/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": spec}
    )


def model(**fields: Any) -> dict[str, Any]:
    return {"model": fields}


def expression(**fields: Any) -> dict[str, Any]:
    return {"tools": {"selector": {"matchExpressions": [{"key": "team", **fields}]}}}


def access(**fields: Any) -> dict[str, Any]:
    return {"access": fields}


def rule(**fields: Any) -> dict[str, Any]:
    return access(toolRules=[fields])


URL = "https://api.example.com/v1"
RATE = {"calls": 1, "seconds": 60}
QUOTA = {"of": "tokens", "per": "user", "limit": 5, "seconds": 60}
WRONG = {
    "key-without-server": (model(apiKeySecret={"name": "k"}), "apiKeySecret needs baseURL"),
    "no-scheme": (model(baseURL="api.example.com/v1"), "must begin with https:// or http:// and a host"),
    "other-scheme": (model(baseURL="file:///etc/passwd"), "must begin with https:// or http:// and a host"),
    "no-host": (model(baseURL="https:///v1"), "must begin with https:// or http:// and a host"),
    "credentials": (
        model(baseURL="https://me:secret@example.com"),
        "must hold no credentials, query or fragment",
    ),
    "query": (
        model(baseURL="https://example.com/v1?key=secret"),
        "must hold no credentials, query or fragment",
    ),
    "fragment": (model(baseURL="https://example.com/v1#x"), "must hold no credentials, query or fragment"),
    "in-without-values": (expression(operator="In"), "In and NotIn need values"),
    "in-with-no-values": (expression(operator="NotIn", values=[]), "In and NotIn need values"),
    "exists-with-values": (expression(operator="Exists", values=["x"]), "Exists and DoesNotExist take none"),
    "operator": (
        expression(operator="Gt", values=["1"]),
        'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
    ),
    "dialect": (model(dialect="klingon"), "spec.model.dialect: Unsupported value"),
    "secret-path": (model(baseURL=URL, apiKeySecret={"name": "../../x"}), "spec.model.apiKeySecret.name"),
    "secret-key": (
        model(baseURL=URL, apiKeySecret={"name": "k", "key": "a/b"}),
        "spec.model.apiKeySecret.key",
    ),
    "secret-name": (
        model(baseURL=URL, apiKeySecret={"key": "a"}),
        "spec.model.apiKeySecret.name: Required value",
    ),
    "no-steps": ({"limits": {"steps": 0}}, "spec.limits.steps"),
    "long-run": ({"limits": {"seconds": 100_000}}, "spec.limits.seconds"),
    "twice": ({"tools": {"names": ["a", "a"]}}, "Duplicate value"),
    "pinned-twice": ({"tools": {"pinned": ["a", "a"]}}, "Duplicate value"),
    "no-room": ({"limits": {"tools": 1}}, "spec.limits.tools"),
    "no-access": (access(), "access needs users, groups, toolRules or eventRules"),
    "no-prefix": (access(users=["key:a", "alice"]), "write key:NAME of an API key, oidc:SUBJECT"),
    "no-name": (access(users=["key:"]), "write key:NAME of an API key, oidc:SUBJECT"),
    "no-group": (access(groups=[""]), "spec.access.groups[0]"),
    "user-twice": (access(users=["*", "*"]), "Duplicate value"),
    "rule-without-users": (rule(tools={}), "a rule needs users or groups"),
    "rule-without-tools": (rule(users=["*"]), "spec.access.toolRules[0].tools: Required value"),
    "event-rule-without-callers": (access(eventRules=[{"types": ["*"]}]), "a rule needs users or groups"),
    "event-rule-without-types": (
        access(eventRules=[{"users": ["*"]}]),
        "spec.access.eventRules[0].types: Required value",
    ),
    "event-rule-with-a-star-inside": (
        access(eventRules=[{"users": ["*"], "types": ["a.*.b"]}]),
        "spec.access.eventRules[0].types[0]",
    ),
    "rule-without-prefix": (rule(users=["a"], tools={}), "write key:NAME of an API key, oidc:SUBJECT"),
    "empty-policy": (
        {"toolPolicies": [{"tools": {"names": ["a"]}}]},
        "a policy needs approval, fromText, readOnly",
    ),
    "approval": ({"toolPolicies": [{"approval": "Never"}]}, 'supported values: "Always", "Writes"'),
    "no-places": ({"toolPolicies": [{"concurrency": 0}]}, "spec.toolPolicies[0].concurrency"),
    "half-a-rate": ({"toolPolicies": [{"rate": {"calls": 1}}]}, "rate.seconds: Required value"),
    "measure": ({"quotas": [QUOTA | {"of": "money"}]}, 'supported values: "requests", "tokens", "toolCalls"'),
    "holder": ({"quotas": [QUOTA | {"per": "team"}]}, 'supported values: "user", "agent"'),
    "no-limit": ({"quotas": [QUOTA | {"limit": 0}]}, "spec.quotas[0].limit"),
    "unknown": ({"sytemPrompt": "typo"}, 'unknown field "spec.sytemPrompt"'),
}


@pytest.mark.parametrize(("spec", "said"), WRONG.values(), ids=WRONG.keys())
def test_an_agent_with_a_mistake_is_refused_with_the_rule(
    home: Kube, spec: dict[str, Any], said: str
) -> None:
    done = home.attempt("apply", "-f", "-", stdin=agent(**spec))

    assert done.returncode != 0, done.stdout
    assert said in done.stderr
    assert home.find("agent", "helper") is None


@pytest.mark.parametrize("name", ["a.b", "x" * 64], ids=["dot", "long"])
def test_a_name_that_no_source_can_carry_is_refused(home: Kube, name: str) -> None:
    done = home.attempt("apply", "-f", "-", stdin=agent(name))

    assert done.returncode != 0
    assert "an agent's name is part of its events' source" in done.stderr


def test_every_field_of_an_agent_is_stored_as_it_was_written(home: Kube) -> None:
    spec: dict[str, Any] = {
        "systemPrompt": "Be brief.",
        "model": {
            "baseURL": URL,
            "name": "m",
            "dialect": "auto",
            "apiKeySecret": {"name": "k", "key": "token"},
        },
        "tools": {
            "names": ["a", "b.c"],
            "pinned": ["b.c"],
            "selector": {
                "matchLabels": {"team": "x"},
                "matchExpressions": [
                    {"key": "stage", "operator": "NotIn", "values": ["test"]},
                    {"key": "public", "operator": "Exists"},
                ],
            },
        },
        "limits": {
            "steps": 4,
            "seconds": 60,
            "tokens": 5000,
            "parallelCalls": 2,
            "callTimeoutSeconds": 5,
            "resultCharacters": 1000,
            "tools": 32,
            "callsPerTurn": 16,
            "repeatedCalls": 3,
        },
        "access": {
            "users": ["key:ci", "oidc:alice", "*"],
            "groups": ["ops"],
            "toolRules": [{"users": ["*"], "tools": {}}, {"groups": ["ops"], "tools": {"names": ["a"]}}],
            "eventRules": [{"users": ["*"], "types": ["order.*"]}],
        },
        "toolPolicies": [
            {"approval": "Writes", "readOnly": True, "timeoutSeconds": 5, "concurrency": 2, "rate": RATE},
            {"tools": {"selector": {"matchLabels": {"area": "money"}}}, "approval": "Always"},
        ],
        "quotas": [QUOTA, {"of": "toolCalls", "per": "agent", "limit": 9, "seconds": 3600}],
    }
    home.apply(agent(**spec))
    home.apply(agent("plain"))
    home.apply(agent("defaulted", **model(baseURL=URL, apiKeySecret={"name": "k"})))

    assert home.get("agent", "helper")["spec"] == spec
    assert home.get("agent", "plain")["spec"] == {}
    assert home.get("agent", "defaulted")["spec"]["model"]["apiKeySecret"] == {"name": "k", "key": "api-key"}


def test_users_do_not_write_the_status_with_the_spec(home: Kube) -> None:
    document = yaml.safe_load(agent())
    home.apply(yaml.safe_dump({**document, "status": {"tools": 7}}))

    assert "status" not in home.get("agent", "helper")


def test_kubectl_explains_every_field(home: Kube) -> None:
    shown = home.run("explain", "agent.spec", "--recursive", "--api-version=beckon.dev/v1alpha1")

    for field in ("systemPrompt", "apiKeySecret", "matchExpressions", "callTimeoutSeconds"):
        assert field in shown
