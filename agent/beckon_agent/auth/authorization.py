"""Authorization: the agents and tools that a caller may use.

Of several policies for one tool, the strictest counts.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from beckon_agent.agents.registry import AgentHandle, AgentRegistry, UnavailableAgent
from beckon_agent.core.context import Principal, current_principal
from beckon_agent.core.run_types import Agent
from beckon_agent.tools.catalogue import CatalogueSource
from beckon_agent.tools.explain import Explanation
from beckon_agent.tools.select import AllowedToolsChooser
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.resources.agent_terms import Access, Rate, ToolPolicy
from beckon_contract.resources.tools import Refusal, Skipped, TextCallRule, Tool

_STRICTNESS: Sequence[TextCallRule] = ("Allow", "Approve", "Refuse")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits on calls of a tool.

    `concurrency` is the number of simultaneous calls, `None` without limit. Each of the rates applies.
    """

    concurrency: int | None = None
    rates: tuple[Rate, ...] = ()


def is_withheld(tool: Tool, policies: Iterable[ToolPolicy]) -> bool:
    """Return True if the policies withhold a tool.

    It may write although only reading is allowed, or its calls bypass the Broker although that is
    required.
    """
    return any(
        (policy.read_only and not tool.read_only) or (policy.through_broker and tool.dispatch == "direct")
        for policy in _choose_policies(tool, policies)
    )


def apply_policies(tool: Tool, policies: Sequence[ToolPolicy], *, usual_timeout: float) -> Tool:
    """Return a tool with the policies applied.

    They only add to the requirements of its EventType. `usual_timeout` is the agent's time-out in
    seconds, for a tool without one.
    """
    chosen = _choose_policies(tool, policies)
    if not chosen:
        return tool
    approval = tool.requires_approval or any(_needs_approval(policy, tool) for policy in chosen)
    text_calls = max((policy.text_calls for policy in chosen), key=_STRICTNESS.index)
    caps = [policy.timeout for policy in chosen if policy.timeout is not None]
    timeout = min(tool.timeout or usual_timeout, *caps) if caps else tool.timeout
    return replace(tool, requires_approval=approval, timeout=timeout, text_calls=text_calls)


def limits_of(tool: Tool, policies: Iterable[ToolPolicy]) -> CallLimits:
    """Return the limits on calls of a tool."""
    chosen = _choose_policies(tool, policies)
    places = [policy.concurrency for policy in chosen if policy.concurrency is not None]
    rates = {policy.rate for policy in chosen if policy.rate is not None}
    return CallLimits(min(places, default=None), tuple(sorted(rates, key=lambda rate: rate.seconds)))


def _choose_policies(tool: Tool, policies: Iterable[ToolPolicy]) -> list[ToolPolicy]:
    return [policy for policy in policies if policy.tools.selects(tool)]


def _needs_approval(policy: ToolPolicy, tool: Tool) -> bool:
    return policy.approval == "Always" or (policy.approval == "Writes" and not tool.read_only)


Mask = tuple[int, ...]
"""The numbers of the tool rules that name a principal: principals with the same mask have the same tools."""


def may_use(access: Access, who: Principal, *, deny_by_default: bool = False) -> bool:
    """Return True if a principal may use an agent."""
    if who.kind == "unauthenticated":
        return False
    if access.callers is None:
        return not deny_by_default
    return access.callers.include(who.id, who.groups)


def mask_of(access: Access, who: Principal) -> Mask | None:
    """Return the numbers of the tool rules naming a principal. `None` if the agent has no tool rules."""
    if access.tool_rules is None:
        return None
    return tuple(
        number
        for number, rule in enumerate(access.tool_rules)
        if who.kind != "unauthenticated" and rule.callers.include(who.id, who.groups)
    )


def may_read(access: Access, who: Principal, event_type: str) -> bool:
    """Return True if a principal may read events of a type.

    Without rules for events, rules for tools leave none.
    """
    if access.event_rules is None:
        return access.tool_rules is None
    return who.kind != "unauthenticated" and any(
        rule.callers.include(who.id, who.groups) and rule.includes(event_type) for rule in access.event_rules
    )


def _read_events(hosted: AgentHandle, who: Principal) -> Callable[[], Sequence[EventType]]:
    access = hosted.agent.terms.access
    return lambda: [one for one in hosted.event_types() if may_read(access, who, one.type)]


