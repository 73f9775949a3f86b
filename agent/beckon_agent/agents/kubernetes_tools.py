"""The tools of the watched namespaces: their selection by agents, and their condition Answering.

The condition comes from the outcomes of the calls.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

from beckon_agent.telemetry.tool_spans import ANSWERED
from beckon_agent.tools.bm25 import Indexes
from beckon_agent.tools.event_types import EventTypeStore
from beckon_agent.tools.explain import CallRoute, Explanation, delivery_words, route_stations
from beckon_agent.tools.select import AllowedToolsChooser, Chooser, FittingTools
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.failures import Reason
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.knative.routes import read_routes
from beckon_contract.kubernetes_objects import Condition, Resource, condition, from_object
from beckon_contract.resources.tools import (
    ANSWERING,
    CONDITIONS,
    Refusal,
    Tool,
    ToolSelector,
    declare,
    read_tool,
)
from beckon_contract.schema.arguments import Validator
from beckon_sources.api_types import Document, Refused, Unreachable

logger = logging.getLogger(__name__)

FAILURES = 5  # in a row, with no result between them; fewer may be the model's fault
_PAUSE = 10.0  # seconds between two rounds of writes
# What a model or a person refused says nothing about the tool.
_FAILED = frozenset((Reason.TOOL_FAILED, Reason.TIMEOUT, Reason.UNDELIVERABLE, Reason.OUTCOME_UNKNOWN))

ToolPlace = tuple[str, str]  # namespace and name of a Tool


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A Tool as it was seen last: its `resourceVersion` and its status."""

    version: str
    status: Mapping[str, Any]


class AnsweringReporter:
    """Counts outcomes of calls, and writes the condition Answering.

    It is written only if the stored one is not true any more. `find` returns a Tool as it was seen last,
    `patch` merges a document into it; `pause` is in seconds.
    """

    def __init__(
        self,
        find: Callable[[ToolPlace], StoredTool | None],
        patch: Callable[[ToolPlace, Document], Awaitable[Document]],
        pause: float = _PAUSE,
    ) -> None:
        self._find = find
        self._patch = patch
        self._pause = pause
        self._failures: dict[ToolPlace, Counter[str]] = {}
        self._due: set[ToolPlace] = set()
        self._wake = asyncio.Event()
        self._refused: set[int] = set()

    def call_ended(self, tool: Tool, outcome: str) -> None:
        """Record the outcome of a call: `answered`, or the reason of its failure."""
        place = tool.namespace, tool.event_type
        if outcome in _FAILED:
            self._failures.setdefault(place, Counter())[outcome] += 1
        elif outcome == ANSWERED:
            self._failures.pop(place, None)
        else:
            return
        if self._new_condition(place) is not None:
            self._due.add(place)
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled, each Tool at most once per pause."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            due, self._due = self._due, set()
            for place in sorted(due):
                await self._report_tool(place)
            await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))  # noqa: S311  # jitter is no secret

    def _new_condition(self, place: ToolPlace) -> dict[str, str] | None:
        """Return the condition to write, `None` for no change.

        There is no change if the stored condition is still true, or if too little is known.
        """
        stored = self._find(place)
        if stored is None:
            self._failures.pop(place, None)
            return None
        known = condition(stored.status, ANSWERING)
        failures = self._failures.get(place)
        if failures is None:
            wrong = known is not None and known.status == "False"
            return _to_condition("True", "CallsAnswered", "a call gave a result again") if wrong else None
        if failures.total() < FAILURES or (known is not None and known.status == "False"):
            return None
        reasons = ", ".join(f"{reason} {count}×" for reason, count in failures.most_common())
        message = (
            f"the last {failures.total()} calls of one replica of the agent gave no result: {reasons}; "
            "see the logs of the tool, and call it by hand: POST /tools/NAME of the agent"
        )
        return _to_condition("False", "CallsFail", message)

    async def _report_tool(self, place: ToolPlace) -> None:
        news, stored = self._new_condition(place), self._find(place)
        if news is None or stored is None:
            return
        conditions = stored.status.get("conditions")
        others = (
            [one for one in conditions if one.get("type") != ANSWERING]
            if isinstance(conditions, list)
            else []
        )
        document = {
            # The list is replaced whole: only in the version that it was read from.
            "metadata": {"resourceVersion": stored.version},
            "status": {"conditions": [*others, news]},
        }
        try:
            await self._patch(place, document)
        except Unreachable:
            self._try_again(place)
        except Refused as error:
            if error.status == 409 or error.passing:
                self._try_again(place)
            elif error.status != 404 and error.status not in self._refused:
                self._refused.add(error.status)
                logger.warning("the condition %s of Tool %s/%s is not written: %s", ANSWERING, *place, error)
        except Exception:  # one Tool must not keep the others from their condition
            logger.exception("the condition %s of Tool %s/%s cannot be written", ANSWERING, *place)

    def _try_again(self, place: ToolPlace) -> None:
        self._due.add(place)
        self._wake.set()


