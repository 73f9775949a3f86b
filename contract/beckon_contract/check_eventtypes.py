"""Likely mistakes in an EventType and its tool.

Mistakes that make an EventType invalid are refusals of the catalogue.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

from beckon_contract.eventtypes import TOOL_LABEL, InvalidEventType, parse_event_type
from beckon_contract.findings import Finding, warning, warnings
from beckon_contract.names import sanitise
from beckon_contract.options import KNOWN, PREFIX, TOOL_NAME
from beckon_contract.places import PARAMETERS
from beckon_contract.resources import Resource
from beckon_contract.routes import Listener
from beckon_contract.tools import MAX_DESCRIPTION, Tool


def check_event_type(resource: Resource) -> Iterator[Finding]:
    """Yield warnings about one EventType on its own; its mistakes are refusals of the catalogue."""
    with suppress(InvalidEventType):  # which the catalogue refuses with every mistake
        yield from warnings(resource, parse_event_type(resource).warnings)
    for name in resource.annotations:
        if name.startswith(PREFIX) and name not in KNOWN:
            message = f"unknown annotation, which has no effect{_meant(name, KNOWN)}"
            yield warning(resource, f"metadata.annotations[{name}]", message)
    for name in resource.labels:
        if name.startswith(PREFIX) and name != TOOL_LABEL:
            message = f"unknown label, which has no effect{_meant(name, [TOOL_LABEL])}"
            yield warning(resource, f"metadata.labels[{name}]", message)


def check_tool(tool: Tool, resource: Resource, routes: Sequence[Listener]) -> Iterator[Finding]:
    """Yield warnings about an EventType with a tool.

    `routes` are the Triggers of its calls.
    """
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
    """Yield warnings about tools called with the same type.

    No Trigger can distinguish their calls.
    """
    users: Mapping[tuple[str, str, str], list[tuple[Tool, Resource]]] = defaultdict(list)
    for tool, resource in tools:
        users[tool.namespace, tool.broker, tool.type].append((tool, resource))
    for (_, _, shared), sharing in users.items():
        names = sorted(tool.event_type for tool, _ in sharing)
        for tool, resource in sharing if len(names) > 1 else ():
            other = names[0] if names[0] != tool.event_type else names[1]
            message = f"{shared!r} is also the type of {other}: calls of either reach the same services"
            yield warning(resource, "spec.type", message)


def _meant(name: str, known: Iterable[str]) -> str:
    ends = {text.removeprefix(PREFIX): text for text in sorted(known)}
    near = get_close_matches(name.removeprefix(PREFIX), list(ends), n=1, cutoff=0.6)
    return f"; did you mean {ends[near[0]]}?" if near else f"; those with one are {', '.join(ends.values())}"
