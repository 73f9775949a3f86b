"""The explanation of a tool: its conditions, and the route of a call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from beckon_contract.catalogue.diagnostics import Finding
from beckon_contract.kubernetes_objects import Condition

StationKind = Literal["EventType", "Broker", "Trigger", "Service", "Reply"]
StationState = Literal["ok", "broken", "unknown"]

DECLARED, ROUTED, ANSWERABLE, DEAD_LETTERED = "Declared", "Routed", "Answerable", "DeadLettered"
AVAILABLE, REPLIES_ARRIVE = "Available", "RepliesArrive"

# Where a call stops, by the reason of the condition Routed; with any other it is the Trigger.
_STOPS: Mapping[str, StationKind] = {
    "BrokerNotFound": "Broker",
    "BrokerNotReady": "Broker",
    "ServiceNotFound": "Service",
    "ServiceNotReady": "Service",
    "NoReference": "Service",
    "AddressUnknown": "Service",
}

# Where a call waits through an outage, by the reason of the condition Available.
_WAITS: Mapping[str, StationKind] = {
    "BrokerUnavailable": "Broker",
    "TriggerUnavailable": "Trigger",
    "ReplyTriggerUnavailable": "Reply",
}


@dataclass(frozen=True, slots=True)
class Station:
    """One object on the route of a call.

    `detail` says what it does there, or what is wrong; `note` how it delivers.
    """

    kind: StationKind
    name: str
    state: StationState
    detail: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CallRoute:
    """A Trigger of a call and its service, as far as known.

    `filter` describes the Trigger's filter; `problem` says why its service cannot be reached; `delivery` how
    it delivers, in words.
    """

    trigger: str
    filter: str = ""
    service: str = ""
    address: str = ""
    problem: str = ""
    delivery: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The conditions, the route and the findings of one EventType.

    The conditions are in the order in which they are judged, Ready last.
    """

    namespace: str
    event_type: str
    type: str
    description: str
    conditions: Sequence[Condition]
    route: Sequence[Station]
    findings: Sequence[Finding] = ()


def route_stations(
    event_type: str,
    kind: str,
    broker: str,
    routes: Sequence[CallRoute],
    conditions: Sequence[Condition],
    *,
    direct: bool,
) -> list[Station]:
    """Return the stations of a call.

    Behind the station at which the call stops, the state of all others is `unknown`.
    """
    judged = {condition.type: condition for condition in conditions}
    stops, why = _find_stop(judged)
    stations = [Station("EventType", event_type, "ok", f"type {kind}" if kind else "")]
    if not direct:
        stations.append(Station("Broker", broker, "ok"))
        stations += [
            Station("Trigger", route.trigger, "ok", route.filter, route.delivery) for route in routes
        ] or [Station("Trigger", "", "unknown", "")]
    stations += _service_stations(routes)
    stations.append(_reply_station(judged.get(ANSWERABLE), direct=direct))
    return _mark_stop(stations, stops, why)


def delivery_words(retries: int | None, dead_letters: bool | None) -> str:
    """Return a Trigger's delivery in words, as far as known."""
    if retries is None:
        return ""
    times = f"delivers up to {retries + 1} times" if retries else "delivers once"
    if dead_letters is None:
        return times
    return f"{times}, then to the dead-letter sink" if dead_letters else f"{times}, then gives up"


def _service_stations(routes: Sequence[CallRoute]) -> list[Station]:
    conditions = {
        (
            route.service,
            route.problem or route.address,
            "broken" if route.problem else "ok",
        ): None
        for route in routes
        if route.service or route.problem
    }
    stations: list[Station] = []
    for name, detail, state in conditions:
        stations.append(Station("Service", name, "broken" if state == "broken" else "ok", detail))
    return stations or [Station("Service", "", "unknown", "")]


def _reply_station(answerable: Condition | None, *, direct: bool) -> Station:
    if direct:
        return Station("Reply", "in the answer", "ok", "the reply comes in the answer to the call")
    if answerable is None or answerable.status == "Unknown":
        return Station("Reply", "", "unknown", answerable.message if answerable else "")
    state: StationState = "ok" if answerable.status == "True" else "broken"
    return Station("Reply", answerable.reason, state, answerable.message)


def _find_stop(judged: Mapping[str, Condition]) -> tuple[StationKind | None, str]:
    declared, routed = judged.get(DECLARED), judged.get(ROUTED)
    if declared is not None and declared.status == "False":
        return "EventType", declared.message
    if routed is not None and routed.status == "False":
        return _STOPS.get(routed.reason, "Trigger"), routed.message
    available = judged.get(AVAILABLE)
    if available is not None and available.status == "False":
        return _WAITS.get(available.reason), available.message
    arriving = judged.get(REPLIES_ARRIVE)
    if arriving is not None and arriving.status == "False":
        return "Reply", arriving.message
    return None, ""


def _mark_stop(stations: Sequence[Station], stops: StationKind | None, why: str) -> list[Station]:
    """Mark the stop of a call as broken, everything behind it as unknown."""
    if stops is None:
        return list(stations)
    if stops == "Trigger" and any(one.kind == "Service" and one.state == "broken" for one in stations):
        stops = "Service"  # a Trigger is not ready because of what it leads to
    marked: list[Station] = []
    order: list[StationKind] = ["EventType", "Broker", "Trigger", "Service", "Reply"]
    for one in stations:
        place = order.index(one.kind) - order.index(stops)
        if place < 0:
            marked.append(one)
        elif place == 0:
            detail = one.detail if one.state == "broken" else why
            marked.append(Station(one.kind, one.name, "broken", detail or why, one.note))
        else:
            marked.append(Station(one.kind, one.name, "unknown", "a call does not come this far"))
    return marked