def _to_condition(status: str, reason: str, message: str) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {"type": ANSWERING, "status": status, "reason": reason, "message": message}
    return {**document, "lastTransitionTime": now}


def explain_tool(tool: Resource) -> Explanation:
    """Return the explanation of an EventType from its Tool.

    The operator has followed the Triggers and written their addresses into it.
    """
    every = (condition(tool.status, name) for name in (*CONDITIONS[:-1], ANSWERING, CONDITIONS[-1]))
    conditions = [one for one in every if isinstance(one, Condition)]
    kind, broker, address = (_read_text(tool.spec, name) for name in ("type", "broker", "address"))
    direct = tool.spec.get("dispatch") == "direct"
    reference = tool.spec.get("reference")
    service = _read_text(reference, "name") if isinstance(reference, Mapping) else ""
    routes = [CallRoute("", service=service, address=address)] if direct else _read_routes(tool)
    return Explanation(
        tool.namespace,
        tool.name,
        kind,
        _read_text(tool.spec, "description"),
        conditions,
        route_stations(tool.name, kind, broker or "default", routes, conditions, direct=direct),
    )


def _read_routes(tool: Resource) -> list[CallRoute]:
    """Return the Triggers of a tool. Only their names if an older operator wrote the Tool."""
    routes = [
        CallRoute(
            one.trigger,
            one.filter,
            one.service(tool.namespace),
            one.address,
            delivery=delivery_words(one.retries, one.dead_letters),
        )
        for one in read_routes(tool.status)
    ]
    triggers = tool.spec.get("triggers")
    if routes or not isinstance(triggers, list):
        return routes
    return [CallRoute(name) for name in triggers if isinstance(name, str)]


def _read_text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class _ToolRecord:
    """A Tool resource, read as a tool or as a refusal. `name` is the name the model sees."""

    name: str
    resource: str
    labels: Mapping[str, str]
    read: Tool | Refusal
    written: Resource | None = None
    version: str = ""


class AgentTools:
    """The catalogue of one agent: the selected Tools of its namespace.

    Only the Tools changed since the last look are read again, at the next look.
    """

    def __init__(self, tools: "_NamespaceTools", selector: ToolSelector) -> None:
        self._tools = tools
        self._selector = selector
        self._chosen: dict[str, _ToolRecord] = {}
        self._stale = set(tools.entries)
        self._current = Catalogue(MappingProxyType({}))
        tools.views.add(self)

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now, in the order of names."""
        if self._stale:
            self._settle_catalogue()
        return self._current

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType from its Tool."""
        entry = self._tools.entries.get(event_type)
        if entry is None or entry.written is None or entry.written.namespace != namespace:
            return None
        return explain_tool(entry.written)

    def look_again(self, resource: str) -> None:
        """Mark a Tool as new, changed or deleted."""
        self._stale.add(resource)

    def _settle_catalogue(self) -> None:
        for resource in self._stale:
            entry = self._tools.entries.get(resource)
            if entry is not None and self._selector.matches((entry.name, resource), entry.labels):
                self._chosen[resource] = entry
            else:
                self._chosen.pop(resource, None)
        self._stale.clear()
        self._current = _to_catalogue(sorted(self._chosen.values(), key=lambda one: (one.name, one.resource)))


@dataclass(slots=True)
class _NamespaceTools:
    """The Tools of one namespace, and its agents' catalogues. Tools are by the names of their resources."""

    entries: dict[str, _ToolRecord] = field(default_factory=dict)
    views: WeakSet[AgentTools] = field(default_factory=WeakSet)
    indexes: Indexes = field(default_factory=Indexes)
    whole: AgentTools = field(init=False)

    def __post_init__(self) -> None:
        self.whole = AgentTools(self, ToolSelector())


