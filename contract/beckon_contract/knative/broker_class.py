"""The Broker class `Beckon`: its name, and how operator and broker agree that a Trigger is in force.

The operator resolves the addresses of a Trigger and writes them into its status; the broker's pods route by
them. A Trigger is Ready once every ingress does (knative/specs, eventing/control-plane.md, "Trigger
Lifecycle"): the operator sends the state that it wrote to each pod (`POST /in-force`), and the pod answers
with those that it routes by.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from beckon_contract.kubernetes_objects import Resource

_CLASS_ANNOTATION = "eventing.knative.dev/broker.class"
BECKON_CLASS = "Beckon"

IN_FORCE_PATH = "/in-force"
DEDUPLICATION_HEADER = "beckon-deduplication-seconds"
"""The header of a 202 by a broker that stores a call once, if it is posted again within these seconds."""

MAX_STATES = 1000
"""The most Triggers in one request."""
MAX_REQUEST_BYTES = 2048 * MAX_STATES
"""The largest request of so many Triggers; most have fewer than 500 bytes each."""
MAX_WAIT = 5.0
"""The longest wait of one request, in seconds."""

_TEXTS = ("namespace", "name", "uid", "subscriberUri", "deadLetterSinkUri")


class TriggerState(NamedTuple):
    """A Trigger in one version of its spec, with its resolved addresses; "" is no dead-letter sink."""

    namespace: str
    name: str
    uid: str
    generation: int
    subscriber: str
    dead_letter: str = ""


class LogReport(NamedTuple):
    """The log of a broker's process.

    `address` is that of NATS, "" for a log in memory. `problem` is why it takes no events, "" if it does.
    `storage` and `replicas` are those of its streams; "" and 0 if they are not known.
    """

    address: str = ""
    problem: str = ""
    storage: str = ""
    replicas: int = 0


class InForceAnswer(NamedTuple):
    """The Triggers that a process routes by, and the state of its log."""

    states: frozenset[TriggerState]
    log: LogReport


def class_of(broker: Resource) -> str:
    """Return the class of a Broker, "" for the default one of the cluster."""
    return broker.annotations.get(_CLASS_ANNOTATION, "")


def is_of_class(broker: Resource) -> bool:
    """Return True if a Broker is of the class `Beckon`."""
    return class_of(broker) == BECKON_CLASS


def in_force_request(states: Iterable[TriggerState], wait_seconds: float) -> dict[str, Any]:
    """Return the request for these Triggers.

    The answer comes once one more of them is in force, or after `wait_seconds`.
    """
    return {"triggers": [_to_document(state) for state in states], "waitSeconds": wait_seconds}


def read_request(document: object) -> tuple[list[TriggerState], float]:
    """Return the Triggers and the seconds of a request; raise `ValueError` with the first mistake."""
    if not isinstance(document, Mapping):
        raise ValueError("the request is no JSON object")
    triggers, wait = document.get("triggers"), document.get("waitSeconds", 0)
    if not isinstance(triggers, list) or len(triggers) > MAX_STATES:
        raise ValueError(f"triggers must be a list of at most {MAX_STATES}")
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= MAX_WAIT:
        raise ValueError(f"waitSeconds must be a number from 0 to {MAX_WAIT:g}")
    return [_read_state(one) for one in triggers], float(wait)


def in_force_answer(states: Iterable[TriggerState], log: LogReport) -> dict[str, Any]:
    """Return the answer: which of the requested Triggers are in force, and the state of the log."""
    return {"routed": [_to_document(state) for state in states], "log": log._asdict()}


def read_answer(document: object) -> InForceAnswer:
    """Read an answer; raise `ValueError` if it is none."""
    if not isinstance(document, Mapping) or not isinstance(document.get("routed"), list):
        raise ValueError("the answer has no list routed")
    log = document.get("log")
    members = log if isinstance(log, Mapping) else {}
    address, problem, storage = (str(members.get(name) or "") for name in ("address", "problem", "storage"))
    replicas = members.get("replicas")
    report = LogReport(address, problem, storage, replicas if isinstance(replicas, int) else 0)
    return InForceAnswer(frozenset(_read_state(one) for one in document["routed"]), report)


def _to_document(state: TriggerState) -> dict[str, Any]:
    return {
        "namespace": state.namespace,
        "name": state.name,
        "uid": state.uid,
        "generation": state.generation,
        "subscriberUri": state.subscriber,
        "deadLetterSinkUri": state.dead_letter,
    }


def _read_state(document: object) -> TriggerState:
    if not isinstance(document, Mapping):
        raise ValueError("a Trigger must be a JSON object")
    namespace, name, uid, subscriber, dead_letter = (document.get(field, "") for field in _TEXTS)
    generation = document.get("generation")
    if not isinstance(generation, int) or isinstance(generation, bool):
        raise ValueError("generation must be an integer")
    for field, value in zip(_TEXTS, (namespace, name, uid, subscriber, dead_letter), strict=True):
        if not isinstance(value, str):
            raise ValueError(f"{field} must be a string")
    return TriggerState(namespace, name, uid, generation, subscriber, dead_letter)
