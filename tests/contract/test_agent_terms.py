"""The terms of use of an Agent: reading them, and the messages for mistakes in them."""

from typing import Any

import pytest

from beckon_contract.fields import Fields, ReportProblem
from beckon_contract.resources.agent_terms import (
    Access,
    Callers,
    EventRule,
    Quota,
    Rate,
    Terms,
    ToolPolicy,
    ToolRule,
    read_terms,
)
from beckon_contract.resources.tools import Requirement, ToolSelector


def read(spec: dict[str, Any]) -> tuple[Terms, list[str]]:
    report = ReportProblem()
    terms = read_terms(Fields(spec, "spec", report))
    return terms, [str(problem) for problem in report.problems]


def test_an_agent_that_says_nothing_has_no_terms() -> None:
    assert read({}) == (Terms(), [])


def test_everything_that_terms_may_say_is_read() -> None:
    terms, problems = read(
        {
            "access": {
                "users": ["key:ci", "oidc:alice", "*"],
                "groups": ["ops"],
                "toolRules": [
                    {"groups": ["finance"], "tools": {"selector": {"matchLabels": {"area": "money"}}}},
                    {
                        "users": ["*"],
                        "tools": {
                            "names": ["a"],
                            "selector": {
                                "matchExpressions": [
                                    {"key": "area", "operator": "NotIn", "values": ["money"]}
                                ]
                            },
                        },
                    },
                ],
                "eventRules": [{"groups": ["ops"], "types": ["order.*", "hr.hired"]}],
            },
            "toolPolicies": [
                {
                    "tools": {"names": ["sql"]},
                    "approval": "Writes",
                    "fromText": "Approve",
                    "readOnly": True,
                    "dispatch": "broker",
                    "timeoutSeconds": 10,
                    "concurrency": 2,
                    "rate": {"calls": 5, "seconds": 60},
                }
            ],
            "quotas": [{"of": "tokens", "per": "agent", "limit": 1000, "seconds": 60}],
        }
    )

    assert problems == []
    finance = ToolRule(Callers(groups=frozenset({"finance"})), ToolSelector(labels={"area": "money"}))
    others = ToolSelector(frozenset({"a"}), requirements=(Requirement("area", "NotIn", ("money",)),))
    assert terms.access == Access(
        Callers(frozenset({"key:ci", "oidc:alice", "*"}), frozenset({"ops"})),
        (finance, ToolRule(Callers(frozenset({"*"})), others)),
        (EventRule(Callers(groups=frozenset({"ops"})), ("order.*", "hr.hired")),),
    )
    assert terms.policies == (
        ToolPolicy(ToolSelector(frozenset({"sql"})), "Writes", "Approve", True, True, 10, 2, Rate(5, 60)),
    )
    assert terms.quotas == (Quota("tokens", "agent", 1000, 60),)


def test_a_rule_for_events_names_types_and_their_beginnings() -> None:
    rule = EventRule(Callers(), ("order.*", "hr.hired"))

    included = [
        kind for kind in ("order.placed", "order.", "order", "hr.hired", "hr.hired.x") if rule.includes(kind)
    ]
    assert included == ["order.placed", "order.", "hr.hired"]