def allowed_tools(agent: Agent, mask: Mask | None, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools permitted to a mask, in their order.

    The policies are applied to each; tools they withhold are left out.
    """
    policies, usual = agent.terms.policies, agent.limits.call_timeout
    return {
        name: apply_policies(tool, policies, usual_timeout=usual)
        for name, tool in tools.items()
        if _is_named(agent.terms.access, mask, tool) and not is_withheld(tool, policies)
    }


def _is_named(access: Access, mask: Mask | None, tool: Tool) -> bool:
    rules = access.tool_rules
    return mask is None or rules is None or any(rules[number].tools.selects(tool) for number in mask)


_MAX_VIEWS = 256


class PermittedAgents:
    """A registry limited to the agents permitted to the current principal.

    `find` and `hosted` raise `NoPrincipal` if the task has no principal. A run keeps the permissions of
    the agent as it was found.
    """

    def __init__(self, registry: AgentRegistry, *, deny_by_default: bool = False) -> None:
        self._registry = registry
        self._deny_by_default = deny_by_default
        self._views = _Views()

    @property
    def complete(self) -> bool:
        """True if all agents and tools were read once."""
        return self._registry.complete

    @property
    def default(self) -> str:
        """The name of the default agent, for requests without one."""
        return self._registry.default

    @property
    def tools(self) -> int:
        """The number of all tools."""
        return self._registry.tools

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name, `None` if it is not permitted."""
        agent = self._registry.find(name)
        if isinstance(agent, AgentHandle):
            return self._permit_agent(agent)
        # The rules of an agent that is not served may be unreadable: callers without access do not see it.
        return None if current_principal().kind == "unauthenticated" else agent

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents open to the principal, the default one first."""
        permitted = map(self._permit_agent, self._registry.hosted())
        return [hosted for hosted in permitted if hosted is not None]

    async def watch(self) -> None:
        """Keep all of it up to date until cancelled."""
        await self._registry.watch()

    def _permit_agent(self, hosted: AgentHandle) -> AgentHandle | None:
        who, terms = current_principal(), hosted.agent.terms
        if not may_use(terms.access, who, deny_by_default=self._deny_by_default):
            return None
        mask, events = mask_of(terms.access, who), _read_events(hosted, who)
        if mask is None and not terms.policies:
            return hosted if terms.access.event_rules is None else replace(hosted, event_types=events)
        return replace(
            hosted,
            event_types=events,
            catalogue=_PermittedTools(hosted, mask, self._views),
            chooser=AllowedToolsChooser(hosted.chooser, lambda: hosted.catalogue.current.tools),
        )


@dataclass(frozen=True, slots=True)
class _View:
    """A catalogue filtered by one mask, with its sources."""

    whole: Catalogue
    agent: Agent
    seen: Catalogue


class _Views:
    """A cache of the catalogues made last.

    The same tools, rules and mask give the same object, so that an index cached for a catalogue is found
    again.
    """

    def __init__(self) -> None:
        self._by_principal: OrderedDict[tuple[str, Mask | None], _View] = OrderedDict()

    def get_view(self, name: str, mask: Mask | None, made_of: tuple[Catalogue, Agent]) -> Catalogue:
        whole, agent = made_of
        view = self._by_principal.get((name, mask))
        if view is None or view.whole is not whole or view.agent is not agent:
            view = self._by_principal[name, mask] = _View(whole, agent, _filter_catalogue(whole, agent, mask))
        self._by_principal.move_to_end((name, mask))
        if len(self._by_principal) > _MAX_VIEWS:
            self._by_principal.popitem(last=False)
        return view.seen


class _PermittedTools:
    """The tools of an agent, filtered by one mask."""

    def __init__(self, hosted: AgentHandle, mask: Mask | None, views: _Views) -> None:
        self._source: CatalogueSource = hosted.catalogue
        self._look: Callable[[Catalogue], Catalogue] = lambda whole: views.get_view(
            hosted.name, mask, (whole, hosted.agent)
        )

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now."""
        return self._look(self._source.current)

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType of this catalogue. `None` for any other EventType."""
        seen = self.current
        known: Sequence[Tool | Refusal | Skipped] = (*seen.tools.values(), *seen.refusals, *seen.skipped)
        if not any((one.namespace, one.event_type) == (namespace, event_type) for one in known):
            return None
        return self._source.explain(namespace, event_type)


def _filter_catalogue(whole: Catalogue, agent: Agent, mask: Mask | None) -> Catalogue:
    """Return a catalogue filtered by a mask.

    With tool rules, refused and skipped resources are left out as well.
    """
    tools = MappingProxyType(allowed_tools(agent, mask, whole.tools))
    if mask is None:
        return replace(whole, tools=tools)
    return Catalogue(tools, table=whole.table)
