"""Mistakes and likely mistakes in manifests, and their corrections."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from difflib import get_close_matches

from beckon_contract.agent_resources import InvalidAgent, is_agent, read_agent
from beckon_contract.catalogue import Catalogue, build_catalogue
from beckon_contract.check_eventtypes import check_event_type, check_shared_types, check_tool
from beckon_contract.check_triggers import check_broker, check_loop, check_trigger
from beckon_contract.eventtypes import GROUP
from beckon_contract.findings import Finding, errors, warning
from beckon_contract.resources import Key, Resource, Unreadable
from beckon_contract.routes import DEFAULT_CALLER
from beckon_contract.tools import Refusal


def check_agent(resource: Resource, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield errors and likely mistakes of an Agent."""
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
        # Others may be in other manifests: only likely slips of the pen are reported.
        if near := get_close_matches(name, sorted(known), n=1, cutoff=0.8):
            message = f"no EventType of these manifests is called {name!r}; is {near[0]!r} meant?"
            yield warning(resource, field, message)


_CHECKS = {"EventType": check_event_type, "Trigger": check_trigger, "Broker": check_broker}


@dataclass(frozen=True, slots=True)
class Report:
    """The findings about manifests, and the catalogue of their EventTypes.

    Findings are in the order of the manifests, errors first.

    `catalogue` holds the tools with their routes and the place of their parameters, what was
    refused (each refusal is an error among the findings, too) and what is no tool.
    """

    findings: tuple[Finding, ...]
    catalogue: Catalogue

    @property
    def errors(self) -> int:
        """The number of errors among the findings."""
        return sum(finding.severity == "error" for finding in self.findings)


def check(resources: Iterable[Resource | Unreadable], caller: str = DEFAULT_CALLER) -> Report:
    """Check manifests of every kind; only EventTypes, Triggers, Brokers and Agents are looked into.

    `caller` is the CloudEvents source of the agent. Nothing in a manifest makes this raise.
    """
    everything = list(resources)
    catalogue = build_catalogue(everything, caller)
    latest: dict[Key, Resource] = {}
    findings: list[Finding] = []
    for resource in everything:
        if isinstance(resource, Resource) and resource.kind in _CHECKS:
            findings += _identity(resource, latest)
            latest[resource.key] = resource
    for resource in latest.values():
        if resource.group == GROUP:
            findings += _CHECKS[resource.kind](resource)
    for resource in {one.key: one for one in everything if isinstance(one, Resource)}.values():
        findings += check_agent(resource, catalogue)
    findings += map(_refused, catalogue.refusals)
    findings += _tools(catalogue, latest)
    place = {resource.origin: number for number, resource in enumerate(everything)}
    return Report(
        tuple(sorted(set(findings), key=lambda found: (place[found.origin], *astuple(found)))), catalogue
    )


def _identity(resource: Resource, seen: Mapping[Key, Resource]) -> Iterator[Finding]:
    """Yield warnings about the identity of an object."""
    if resource.group != GROUP:
        message = f"{resource.api_version} {resource.kind} is none of Knative's; write {GROUP}/…"
        yield warning(resource, "apiVersion", message)
    if resource.name_is_prefix:
        message = "works with kubectl create alone; write metadata.name, which kubectl apply needs"
        yield warning(resource, "metadata.generateName", message)
    earlier = seen.get(resource.key)
    if earlier is not None:
        message = f"{earlier.origin} holds an object of the same name, which this one replaces; remove one"
        yield warning(resource, "metadata.name", message)


def _refused(refusal: Refusal) -> Finding:
    kind = "EventType" if refusal.event_type else ""
    return Finding(
        refusal.origin, refusal.namespace, kind, refusal.event_type, "error", refusal.field, refusal.message
    )


def _tools(catalogue: Catalogue, resources: Mapping[Key, Resource]) -> Iterator[Finding]:
    pairs = [
        (tool, resources[Key(GROUP, "EventType", tool.namespace, tool.event_type)])
        for tool in catalogue.tools.values()
    ]
    for tool, resource in pairs:
        candidates = catalogue.table.candidates(tool.namespace, tool.type)
        routes = [listener for listener in candidates if listener.trigger.name in tool.routes]
        yield from check_tool(tool, resource, routes)
        for route in routes:
            yield from check_loop(route, tool.type)
    yield from check_shared_types(pairs)
