"""The verdict on an EventType: the spec and the conditions of its Tool.

The condition Available says if a call gets through at this moment. It does not count for Ready: a tool whose
route is as it was when it worked stays offered through an outage of its Broker, and its calls wait.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beckon_contract.catalogue.builder import Entry, EntryReader
from beckon_contract.knative.eventtypes import NO_DESCRIPTION
from beckon_contract.knative.routes import CallRoute, Listener
from beckon_contract.kubernetes_objects import READY, Condition, Resource
from beckon_contract.resources.tools import Skipped, Tool, ready_from, tool_spec
from beckon_operator.conditions.declared import judge_declared
from beckon_operator.conditions.last_ready import ObjectVersion
from beckon_operator.conditions.namespace_view import BrokerView, NamespaceView
from beckon_operator.conditions.path import (
    ANSWERABLE,
    DEAD_LETTERED,
    REPLIES_ARRIVE,
    ROUTED,
    judge_answerable,
    judge_dead_lettered,
    judge_replies_arrive,
    judge_routed,
    reply_triggers,
    routes_of,
)
from beckon_operator.objects import ObservedObject

AVAILABLE = "Available"
_WAITS = "calls wait for it and are tried again within their deadline"


def judge_available(tool: Tool, view: NamespaceView, route: Sequence[Condition]) -> Condition:
    """Return the condition Available.

    `route` holds Routed and Answerable; the first that is not True decides.
    """
    missing = next((one for one in route if one.status != "True"), None)
    if missing is not None:
        return Condition(AVAILABLE, missing.status, missing.reason, missing.message)
    if tool.dispatch == "direct":
        return Condition(AVAILABLE, "True", "Direct", "calls need no Broker")
    broker = view.brokers[tool.broker]
    outage = view.judge_once_per_broker(
        AVAILABLE, tool.broker, lambda: _judge_broker_availability(tool.broker, broker, view)
    )
    listeners = view.listeners_for(tool.type)
    unavailable = _all_unavailable([listeners[name] for name in tool.routes])
    # The Broker is named before its Triggers, which are not ready because it is not.
    if unavailable is None or outage.reason == "BrokerUnavailable":
        return outage
    message = f"Trigger {unavailable.trigger.name} is not ready for now ({unavailable.unavailable}); {_WAITS}"
    return Condition(AVAILABLE, "False", "TriggerUnavailable", message)


def _judge_broker_availability(name: str, broker: BrokerView, view: NamespaceView) -> Condition:
    """Return the state of a Broker and its reply Triggers. All tools of the Broker share it."""
    if broker.ready is None or broker.ready.status != "True":
        why = broker.ready.words if broker.ready else f"no condition {READY}"
        message = f"Broker {name} is not ready for now ({why}); {_WAITS}"
        return Condition(AVAILABLE, "False", "BrokerUnavailable", message)
    unavailable = _all_unavailable(reply_triggers(name, view))
    if unavailable is not None:
        called = f"Trigger {unavailable.trigger.name}, which brings replies,"
        message = f"{called} is not ready for now ({unavailable.unavailable}); replies wait for it"
        return Condition(AVAILABLE, "False", "ReplyTriggerUnavailable", message)
    return Condition(AVAILABLE, "True", AVAILABLE, "Broker and Triggers are ready")


def _all_unavailable(listeners: Sequence[Listener]) -> Listener | None:
    """Return the first Trigger if all are unavailable, else `None`."""
    return listeners[0] if listeners and all(one.unavailable for one in listeners) else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The content of the Tool of an EventType.

    The conditions are in the order of the contract, Ready last. `routes` are the Triggers of its calls.
    `last_ready` is the Broker and the Triggers of its route that have been ready in their present version.
    """

    event_type: Resource
    spec: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    routes: tuple[CallRoute, ...] = ()
    last_ready: tuple[ObjectVersion, ...] = ()

    @property
    def ready(self) -> Condition:
        """The condition Ready."""
        return self.conditions[-1]


@dataclass(frozen=True, slots=True)
class UndescribedEventType:
    """An EventType without a Tool because its description is missing. The message says how to add one."""

    event_type: Resource
    message: str


@dataclass(frozen=True, slots=True)
class _Judged:
    """An EventType with all the inputs of its verdict."""

    entry: Entry
    observed: ObservedObject
    verdict: Verdict