def test_an_empty_list_names_no_one_and_none_at_all_says_nothing_of_callers() -> None:
    no_one, _ = read({"access": {"users": []}})
    unsaid, _ = read({"access": {"toolRules": []}})

    assert no_one.access == Access(Callers())
    assert unsaid.access == Access(None, ())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"access": {}}, "spec.access: needs users, groups, toolRules or eventRules"),
        ({"access": {"user": ["key:a"], "groups": []}}, "spec.access.user: unknown field"),
        ({"access": {"users": ["alice"]}}, "spec.access.users: 'alice' is no user; write key:NAME"),
        ({"access": {"users": ["key:"]}}, "spec.access.users: 'key:' is no user"),
        ({"access": {"users": "key:a"}}, "spec.access.users: must be a list of strings"),
        ({"access": {"groups": [""]}}, "spec.access.groups: a group is empty"),
        (
            {"access": {"toolRules": [{"tools": {}}]}},
            "spec.access.toolRules[0]: needs users or groups; write users",
        ),
        (
            {"access": {"toolRules": [{"users": ["*"]}]}},
            "spec.access.toolRules[0].tools: missing; write names or a selector",
        ),
        (
            {"access": {"eventRules": [{"types": ["*"]}]}},
            "spec.access.eventRules[0]: needs users or groups; write users",
        ),
        (
            {"access": {"eventRules": [{"users": ["*"]}]}},
            "spec.access.eventRules[0].types: missing; write CloudEvents types",
        ),
        (
            {"access": {"eventRules": [{"users": ["*"], "types": ["a.*.b"]}]}},
            "spec.access.eventRules[0].types: 'a.*.b' is no type",
        ),
        (
            {"access": {"eventRules": [{"users": ["*"], "types": [], "tools": {}}]}},
            "spec.access.eventRules[0].tools: unknown field",
        ),
        (
            {"access": {"toolRules": [{"users": ["*"], "tools": {"labels": {}}}]}},
            "spec.access.toolRules[0].tools.labels: unknown field",
        ),
        ({"toolPolicies": [{"approval": "Sometimes"}]}, "spec.toolPolicies[0].approval: must be Always or"),
        ({"toolPolicies": [{"readOnly": "true"}]}, "spec.toolPolicies[0].readOnly: must be true or false"),
        ({"toolPolicies": [{"concurrency": 0}]}, "spec.toolPolicies[0].concurrency: must be at least 1"),
        ({"toolPolicies": [{"rate": {"calls": 1}}]}, "spec.toolPolicies[0].rate.seconds: missing"),
        ({"toolPolicies": [{"dispatch": "direct"}]}, "spec.toolPolicies[0].dispatch: must be broker;"),
        ({"toolPolicies": [{"fromText": "Ask"}]}, "spec.toolPolicies[0].fromText: must be Allow, Approve or"),
        (
            {"toolPolicies": [{}]},
            "spec.toolPolicies[0]: needs approval, fromText, readOnly, dispatch, timeoutSeconds",
        ),
        (
            {"quotas": [{"of": "money", "per": "user", "limit": 1, "seconds": 1}]},
            "spec.quotas[0].of: must be requests, tokens or toolCalls",
        ),
        (
            {"quotas": [{"of": "tokens", "per": "team", "limit": 1, "seconds": 1}]},
            "spec.quotas[0].per: must be user or agent",
        ),
        ({"quotas": [{"of": "tokens", "per": "user", "seconds": 1}]}, "spec.quotas[0].limit: missing"),
    ],
)
def test_a_mistake_is_reported_with_its_path_and_the_cure(spec: dict[str, Any], said: str) -> None:
    _, problems = read(spec)

    (shown,) = problems
    assert shown.startswith(said)


@pytest.mark.parametrize(
    ("callers", "user", "groups", "named"),
    [
        (Callers(), "key:a", {"g"}, False),
        (Callers(frozenset({"key:a"})), "key:a", set(), True),
        (Callers(frozenset({"key:a"})), "oidc:a", set(), False),
        (Callers(groups=frozenset({"g"})), "key:a", {"f", "g"}, True),
        (Callers(groups=frozenset({"g"})), "key:a", {"f"}, False),
        (Callers(groups=frozenset({"key:a"})), "key:a", set(), False),
        (Callers(groups=frozenset({"*"})), "key:a", {"f"}, False),
        (Callers(frozenset({"*"})), "", set(), True),
        (Callers(frozenset({"key:a"})), "", set(), False),
    ],
)
def test_callers_are_named_by_id_by_group_or_all_at_once(
    callers: Callers, user: str, groups: set[str], named: bool
) -> None:
    assert callers.include(user, groups) is named
