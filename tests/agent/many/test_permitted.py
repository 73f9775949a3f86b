"""Callers who may use different parts of many tools: over one index, and no one finds what is another's."""

from dataclasses import replace

import pytest

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.auth.authorization import PermittedAgents
from beckon_agent.core.context import Principal, acting_as
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.tools.bm25 import Indexes
from beckon_agent.tools.select import FittingTools, Situation
from beckon_contract.catalogue.builder import Catalogue
from tests.agent.auth.closed_service import Several, terms
from tests.agent.auth.test_rules import NotCalled
from tests.agent.many.plenty import filler
from tests.agent.running_agent import Still, user

SALES = Principal("key:sales", frozenset({"sales"}), "key")
STAFF = Principal("key:staff", frozenset({"staff"}), "key")
LIMIT = 16
AREAS = {"sales": ("invoice", "order"), "staff": ("employee", "meeting")}
QUESTION = [user("Export the invoice, then merge the meetings of the employee")]


def area_of(name: str) -> str:
    return next((area for area, nouns in AREAS.items() if name.endswith(nouns)), "")


@pytest.mark.parametrize(("who", "area"), [(SALES, "sales"), (STAFF, "staff")])
async def test_no_one_is_sent_or_finds_what_only_others_may_use(who: Principal, area: str) -> None:
    tools = {tool.name: tool for tool in map(filler, range(240))}
    tools = {name: replace(tool, labels={"area": area_of(name)}) for name, tool in tools.items()}
    rules = [{"groups": [name], "tools": {"selector": {"matchLabels": {"area": name}}}} for name in AREAS]
    agent_terms = terms(access={"toolRules": rules}, toolPolicies=[{"approval": "Always"}])
    indexes = Indexes()
    index = await indexes.index_of(tools)
    pinned = [next(name for name in tools if area_of(name) == one) for one in AREAS]
    hosted = AgentHandle(
        "a",
        Agent("a", "default", "", Limits(), agent_terms),
        NotCalled(),
        Still(Catalogue(tools)),
        chooser=FittingTools(pinned, indexes),
    )
    with acting_as(who):
        found = PermittedAgents(Several([hosted])).find("a")
    assert isinstance(found, AgentHandle)
    mine = found.catalogue.current.tools

    selection = await found.chooser.choose_tools(Situation(mine, QUESTION, LIMIT))

    assert len(selection.names) > LIMIT // 3
    assert {area_of(name) for name in selection.names} == {area}
    assert all(mine[name] is tool for name, tool in zip(selection.names, selection.tools[1:], strict=True))
    assert selection.finder is not None
    for query in (pinned[0], pinned[1], "export invoice order employee meeting"):
        assert {area_of(name) for name in selection.finder.find_names(query, 20)} <= {area}
    assert selection.finder.index is index
