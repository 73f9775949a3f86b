"""What becomes of an Agent, written into its status."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from beckon_agent.cluster.probes import Verdict
from beckon_agent.hosting.agents import INVALID, Entry
from beckon_agent.hosting.own import Own
from beckon_contract.agent_resources import AgentResource
from beckon_contract.conditions import READY, Condition, Status

ACCEPTED = "Accepted"
MODEL_ANSWERS = "ModelAnswers"

_CURES = {
    "Unreachable": "check spec.model.baseURL, and that a NetworkPolicy lets the agent service reach it",
    "Unavailable": "look at that server",
    "NoSuchModel": "set spec.model.name to a model of that server",
    "NoModelList": "check that spec.model.baseURL is the address before /chat/completions, often with /v1",
}


def status_of(entry: Entry, own: Own, verdict: Verdict) -> dict[str, Any]:
    """Return the status that an Agent should have; `verdict` is what is known of its model.

    Every replica comes to the same one, so nothing in it may be particular to this process.
    """
    conditions = _conditions(entry, verdict)
    return {
        "observedGeneration": entry.generation,
        "tools": len(entry.tools.current.tools) if entry.tools is not None else 0,
        "model": _model(entry.written, own) if entry.written is not None else "",
        "conditions": [
            {
                "type": found.type,
                "status": found.status,
                "reason": found.reason,
                "message": found.message,
                "observedGeneration": entry.generation,
                "lastTransitionTime": _since(found, entry.status.get("conditions")),
            }
            for found in conditions
        ],
    }


def differs(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a status has to be written; the times of its conditions are no reason to."""
    return _without_times(wanted) != _without_times(found)


def _conditions(entry: Entry, verdict: Verdict) -> Sequence[Condition]:
    trouble = entry.trouble
    if trouble is not None and trouble.reason == INVALID:
        accepted = Condition(ACCEPTED, "False", trouble.reason, trouble.message)
        answers = Condition(MODEL_ANSWERS, "Unknown", "NotAsked", "the Agent has mistakes; mend them first")
        return accepted, answers, _ready(accepted, answers)
    accepted = Condition(ACCEPTED, "True", "Accepted")
    if trouble is not None:
        known: Status = "Unknown" if trouble.reason == "KeyNotRead" else "False"
        answers = Condition(MODEL_ANSWERS, known, trouble.reason, trouble.message)
    else:
        cure = _key_cure(entry.written) if verdict.reason == "Unauthorized" else _CURES.get(verdict.reason)
        message = f"{verdict.detail}; {cure}" if cure else verdict.detail
        answers = Condition(MODEL_ANSWERS, verdict.status, verdict.reason, message)
    return accepted, answers, _ready(accepted, answers)


def _key_cure(written: AgentResource | None) -> str:
    if written is None or written.model.base_url is None:
        return "the key is the agent service's own; whoever runs it has to change it"
    if written.model.api_key is None:
        return "put the key into a Secret and name it in spec.model.apiKeySecret"
    return f"put a valid key into the Secret {written.model.api_key.name}"


def _ready(*conditions: Condition) -> Condition:
    """Return the Ready condition: the first that is not True decides."""
    for found in conditions:
        if found.status != "True":
            return Condition(READY, found.status, found.reason, found.message)
    return Condition(READY, "True", "Ready")


def _model(written: AgentResource, own: Own) -> str:
    """Return the model as it was chosen; what a server or a fallback makes of it may differ by replica."""
    reference = written.model
    inherited = reference.base_url is None
    name = reference.name or (own.model.name if inherited else "") or "the first of its server"
    dialect = reference.dialect or (own.model.dialect if inherited else "auto")
    return f"{name} ({dialect})"


def _since(condition: Condition, before: object) -> str:
    """Return since when a condition has its status."""
    for found in before if isinstance(before, list) else ():
        if isinstance(found, Mapping) and (found.get("type"), found.get("status")) == (
            condition.type,
            condition.status,
        ):
            known = found.get("lastTransitionTime")
            if isinstance(known, str):
                return known
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _without_times(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = status.get("conditions")
    kept = [
        {name: value for name, value in found.items() if name != "lastTransitionTime"}
        for found in (conditions if isinstance(conditions, list) else ())
        if isinstance(found, Mapping)
    ]
    return {**status, "conditions": kept}
