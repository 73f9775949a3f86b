"""Agent resources: reading them with every mistake at once, and which tools a selector chooses."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.agent_resource import (
    KIND,
    AgentLimits,
    AgentResource,
    InvalidAgent,
    ModelReference,
    SecretKey,
    is_agent,
    read_agent,
)
from beckon_contract.resources.tools import API_VERSION, Requirement, Tool, ToolSelector

URL = "https://api.example.com/v1"


def read(spec: object, **more: Any) -> AgentResource:
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "helper"}, "spec": spec, **more}
    return read_agent(from_object(document))


def mistakes(spec: object, **more: Any) -> list[str]:
    with pytest.raises(InvalidAgent) as caught:
        read(spec, **more)
    return [str(problem) for problem in caught.value.problems]


def test_an_agent_that_says_nothing_is_as_the_service_has_it() -> None:
    found = read({}, metadata={"name": "helper", "namespace": "team-a", "uid": "u", "generation": 3})

    assert found == AgentResource(
        "team-a", "helper", "u", 3, None, ModelReference(), ToolSelector(), AgentLimits()
    )


def test_everything_that_an_agent_may_say_is_read() -> None:
    found = read(
        {
            "systemPrompt": "Be brief.",
            "model": {
                "baseURL": URL,
                "name": "m",
                "dialect": "hermes",
                "apiKeySecret": {"name": "s", "key": "k"},
            },
            "tools": {
                "names": ["a", "b.c"],
                "pinned": ["b.c"],
                "selector": {
                    "matchLabels": {"team": "x"},
                    "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test", "old"]}],
                },
            },
            "limits": {
                "steps": 1,
                "seconds": 2,
                "tokens": 3,
                "parallelCalls": 4,
                "callTimeoutSeconds": 5,
                "resultCharacters": 600,
                "tools": 7,
                "callsPerTurn": 8,
                "repeatedCalls": 9,
            },
        }
    )

    assert found.system_prompt == "Be brief."
    assert found.model == ModelReference(URL, "m", "hermes", SecretKey("s", "k"))
    assert found.tools == ToolSelector(
        frozenset({"a", "b.c"}), {"team": "x"}, (Requirement("stage", "NotIn", ("test", "old")),)
    )
    assert found.limits == AgentLimits(1, 2, 3, 4, 5, 600, 7, 8, 9)
    assert found.pinned == ("b.c",)


def test_an_agent_says_which_calls_are_recovered_from_a_text() -> None:
    assert read({"textCalls": "never"}).text_calls == "never"
    assert read({}).text_calls is None


def test_an_agent_may_have_an_output_schema() -> None:
    assert read({"outputSchema": {"type": "object"}}).output_schema == {"type": "object"}
    assert read({}).output_schema is None


def test_pinning_nothing_is_not_the_same_as_saying_nothing_of_it() -> None:
    assert read({"tools": {"pinned": []}}).pinned == ()
    assert read({"tools": {"names": ["a"]}}).pinned is None


def test_a_secret_without_a_key_means_the_usual_one() -> None:
    assert read({"model": {"baseURL": URL, "apiKeySecret": {"name": "s"}}}).model.api_key == SecretKey(
        "s", "api-key"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"sytemPrompt": "x"}, "spec.sytemPrompt: unknown field"),
        ({"systemPrompt": 5}, "spec.systemPrompt: must be a string"),
        ({"model": []}, "spec.model: must be a mapping"),
        ({"textCalls": "sometimes"}, "spec.textCalls: must be one of never, own, any"),
        ({"outputSchema": {"type": "thing"}}, "spec.outputSchema: is no JSON Schema"),
        ({"outputSchema": "object"}, "spec.outputSchema: must be a mapping"),
        ({"model": {"url": URL}}, "spec.model.url: unknown field"),
        ({"model": {"apiKeySecret": {"name": "s"}}}, "spec.model.apiKeySecret: needs baseURL"),
        (
            {"model": {"baseURL": URL, "apiKeySecret": {}}},
            "spec.model.apiKeySecret.name: write the name of a Secret",
        ),
        (
            {"model": {"baseURL": URL, "apiKeySecret": {"name": "../../kube-system/secrets/x"}}},
            "spec.model.apiKeySecret.name: write the name of a Secret",
        ),
        (
            {"model": {"baseURL": URL, "apiKeySecret": {"name": "s", "key": "a/b"}}},
            "spec.model.apiKeySecret.key: write a key of that Secret",
        ),
        ({"tools": {"names": "all"}}, "spec.tools.names: must be a list of strings"),
        ({"tools": {"pinned": "all"}}, "spec.tools.pinned: must be a list of strings"),
        ({"limits": {"tools": 0}}, "spec.limits.tools: must be at least 1"),
        (
            {"toolPolicies": [{"tools": {"pinned": []}, "readOnly": True}]},
            "spec.toolPolicies[0].tools.pinned: unknown field",
        ),
        ({"tools": {"names": [1]}}, "spec.tools.names: must be a list of strings"),
        ({"tools": {"labels": {}}}, "spec.tools.labels: unknown field"),
        (
            {"tools": {"selector": {"matchLabels": {"a": True}}}},
            "spec.tools.selector.matchLabels[a]: must be a string",
        ),
        ({"limits": {"steps": 0}}, "spec.limits.steps: must be at least 1"),
        ({"limits": {"seconds": 1.5}}, "spec.limits.seconds: must be an integer"),
        ({"limits": {"stps": 1}}, "spec.limits.stps: unknown field"),
    ],
    ids=[
        "unknown", "prompt", "model", "text-calls", "no-schema", "text-schema", "in-model", "key-alone",
        "no-secret", "path", "key-path",
        "names", "pinned", "no-tools", "pinned-elsewhere", "name", "in-tools",
        "label", "steps", "seconds", "in-limits",
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_path_and_the_cure(spec: dict[str, Any], said: str) -> None:
    (shown,) = mistakes(spec)

    assert shown.startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"operator": "Exists"}, "key: missing; write the name of a label"),
        (
            {"key": "a", "operator": "Gt", "values": ["1"]},
            "operator: must be In, NotIn, Exists or DoesNotExist",
        ),
        ({"key": "a"}, "operator: must be In, NotIn, Exists or DoesNotExist"),
        ({"key": "a", "operator": "In"}, "values: operator In takes at least one value"),
        ({"key": "a", "operator": "NotIn", "values": []}, "values: operator NotIn takes at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "values: operator Exists takes no values"),
        ({"key": "a", "operator": "In", "values": "x"}, "values: must be a list of strings"),
        ({"key": "a", "operator": "In", "values": ["x"], "value": "x"}, "value: unknown field"),
    ],
    ids=["no-key", "operator", "no-operator", "in", "not-in", "exists", "text", "unknown"],
)
def test_a_requirement_with_a_mistake_says_which(line: dict[str, Any], said: str) -> None:
    shown = mistakes({"tools": {"selector": {"matchExpressions": [line]}}})

    assert f"spec.tools.selector.matchExpressions[0].{said}" in "; ".join(shown)


def test_all_mistakes_are_reported_at_once() -> None:
    shown = mistakes({"x": 1, "model": {"name": 1}, "limits": {"steps": 0, "tokens": "many"}})

    assert [one.partition(":")[0] for one in shown] == [
        "spec.x",
        "spec.model.name",
        "spec.limits.steps",
        "spec.limits.tokens",
    ]


def test_another_kind_or_version_is_no_agent() -> None:
    assert mistakes({}, kind="Tool")[0].startswith("apiVersion: must be beckon.dev/v1alpha1 with kind Agent")
    assert mistakes({}, apiVersion="beckon.dev/v2")
    assert is_agent(from_object({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}}))
    assert not is_agent(from_object({"apiVersion": "x/v1", "kind": KIND, "metadata": {"name": "a"}}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "names",
                    "selector",
                    "matchExpressions",
                    "key",
                    "users",
                    "toolRules",
                    "rate",
                    "limit",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["systemPrompt", "model", "tools", "limits", "access", "toolPolicies", "quotas", "other"]
        ),
        json_values,
    )
)
def test_nothing_in_a_spec_makes_reading_it_fail_otherwise(spec: dict[str, Any]) -> None:
    with suppress(InvalidAgent):
        assert isinstance(read(spec), AgentResource)


def tool(name: str = "get_weather", event_type: str = "get.weather", **labels: str) -> Tool:
    return Tool(name, "default", event_type, "t", None, "", {"type": "object"}, "p", labels=labels)


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (ToolSelector(), True),
        (ToolSelector(names=frozenset()), False),
        (ToolSelector(names=frozenset({"get_weather"})), True),
        (ToolSelector(names=frozenset({"get.weather"})), True),
        (ToolSelector(names=frozenset({"weather"})), False),
        (ToolSelector(labels={"team": "sky"}), True),
        (ToolSelector(labels={"team": "sea"}), False),
        (ToolSelector(labels={"team": "sky", "stage": "live"}), False),
        (ToolSelector(names=frozenset({"other"}), labels={"team": "sky"}), False),
        (ToolSelector(labels={"team": "sky"}, requirements=(Requirement("stage", "Exists"),)), False),
        (
            ToolSelector(requirements=(Requirement("stage", "DoesNotExist"), Requirement("team", "Exists"))),
            True,
        ),
    ],
    ids=["any", "none", "name", "event-type", "other", "label", "value", "both", "and", "exists", "all-hold"],
)
def test_a_selector_chooses_what_meets_every_part_that_is_set(selector: ToolSelector, chosen: bool) -> None:
    assert selector.selects(tool(team="sky")) is chosen


keys = st.sampled_from(["a", "b"])
values = st.sampled_from(["x", "y", "z"])
label_sets = st.dictionaries(keys, values)
value_lists = st.lists(values, min_size=1, max_size=3).map(tuple)


@given(label_sets, keys, value_lists)
def test_operators_mean_what_kubernetes_means_by_them(
    labels: dict[str, str], key: str, wanted: tuple[str, ...]
) -> None:
    """Kubernetes' LabelSelectorRequirement: NotIn holds where the label is absent as well."""
    inside = key in labels and labels[key] in wanted

    assert Requirement(key, "In", wanted).holds(labels) is inside
    assert Requirement(key, "NotIn", wanted).holds(labels) is not inside
    assert Requirement(key, "Exists").holds(labels) is (key in labels)
    assert Requirement(key, "DoesNotExist").holds(labels) is (key not in labels)