class ToolStore:
    """All Tools of the watched namespaces.

    `changed` is called with the namespace of each new, changed or deleted Tool.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self.known_events = EventTypeStore()
        self._changed = changed
        self._by_namespace: dict[str, _NamespaceTools] = {}

    def own(self, namespace: str) -> AgentTools:
        """Return the catalogue of the service's own agent."""
        return self.chosen(namespace, ToolSelector())

    def chosen(self, namespace: str, selector: ToolSelector) -> AgentTools:
        """Return the catalogue of an agent, kept up to date while referenced."""
        return AgentTools(self._tools_in(namespace), selector)

    def chooser(self, namespace: str, pinned: Sequence[str]) -> Chooser:
        """Return the chooser for an agent of a namespace.

        All choosers of a namespace share the index of its Tools.
        """
        tools = self._tools_in(namespace)
        return AllowedToolsChooser(FittingTools(pinned, tools.indexes), lambda: tools.whole.current.tools)

    def event_types(self, namespace: str) -> Sequence[EventType]:
        """Return the EventTypes of a namespace that are no tools, as `known_events` has them."""
        return self.known_events.list_in(namespace)

    @property
    def count_ready(self) -> int:
        """The number of callable Tools."""
        namespaces = self._by_namespace.values()
        return sum(isinstance(entry.read, Tool) for tools in namespaces for entry in tools.entries.values())

    def put(self, document: Document) -> None:
        """Add or replace a Tool."""
        metadata = document["metadata"]
        namespace, name = str(metadata["namespace"]), str(metadata["name"])
        try:
            version = str(metadata.get("resourceVersion") or "")
            entry = _read_tool(from_object(document, f"Tool {name}"), version)
        except ValueError as error:
            refusal = Refusal(name, namespace, "InvalidTool", "", str(error), f"Tool {name}")
            entry = _ToolRecord(name, name, {}, refusal)
        self._tools_in(namespace).entries[name] = entry
        self._refresh_views(namespace, name)

    def find_stored(self, place: ToolPlace) -> StoredTool | None:
        """Return a Tool as it was seen last, by namespace and name."""
        namespace, name = place
        entry = self._tools_in(namespace).entries.get(name)
        if entry is None or entry.written is None:
            return None
        return StoredTool(entry.version, entry.written.status)

    def drop(self, namespace: str, name: str) -> None:
        """Forget a Tool."""
        self._tools_in(namespace).entries.pop(name, None)
        self._refresh_views(namespace, name)

    def _refresh_views(self, namespace: str, name: str) -> None:
        for view in self._tools_in(namespace).views:
            view.look_again(name)
        self._changed(namespace)

    def _tools_in(self, namespace: str) -> _NamespaceTools:
        return self._by_namespace.setdefault(namespace, _NamespaceTools())


def _read_tool(resource: Resource, version: str) -> _ToolRecord:
    shown = resource.spec.get("name")
    name = shown if isinstance(shown, str) and shown else resource.name
    read = _check_tool(read_tool(resource))
    return _ToolRecord(name, resource.name, resource.labels, read, resource, version)


def _check_tool(tool: Tool | Refusal) -> Tool | Refusal:
    """Refuse a tool with an unusable declaration or schema. It would make every request with it fail."""
    if isinstance(tool, Tool):
        try:
            declare(tool)
            Validator(tool.parameters)
            Validator(tool.returns or {})
        except Exception as error:  # whatever is in a schema that no operator of ours has written
            logger.warning("Tool %s/%s has an unusable schema: %s", tool.namespace, tool.event_type, error)
            message = "no JSON Schema that can be used; the operator writes Tools, so change the EventType"
            return Refusal(
                tool.event_type, tool.namespace, "InvalidTool", "spec.parameters", message, tool.origin
            )
    return tool


def _to_catalogue(entries: list[_ToolRecord]) -> Catalogue:
    """Return the catalogue of ordered entries. Of two with one name, the first is offered."""
    tools: dict[str, Tool] = {}
    refusals: list[Refusal] = []
    for entry in entries:
        if isinstance(entry.read, Refusal):
            refusals.append(entry.read)
        elif entry.name in tools:
            refusals.append(_name_taken(entry.read, tools[entry.name]))
        else:
            tools[entry.name] = entry.read
    refusals.sort(key=lambda one: (one.namespace, one.event_type))
    return Catalogue(MappingProxyType(tools), tuple(refusals))


def _name_taken(tool: Tool, other: Tool) -> Refusal:
    message = f"the name {tool.name} belongs to the Tool {other.event_type}; the operator will choose another"
    return Refusal(tool.event_type, tool.namespace, "NameTaken", "spec.name", message, tool.origin)
