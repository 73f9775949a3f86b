"""Statuses in Knative's form: conditions with their times, `Ready` as their sum, and patches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition

MARK = "beckon.dev/broker-class"
"""The status annotation of a Trigger that this operator has judged."""


def true_condition(name: str, reason: str = "", message: str = "") -> Condition:
    """Return a condition that is met; Knative gives those no reason, where there is nothing to say."""
    return Condition(name, "True", reason, message)


def sum_up(conditions: Sequence[Condition]) -> Condition:
    """Return the condition `Ready`: the first that is False decides, then the first that is Unknown.

    As in Knative, it has the reason and the message of the condition that decides.
    """
    for status in ("False", "Unknown"):
        for one in conditions:
            if one.status == status:
                return Condition(READY, one.status, one.reason, one.message)
    return true_condition(READY)


def build_status(
    observed: Resource, conditions: Sequence[Condition], fields: Mapping[str, Any], now: str
) -> dict[str, Any]:
    """Return the status of an object; a field that is `None` is removed.

    The time of a condition changes with its status alone. `now` is an RFC 3339 time in UTC.
    """
    everything = [sum_up(conditions), *conditions]
    return {
        "observedGeneration": observed.generation,
        "conditions": sorted(
            (_to_document(one, observed, now) for one in everything),
            key=lambda document: str(document["type"]),
        ),
        **fields,
    }


def changed_fields(observed: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the wanted status that differ, as a merge patch of the status."""
    return {
        name: value
        for name, value in wanted.items()
        if (_lacks(observed, name, value) if isinstance(value, Mapping) else observed.get(name) != value)
    }


def is_condition_true(status: Mapping[str, Any], name: str) -> bool:
    """Return True if a status has this condition, and it is met."""
    state = condition(status, name)
    return state is not None and state.status == "True"


def find_false(conditions: Iterable[Condition]) -> Condition | None:
    """Return the first condition that is not met, if any."""
    return next((one for one in conditions if one.status == "False"), None)


def _lacks(observed: Mapping[str, Any], name: str, value: Mapping[str, Any]) -> bool:
    """Return True if a mapping in a status differs in one of these entries."""
    actual = observed.get(name)
    return not isinstance(actual, Mapping) or any(actual.get(key) != one for key, one in value.items())


def _to_document(one: Condition, observed: Resource, now: str) -> dict[str, Any]:
    document = {"type": one.type, "status": one.status}
    document |= {"reason": one.reason} if one.reason else {}
    document |= {"message": one.message} if one.message else {}
    return {**document, "lastTransitionTime": _time_before(one, observed) or now}


def _time_before(one: Condition, observed: Resource) -> str:
    """Return the time of a condition whose status stays as it is, "" if there is none."""
    written = observed.status.get("conditions")
    for each in written if isinstance(written, list) else ():
        if isinstance(each, Mapping) and each.get("type") == one.type and each.get("status") == one.status:
            return str(each.get("lastTransitionTime") or "")
    return ""
