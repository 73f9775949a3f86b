"""The status of an Agent, and the probes of its model."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beckon_agent.agents.configured import INVALID, AgentEntry, ConfiguredAgent
from beckon_agent.agents.model_pool import ModelPool, ModelSpec, SharedModel
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelAuthError, ModelError, ModelRefused
from beckon_contract.kubernetes_objects import READY, Condition, Status
from beckon_contract.resources.agent_resource import AgentResource

logger = logging.getLogger(__name__)

_JITTER = (0.8, 1.2)  # so that replicas do not probe their models in the same moment
_PATIENCE = 10.0
_SHOWN = 5  # names of models in a message
_SHOWN_NAME = 80  # characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a probe, as values of a condition.

    `detail` holds none of the server's own words except names of models: the author of an Agent chooses
    the server, and must not read its answers to this service through the status.
    """

    status: Status
    reason: str
    detail: str = ""


NOT_PROBED = Verdict("Unknown", "NotProbed", "the model has not been probed yet")


class Probes:
    """Probes every model in use, each once per `period` seconds.

    `changed` is called with a model when its verdict changes.
    """

    def __init__(self, pool: ModelPool, changed: Callable[[ModelSpec], None], period: float) -> None:
        self._pool = pool
        self._changed = changed
        self._period = period
        self._verdicts: dict[ModelSpec, Verdict] = {}
        self._tasks: dict[ModelSpec, asyncio.Task[None]] = {}

    def find_verdict(self, spec: ModelSpec) -> Verdict:
        """Return the result of a model's last probe."""
        return self._verdicts.get(spec, NOT_PROBED)

    def follow_models(self) -> None:
        """Start to probe models newly in use, and stop for unused ones."""
        used = {shared.spec: shared for shared in self._pool.open_models()}
        for spec in self._tasks.keys() - used.keys():
            self._tasks.pop(spec).cancel()
            self._verdicts.pop(spec, None)
        for spec in used.keys() - self._tasks.keys():
            self._tasks[spec] = asyncio.create_task(self._ask_again_and_again(used[spec]))

    async def close(self) -> None:
        """Stop all probes."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _ask_again_and_again(self, shared: SharedModel) -> None:
        while True:
            try:
                verdict = await read_verdict(shared.client, shared.spec.name)
            except Exception:  # a mistake of ours is no verdict on the model
                logger.exception("probing a model failed")
                verdict = NOT_PROBED
            if verdict != self.find_verdict(shared.spec):
                self._verdicts[shared.spec] = verdict
                self._changed(shared.spec)
            await asyncio.sleep(self._period * random.uniform(*_JITTER))  # noqa: S311  # jitter is no secret


async def read_verdict(client: ModelClient, name: str) -> Verdict:
    """Probe a server for its answer, its key and a model.

    For the name `""` any model counts: the server's first is used.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            names = await client.list_models()
            if name and not _is_listed(name, names) and not await client.has_model(name):
                return _missing_model(name, names)
    except ModelAuthError:
        return Verdict("False", "Unauthorized", "the server does not accept the key")
    except ModelRefused as error:
        return Verdict(
            "Unknown", "NoModelList", f"the server answers {error.status} to a request for its models"
        )
    except ModelError as error:
        if error.status is not None:
            return Verdict("False", "Unavailable", f"the server answers {error.status}")
        return Verdict("False", "Unreachable", "the server cannot be reached")
    except TimeoutError:
        return Verdict("False", "Unreachable", f"the server gives no answer within {_PATIENCE:g} seconds")
    if not names:
        return Verdict("Unknown", "NoModelList", "the server lists no model")
    return Verdict("True", "Answers")


def _is_listed(name: str, names: Sequence[str]) -> bool:
    """Return True if a list has a model. Some servers add a tag (`NAME:TAG`) or a folder (`FOLDER/NAME`)."""
    return any(one == name or one.startswith(f"{name}:") or one.endswith(f"/{name}") for one in names)


