"""What a principal may do: decisions, and nothing else."""

from collections.abc import Mapping

from beckon_agent.policy.tools import governed, withheld
from beckon_agent.principals import Principal
from beckon_agent.runs import Agent
from beckon_contract.agent_terms import Access
from beckon_contract.tools import Tool

Mask = tuple[int, ...]
"""The numbers of the tool rules that name a principal: whoever has the same mask has the same tools."""


def may_use(access: Access, who: Principal, *, deny_by_default: bool = False) -> bool:
    """Whether a principal may use an agent."""
    if who.kind == "nobody":
        return False
    if access.callers is None:
        return not deny_by_default
    return access.callers.include(who.id, who.groups)


def mask_of(access: Access, who: Principal) -> Mask | None:
    """Return which tool rules name a principal, `None` where no rule closes any tool."""
    if access.tool_rules is None:
        return None
    return tuple(
        number
        for number, rule in enumerate(access.tool_rules)
        if who.kind != "nobody" and rule.callers.include(who.id, who.groups)
    )


def allowed_tools(agent: Agent, mask: Mask | None, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools that those of a mask may use, as the policies want them called, in their order."""
    policies, usual = agent.terms.policies, agent.limits.call_timeout
    return {
        name: governed(tool, policies, usual_timeout=usual)
        for name, tool in tools.items()
        if _named(agent.terms.access, mask, tool) and not withheld(tool, policies)
    }


def may_see(owner: str, who: Principal) -> bool:
    """Whether a run or a conversation belongs to a principal; those of anonymous callers to all of them."""
    return who.kind != "nobody" and who.id == owner


def _named(access: Access, mask: Mask | None, tool: Tool) -> bool:
    rules = access.tool_rules
    return mask is None or rules is None or any(rules[number].tools.selects(tool) for number in mask)
