"""What principals may do, and what policies make of tools: decisions alone, with no service around them."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pytest

from beckon_agent.agents.configured import ConfiguredAgent, agent_of
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.auth.authorization import (
    CallLimits,
    PermittedAgents,
    allowed_tools,
    limits_of,
    mask_of,
    may_use,
)
from beckon_agent.core.context import ANONYMOUS, EVENTS, UNAUTHENTICATED, NoPrincipal, Principal, acting_as
from beckon_agent.core.model_types import Message
from beckon_agent.core.run_events import StreamItem
from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.agent_resource import KIND, read_agent
from beckon_contract.resources.agent_terms import NO_TERMS, Access, Callers, Rate, Terms
from beckon_contract.resources.tools import API_VERSION, Tool
from tests.agent.auth.closed_service import Several, terms
from tests.agent.running_agent import Still

CI = Principal("key:ci", frozenset({"ops"}), "key")
ALICE = Principal("oidc:alice", frozenset({"finance"}), "oidc")
KEY_OF_A_NAMESAKE = Principal("key:alice", frozenset(), "key")
EVERYONE = (CI, ALICE, KEY_OF_A_NAMESAKE, ANONYMOUS, EVENTS, UNAUTHENTICATED)


@pytest.mark.parametrize(
    ("access", "let_in"),
    [
        (Access(), {CI, ALICE, KEY_OF_A_NAMESAKE, ANONYMOUS, EVENTS}),
        (Access(Callers()), set()),
        (Access(Callers(frozenset({"*"}))), {CI, ALICE, KEY_OF_A_NAMESAKE, ANONYMOUS, EVENTS}),
        (Access(Callers(frozenset({"oidc:alice"}))), {ALICE}),
        (Access(Callers(frozenset({"alice"}))), set()),
        (Access(Callers(groups=frozenset({"ops", "finance"}))), {CI, ALICE}),
        (
            Access(Callers(frozenset({"key:alice"}), frozenset({"beckon:events"}))),
            {KEY_OF_A_NAMESAKE, EVENTS},
        ),
    ],
)
def test_an_agent_is_for_those_whom_its_access_names(access: Access, let_in: set[Principal]) -> None:
    assert {who for who in EVERYONE if may_use(access, who)} == let_in


def test_denied_by_default_an_agent_without_rules_is_for_no_one() -> None:
    assert not any(may_use(Access(), who, deny_by_default=True) for who in EVERYONE)
    assert may_use(Access(Callers(frozenset({"*"}))), CI, deny_by_default=True)


def tool(name: str, *, read_only: bool = False, timeout: float | None = None, **labels: str) -> Tool:
    event_type = name.replace("_", ".")
    return Tool(
        name, "default", event_type, event_type, None, "", {"type": "object"}, "p",
        read_only=read_only, timeout=timeout, labels=labels,
    )  # fmt: skip


READ = tool("read_order", read_only=True, area="orders")
WRITE = tool("write_order", area="orders", timeout=20)
PAY = tool("pay", area="money")
TOOLS = {one.name: one for one in (PAY, READ, WRITE)}


def agent(rules: Terms) -> Agent:
    return Agent("a", "default", "", Limits(call_timeout=30), rules)


def offered(rules: Terms, who: Principal) -> list[str]:
    return list(allowed_tools(agent(rules), mask_of(rules.access, who), TOOLS))


def test_a_policy_for_the_broker_withholds_what_goes_past_it() -> None:
    past = replace(tool("past"), dispatch="direct", address="http://past.example")
    rules = terms(toolPolicies=[{"dispatch": "broker"}])

    assert list(allowed_tools(agent(rules), None, {**TOOLS, past.name: past})) == list(TOOLS)


def test_without_rules_every_tool_is_offered_as_it_is() -> None:
    assert allowed_tools(agent(terms()), None, TOOLS) == TOOLS


def test_a_caller_has_the_tools_of_the_rules_that_name_the_caller() -> None:
    money = {"selector": {"matchLabels": {"area": "money"}}}
    no_money = {"selector": {"matchExpressions": [{"key": "area", "operator": "NotIn", "values": ["money"]}]}}
    rules = terms(
        access={
            "toolRules": [
                {"groups": ["finance"], "tools": money},
                {"users": ["*"], "tools": no_money},
                {"users": ["key:alice"], "tools": {}},
            ]
        }
    )

    assert offered(rules, ALICE) == ["pay", "read_order", "write_order"]
    assert offered(rules, CI) == ["read_order", "write_order"]
    assert offered(rules, ANONYMOUS) == ["read_order", "write_order"]
    assert offered(rules, KEY_OF_A_NAMESAKE) == ["pay", "read_order", "write_order"]
    assert offered(rules, UNAUTHENTICATED) == []
    assert offered(terms(access={"toolRules": []}), CI) == []


def test_only_what_reads_is_offered_where_a_policy_says_so() -> None:
    assert offered(terms(toolPolicies=[{"readOnly": True}]), CI) == ["read_order"]
    orders = {"selector": {"matchLabels": {"area": "orders"}}}
    assert offered(terms(toolPolicies=[{"readOnly": True, "tools": orders}]), CI) == ["pay", "read_order"]


@pytest.mark.parametrize(
    ("policies", "guarded"),
    [
        ([{"approval": "Always"}], ["pay", "read_order", "write_order"]),
        ([{"approval": "Writes"}], ["pay", "write_order"]),
        ([{"approval": "Writes"}, {"approval": "Always", "tools": {"names": ["read.order"]}}],
         ["pay", "read_order", "write_order"]),
        ([{"approval": "Always", "tools": {"names": ["pay"]}}], ["pay"]),
        ([{"timeoutSeconds": 5}], []),
    ],
)  # fmt: skip
def test_policies_ask_for_approval_where_event_types_do_not(
    policies: list[object], guarded: Sequence[str]
) -> None:
    found = allowed_tools(agent(terms(toolPolicies=policies)), None, TOOLS)

    assert [name for name, one in found.items() if one.requires_approval] == guarded


def test_a_policy_never_takes_back_what_an_event_type_asks_for() -> None:
    careful = {"a": Tool("a", "n", "a", "a", None, "", {}, "p", requires_approval=True, timeout=3)}

    found = allowed_tools(agent(terms(toolPolicies=[{"timeoutSeconds": 60}])), None, careful)

    assert found == careful


def test_the_shortest_time_counts() -> None:
    rules = terms(toolPolicies=[{"timeoutSeconds": 25}, {"timeoutSeconds": 60, "tools": {"names": ["pay"]}}])

    found = allowed_tools(agent(rules), None, TOOLS)

    assert {name: one.timeout for name, one in found.items()} == {
        "pay": 25, "read_order": 25, "write_order": 20
    }  # fmt: skip
    longer = allowed_tools(agent(terms(toolPolicies=[{"timeoutSeconds": 60}])), None, TOOLS)
    assert longer["pay"].timeout == 30  # as the agent has it


def test_the_strictest_rule_for_calls_from_text_counts() -> None:
    lenient = {"fromText": "Allow"}
    chosen = terms(toolPolicies=[lenient, {"fromText": "Refuse", "tools": {"names": ["pay"]}}, lenient])

    found = allowed_tools(agent(chosen), None, TOOLS)

    assert {name: one.text_calls for name, one in found.items()} == {
        "pay": "Refuse", "read_order": "Allow", "write_order": "Allow"
    }  # fmt: skip


def test_the_strictest_bounds_count() -> None:
    rules = terms(
        toolPolicies=[
            {"concurrency": 5, "rate": {"calls": 100, "seconds": 3600}},
            {"concurrency": 2, "rate": {"calls": 5, "seconds": 60}, "tools": {"names": ["pay"]}},
            {"rate": {"calls": 100, "seconds": 3600}},
        ]
    )

    assert limits_of(PAY, rules.policies) == CallLimits(2, (Rate(5, 60), Rate(100, 3600)))
    assert limits_of(READ, rules.policies) == CallLimits(5, (Rate(100, 3600),))
    assert limits_of(PAY, ()) == CallLimits()


class NotCalled:
    """A model without requests."""

    name = "unasked"

    async def tool_limit(self) -> int:
        raise AssertionError("this model is not asked")

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        raise AssertionError("this model is not asked")


def permitted_agents(rules: Terms, catalogue: Still | None = None) -> PermittedAgents:
    hosted = AgentHandle("a", agent(rules), NotCalled(), catalogue or Still(Catalogue(TOOLS)))
    return PermittedAgents(Several([hosted]))


def seen(permitted: PermittedAgents, who: Principal) -> Catalogue:
    with acting_as(who):
        found = permitted.find("a")
    assert isinstance(found, AgentHandle)
    return found.catalogue.current


def test_no_agent_is_found_where_no_one_has_said_who_asks() -> None:
    permitted = permitted_agents(terms())

    with pytest.raises(NoPrincipal):
        permitted.find("a")
    with pytest.raises(NoPrincipal):
        permitted.hosted()
    with acting_as(UNAUTHENTICATED):
        assert permitted.find("a") is None
        assert permitted.hosted() == []


def test_callers_of_the_same_rules_see_the_very_same_catalogue_until_it_changes() -> None:
    """Anyone who keeps an index beside a catalogue need not make it for each request."""
    rules = terms(access={"toolRules": [{"users": ["*"], "tools": {"names": ["pay"]}}]})
    source = Still(Catalogue(TOOLS))
    permitted = permitted_agents(rules, source)
    first = seen(permitted, CI)

    assert seen(permitted, ALICE) is first
    assert list(first.tools) == ["pay"]

    source.current = Catalogue({"pay": PAY, "refund": tool("refund")})

    assert list(seen(permitted, ALICE).tools) == ["pay"]
    assert seen(permitted, ALICE) is not first


def test_a_run_keeps_what_its_principal_may_use_and_follows_the_catalogue() -> None:
    rules = terms(access={"toolRules": [{"groups": ["ops"], "tools": {}}]})
    source = Still(Catalogue({"pay": PAY}))
    with acting_as(CI):
        found = permitted_agents(rules, source).find("a")
    assert isinstance(found, AgentHandle)

    source.current = Catalogue(TOOLS)

    assert list(found.catalogue.current.tools) == list(TOOLS)  # outside of any request


def test_an_agent_that_takes_no_requests_is_known_to_those_who_were_let_in() -> None:
    class Broken(Several):
        def find(self, name: str) -> UnavailableAgent:  # type: ignore[override]  # finds one that is not served
            return UnavailableAgent(name, "NoModel", "…")

    permitted = PermittedAgents(Broken([]))

    with acting_as(CI):
        assert isinstance(permitted.find("a"), UnavailableAgent)
    with acting_as(UNAUTHENTICATED):
        assert permitted.find("a") is None


def test_what_was_refused_is_not_shown_to_callers_with_rules() -> None:
    whole = Catalogue(TOOLS, refusals=(), skipped=())
    open_to_all = seen(permitted_agents(terms(), Still(whole)), CI)
    ruled = seen(permitted_agents(terms(access={"toolRules": []}), Still(whole)), CI)

    assert open_to_all is whole
    assert (ruled.refusals, ruled.skipped, dict(ruled.tools)) == ((), (), {})


def test_an_agent_resource_is_served_on_the_terms_that_it_names() -> None:
    spec = {"access": {"users": ["key:ci"]}, "toolPolicies": [{"readOnly": True}]}
    metadata = {"name": "helper", "namespace": "default"}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    own = ConfiguredAgent(
        agent(terms(access={"users": ["*"]})), ModelSpec("https://example.com/v1", "m", "auto", "")
    )

    served = agent_of(read_agent(from_object(document)), own)
    plain = agent_of(read_agent(from_object({**document, "spec": {}})), own)

    assert served.terms == terms(**spec)
    assert plain.terms == NO_TERMS  # those of the service's own agent are its own
