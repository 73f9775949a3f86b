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


URL = "https://api.example.com/v1"
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


def test_everything_that_an_agent_may_say_is_kept_as_it_was_written(home: Kube) -> None:
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
        },
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
    told = home.run("explain", "agent.spec", "--recursive", "--api-version=beckon.dev/v1alpha1")

    for field in ("systemPrompt", "apiKeySecret", "matchExpressions", "callTimeoutSeconds"):
        assert field in told
