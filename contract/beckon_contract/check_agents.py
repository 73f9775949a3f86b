"""What is wrong with Agents, and which names of tools in them are hardly meant."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from beckon_contract.agent_resources import InvalidAgent, is_agent, read_agent
from beckon_contract.catalogue import Catalogue
from beckon_contract.findings import Finding, errors, warning
from beckon_contract.resources import Resource


def check_agent(resource: Resource, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield what is wrong with an Agent, or hardly meant."""
    if not is_agent(resource):
        return
    try:
        agent = read_agent(resource)
    except InvalidAgent as problem:
        yield from errors(resource, problem.problems)
        return
    known = _names(agent.namespace, catalogue)
    yield from _unknown(resource, "spec.tools.names", agent.tools.names or (), known)
    yield from _unknown(resource, "spec.tools.pinned", agent.pinned or (), known)


def _names(namespace: str, catalogue: Catalogue) -> set[str]:
    tools = [tool for tool in catalogue.tools.values() if tool.namespace == namespace]
    return {
        *(tool.name for tool in tools),
        *(tool.event_type for tool in tools),
        *(one.event_type for one in catalogue.refusals if one.namespace == namespace),
        *(one.event_type for one in catalogue.skipped if one.namespace == namespace),
    }


def _unknown(resource: Resource, field: str, names: Iterable[str], known: set[str]) -> Iterator[Finding]:
    for name in sorted(set(names) - known):
        # Others may be in other manifests: only what looks like a slip of the pen is told.
        if near := get_close_matches(name, sorted(known), n=1, cutoff=0.8):
            message = f"no EventType of these manifests is called {name!r}; is {near[0]!r} meant?"
            yield warning(resource, field, message)