def _missing_model(name: str, names: Sequence[str]) -> Verdict:
    if not names:
        return Verdict("Unknown", "NoModelList", "the server lists no model")
    shown = ", ".join(one[:_SHOWN_NAME] for one in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return Verdict("False", "NoSuchModel", f"the server has no model {name!r}; it has {shown}")


ACCEPTED = "Accepted"
MODEL_ANSWERS = "ModelAnswers"

_CURES = {
    "Unreachable": "check spec.model.baseURL, and that a NetworkPolicy lets the agent service reach it",
    "Unavailable": "look at that server",
    "NoSuchModel": "set spec.model.name to a model of that server",
    "NoModelList": "check that spec.model.baseURL is the address before /chat/completions, often with /v1",
}


def status_of(entry: AgentEntry, own: ConfiguredAgent, verdict: Verdict) -> dict[str, Any]:
    """Return the desired status of an Agent.

    `verdict` is on its model. Every replica computes the same status, so nothing in it may be particular
    to this process.
    """
    conditions = _to_conditions(entry, verdict)
    return {
        "observedGeneration": entry.generation,
        "tools": len(entry.tools.current.tools) if entry.tools is not None else 0,
        "model": _model_text(entry.written, own) if entry.written is not None else "",
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "observedGeneration": entry.generation,
                "lastTransitionTime": _transition_time(condition, entry.status.get("conditions")),
            }
            for condition in conditions
        ],
    }


def is_different(wanted: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Return True if a status has to be written. Changed times of its conditions do not count."""
    return _without_times(wanted) != _without_times(stored)


def _to_conditions(entry: AgentEntry, verdict: Verdict) -> Sequence[Condition]:
    trouble = entry.trouble
    if trouble is not None and trouble.reason == INVALID:
        accepted = Condition(ACCEPTED, "False", trouble.reason, trouble.message)
        answers = Condition(MODEL_ANSWERS, "Unknown", "NotProbed", "the Agent has mistakes; mend them first")
        return accepted, answers, _ready_condition(accepted, answers)
    accepted = Condition(ACCEPTED, "True", "Accepted")
    if trouble is not None:
        known: Status = "Unknown" if trouble.reason == "KeyNotRead" else "False"
        answers = Condition(MODEL_ANSWERS, known, trouble.reason, trouble.message)
    else:
        cure = _key_cure(entry.written) if verdict.reason == "Unauthorized" else _CURES.get(verdict.reason)
        message = f"{verdict.detail}; {cure}" if cure else verdict.detail
        answers = Condition(MODEL_ANSWERS, verdict.status, verdict.reason, message)
    return accepted, answers, _ready_condition(accepted, answers)


def _key_cure(written: AgentResource | None) -> str:
    if written is None or written.model.base_url is None:
        return "the key is the agent service's own; its operator has to change it"
    if written.model.api_key is None:
        return "put the key into a Secret and name it in spec.model.apiKeySecret"
    return f"put a valid key into the Secret {written.model.api_key.name}"


def _ready_condition(*conditions: Condition) -> Condition:
    """Return the Ready condition: the first one not True decides."""
    for condition in conditions:
        if condition.status != "True":
            return Condition(READY, condition.status, condition.reason, condition.message)
    return Condition(READY, "True", "Ready")


def _model_text(written: AgentResource, own: ConfiguredAgent) -> str:
    """Return the model and dialect as configured.

    Those chosen by a server or a fallback may differ by replica.
    """
    reference = written.model
    inherited = reference.base_url is None
    name = reference.name or (own.model.name if inherited else "") or "the first of its server"
    dialect = reference.dialect or (own.model.dialect if inherited else "auto")
    return f"{name} ({dialect})"


def _transition_time(condition: Condition, before: object) -> str:
    """Return the time of the last transition of a condition."""
    for each in before if isinstance(before, list) else ():
        if isinstance(each, Mapping) and (each.get("type"), each.get("status")) == (
            condition.type,
            condition.status,
        ):
            known = each.get("lastTransitionTime")
            if isinstance(known, str):
                return known
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _without_times(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = status.get("conditions")
    unchanged = [
        {name: value for name, value in condition.items() if name != "lastTransitionTime"}
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, Mapping)
    ]
    return {**status, "conditions": unchanged}