class NamespaceJudge:
    """Judges the EventTypes of one namespace; recomputes only changed ones."""

    def __init__(self) -> None:
        self._reader = EntryReader()
        self._judged: dict[str, _Judged] = {}
        self._view: NamespaceView | None = None
        # EventTypes whose author forgot the description, by name; other skipped ones are no mistake.
        self.undescribed: Mapping[str, UndescribedEventType] = {}

    def judge_event_types(
        self,
        event_types: Iterable[ObservedObject],
        view: NamespaceView,
        touched: Collection[str] | None = None,
    ) -> dict[str, Verdict]:
        """Return the verdicts by EventType name; skipped EventTypes have none.

        `touched` are the types in the filters of all Triggers that differ from the last time, `None` if any
        may differ. A verdict with the same result is the same object as before.
        """
        by_key = {one.resource.key: one for one in event_types}
        resources = {key: one.resource for key, one in by_key.items()}
        entries = self._reader.read(resources, view.router, touched)
        self.undescribed = {
            entry.resource.name: UndescribedEventType(entry.resource, entry.declaration.message)
            for entry in entries
            if isinstance(entry.declaration, Skipped) and entry.declaration.reason == NO_DESCRIPTION
        }
        # What a Trigger is to a tool shows in its entry, unless the Trigger is one for any type.
        reusable, self._view = touched is not None or view is self._view, view
        self._judged = {
            entry.resource.name: self._judge_one(entry, by_key[entry.resource.key], view, reusable=reusable)
            for entry in entries
            if not isinstance(entry.declaration, Skipped)
        }
        return {name: one.verdict for name, one in self._judged.items()}

    def _judge_one(
        self, entry: Entry, observed: ObservedObject, view: NamespaceView, *, reusable: bool
    ) -> _Judged:
        known = self._judged.get(entry.resource.name)
        if known is None:
            return _Judged(entry, observed, judge_entry(entry, observed, view))
        if reusable and known.entry is entry and known.observed is observed:
            return known
        # Most of what changes is a Trigger, and reading the parameters is most of the work.
        declared = known.verdict.conditions[0] if _declares_the_same(known, entry, observed) else None
        verdict = judge_entry(entry, observed, view, declared)
        return _Judged(entry, observed, known.verdict if known.verdict == verdict else verdict)


def judge_entry(
    entry: Entry, one: ObservedObject, view: NamespaceView, declared: Condition | None = None
) -> Verdict:
    """Return the verdict on one EventType; `declared` may be known already."""
    declared = declared or judge_declared(entry, one.history, remembered=one.remembered)
    tool = entry.tool
    if tool is None or declared.status != "True":
        names = (ROUTED, ANSWERABLE, AVAILABLE, REPLIES_ARRIVE, DEAD_LETTERED)
        unknown = [_unknown_condition(name) for name in names]
        return _make_verdict(one.resource, _bare_spec(one.resource), [declared, *unknown])
    routed, tool = judge_routed(entry, tool, view)
    answerable = judge_answerable(tool, view)
    available = judge_available(tool, view, (routed, answerable))
    arriving = judge_replies_arrive(tool, view)
    dead_lettered = judge_dead_lettered(tool, view)
    conditions = [declared, routed, answerable, available, arriving, dead_lettered]
    verdict = _make_verdict(one.resource, tool_spec(tool), conditions)
    routes = routes_of(tool, view)
    return replace(verdict, routes=routes, last_ready=_last_ready(tool, routes, view))


def _last_ready(tool: Tool, routes: Iterable[CallRoute], view: NamespaceView) -> tuple[ObjectVersion, ...]:
    if tool.dispatch == "direct":
        return ()
    replies = (one.trigger.name for one in reply_triggers(tool.broker, view))
    names = sorted({*(one.trigger for one in routes), *replies})
    versions = (view.last_ready.broker_version(tool.broker), *map(view.last_ready.trigger_version, names))
    return tuple(version for version in versions if version is not None)


def _declares_the_same(known: _Judged, entry: Entry, observed: ObservedObject) -> bool:
    """Return True if the inputs of the condition Declared are unchanged."""
    before, names = known.entry, [each.tool.name if each.tool else "" for each in (known.entry, entry)]
    return (
        before.declaration is entry.declaration
        and before.rivals == entry.rivals
        and names[0] == names[1]
        and known.observed.says_the_same_as(observed)
    )


def _make_verdict(resource: Resource, spec: Mapping[str, Any], conditions: list[Condition]) -> Verdict:
    return Verdict(resource, spec, (*conditions, ready_from(conditions)))


def _bare_spec(resource: Resource) -> dict[str, Any]:
    """Return the spec of an undeclared Tool: only the type. `kubectl get tools` shows it."""
    event_type = resource.spec.get("type")
    return {"type": event_type} if isinstance(event_type, str) and event_type else {}


def _unknown_condition(name: str) -> Condition:
    return Condition(name, "Unknown", "NotDeclared", "judged once the EventType is declared")
