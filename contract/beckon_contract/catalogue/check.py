"""The check of manifests: EventTypes, Triggers and Agents.

Errors are what Knative refuses. Mistakes that make an EventType invalid are refusals of the catalogue.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from difflib import get_close_matches

from beckon_contract.catalogue.annotations import KNOWN, PARAMETERS, PREFIX, TOOL_NAME
from beckon_contract.catalogue.builder import Catalogue, build_catalogue
from beckon_contract.catalogue.diagnostics import Finding, error, errors, warning, warnings
from beckon_contract.knative.eventtypes import GROUP, TOOL_LABEL, InvalidEventType, parse_event_type
from beckon_contract.knative.routes import DEFAULT_CALLER, BrokenTrigger, Listener, read_trigger
from beckon_contract.knative.triggers import InvalidResource, parse_broker
from beckon_contract.kubernetes_objects import Key, Resource, Unreadable
from beckon_contract.names import sanitise
from beckon_contract.resources.agent_resource import InvalidAgent, is_agent, read_agent
from beckon_contract.resources.tools import MAX_DESCRIPTION, Refusal, Tool


def check_event_type(resource: Resource) -> Iterator[Finding]:
    """Yield warnings about one EventType on its own; its mistakes are refusals of the catalogue."""
    with suppress(InvalidEventType):  # which the catalogue refuses with every mistake
        yield from warnings(resource, parse_event_type(resource).warnings)
    for name in resource.annotations:
        if name.startswith(PREFIX) and name not in KNOWN:
            message = f"unknown annotation, which has no effect{_suggest_setting(name, KNOWN)}"
            yield warning(resource, f"metadata.annotations[{name}]", message)
    for name in resource.labels:
        if name.startswith(PREFIX) and name != TOOL_LABEL:
            message = f"unknown label, which has no effect{_suggest_setting(name, [TOOL_LABEL])}"
            yield warning(resource, f"metadata.labels[{name}]", message)


def check_tool(tool: Tool, resource: Resource, routes: Sequence[Listener]) -> Iterator[Finding]:
    """Yield warnings about an EventType with a tool. `routes` are the Triggers of its calls."""
    if tool.parameters_from == "spec.schemaData":
        yield warning(
            resource,
            "spec.schemaData",
            f"Knative 1.15 and later erase it; write the same text in annotation {PARAMETERS}. Beckon's "
            "webhook keeps a copy, but learns of no change made by server-side apply (GitOps, newer Helm)",
        )
    if not tool.description:
        yield warning(resource, "spec.description", "missing; a model chooses tools by their descriptions")
    elif len(tool.description) > MAX_DESCRIPTION:
        message = f"{len(tool.description)} characters; models are shown the first {MAX_DESCRIPTION}"
        yield warning(resource, "spec.description", message)
    wanted = resource.annotations.get(TOOL_NAME, "").strip() or resource.name
    if tool.name != sanitise(wanted):
        message = (
            f"becomes {tool.name!r}, because {sanitise(wanted)[:64]!r} is taken, reserved or too long; "
            f"set annotation {TOOL_NAME} to a name of its own"
        )
        yield warning(resource, "metadata.name", message)
    if routes and all(route.catches_all for route in routes):
        message = (
            f"only Triggers without a filter pass its calls ({', '.join(tool.routes[:3])}), which may "
            f"lead anywhere; write a Trigger with spec.filter.attributes: {{type: {tool.type}}}"
        )
        yield warning(resource, "spec.type", message)


def check_shared_types(tools: Iterable[tuple[Tool, Resource]]) -> Iterator[Finding]:
    """Yield warnings about tools called with the same type. No Trigger can distinguish their calls."""
    users: Mapping[tuple[str, str, str], list[tuple[Tool, Resource]]] = defaultdict(list)
    for tool, resource in tools:
        users[tool.namespace, tool.broker, tool.type].append((tool, resource))
    for (_, _, shared), sharing in users.items():
        names = sorted(tool.event_type for tool, _ in sharing)
        for tool, resource in sharing if len(names) > 1 else ():
            other = names[0] if names[0] != tool.event_type else names[1]
            message = f"{shared!r} is also the type of {other}: calls of either reach the same services"
            yield warning(resource, "spec.type", message)


def _suggest_setting(name: str, known: Iterable[str]) -> str:
    ends = {text.removeprefix(PREFIX): text for text in sorted(known)}
    near = get_close_matches(name.removeprefix(PREFIX), list(ends), n=1, cutoff=0.6)
    return f"; did you mean {ends[near[0]]}?" if near else f"; those with one are {', '.join(ends.values())}"


_LOOP = "replies of its own subscriber come back to it and can go round without end"
_CURE = "write spec.filter.attributes: {type: THE-TYPE}"
_SINK = "an undeliverable call shows only as a time-out"


def check_trigger(resource: Resource) -> Iterator[Finding]:
    """Yield errors and likely mistakes of a Trigger."""
    yield from _check_version(resource)
    trigger = read_trigger(resource)
    if isinstance(trigger, BrokenTrigger):
        yield from errors(resource, trigger.problems)
        return
    yield from warnings(resource, trigger.trigger.warnings)
    if trigger.catches_all:
        message = f"passes every event of the Broker, so {_LOOP}; {_CURE}"
        yield warning(resource, "spec.filter", message)
    delivery = trigger.trigger.delivery
    if delivery is not None and delivery.dead_letter is None:
        message = f"replaces the Broker's delivery whole and has no deadLetterSink, so {_SINK}; add one"
        yield warning(resource, "spec.delivery", message)


def check_broker(resource: Resource) -> Iterator[Finding]:
    """Yield errors and likely mistakes of a Broker."""
    yield from _check_version(resource)
    try:
        broker = parse_broker(resource)
    except InvalidResource as problem:
        yield from errors(resource, problem.problems)
        return
    yield from warnings(resource, broker.warnings)
    if broker.delivery.dead_letter is None:
        message = f"missing, so {_SINK}; name Beckon's shim"
        yield warning(resource, "spec.delivery.deadLetterSink", message)


def check_loop(listener: Listener, called_type: str) -> Iterator[Finding]:
    """Yield a warning if a tool's Trigger would pass replies.

    The type of a reply is taken to begin like that of the call.
    """
    reply_type = f"{called_type}.reply"
    reply = {"specversion": "1.0", "id": "reply", "type": reply_type, "source": "/tool", "replyid": "token"}
    if not listener.catches_all and listener.trigger.filter(reply):
        message = f"passes events of type {reply_type!r} too, so {_LOOP}; {_CURE}"
        yield warning(listener.resource, "spec.filters", message)


def _check_version(resource: Resource) -> Iterator[Finding]:
    if resource.version != "v1":
        message = f"{resource.api_version} is not served by Knative; write {GROUP}/v1"
        yield error(resource, "apiVersion", message)


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
        tuple(sorted(set(findings), key=lambda finding: (place[finding.origin], *astuple(finding)))),
        catalogue,
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
