"""`Tool` objects: the wanted content, the seen content, and their comparison."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beckon_contract.knative.eventtypes import GROUP as EVENTING
from beckon_contract.knative.eventtypes import KIND as EVENT_TYPE
from beckon_contract.knative.routes import FIELD as ROUTES
from beckon_contract.knative.routes import route_document
from beckon_contract.kubernetes_objects import Condition
from beckon_contract.resources import tools
from beckon_operator.conditions.last_ready import FIELD as LAST_READY
from beckon_operator.conditions.last_ready import ObjectVersion, read_last_ready, version_document
from beckon_operator.conditions.path import REPLIES_ARRIVE, read_probe_result
from beckon_operator.conditions.verdicts import Verdict
from beckon_operator.objects import version_of

_NOT_COPIED = ("knative.dev", "kubectl.kubernetes.io")


@dataclass(frozen=True, slots=True)
class SeenCondition:
    """A condition of a Tool; `since` is its lastTransitionTime."""

    status: str
    reason: str
    since: str


@dataclass(frozen=True, slots=True)
class ToolSeen:
    """A Tool as last seen, with a digest of its content.

    `owner` is the uid of the EventType that it was made for, empty if it has another owner. `preserved` is
    metadata of the Tool that a new version keeps. `last_ready` lists the Broker and the Triggers that were
    ready, from its status. `probed` is its Broker with the result of the last probe. `answering` is the
    condition that agents write.
    """

    namespace: str
    name: str
    uid: str
    version: int
    digest: bytes
    owner: str
    leaving: bool = False
    conditions: Mapping[str, SeenCondition] = field(default_factory=dict)
    preserved: Mapping[str, Any] = field(default_factory=dict)
    last_ready: tuple[ObjectVersion, ...] = ()
    probed: tuple[str, bool] | None = None
    answering: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolWanted:
    """The wanted content of the Tool of an EventType."""

    verdict: Verdict
    digest: bytes

    @property
    def owner(self) -> str:
        """The uid of the EventType."""
        return self.verdict.event_type.uid


def wanted_tool(verdict: Verdict) -> ToolWanted:
    """Return the wanted Tool of a verdict."""
    return ToolWanted(verdict, _hash_content(_tool_content(verdict)))


def read_seen(document: Mapping[str, Any]) -> ToolSeen:
    """Read a Tool from the API server, of any author."""
    metadata, status = document["metadata"], _as_mapping(document.get("status"))
    owner: Mapping[str, Any] = next(filter(_is_controller, metadata.get("ownerReferences") or []), {})
    everything = [one for one in status.get("conditions") or [] if isinstance(one, Mapping)]
    conditions = [one for one in everything if one.get("type") != tools.ANSWERING]
    answering = next((one for one in everything if one.get("type") == tools.ANSWERING), None)
    content = {
        "labels": metadata.get("labels") or {},
        "owner": owner,
        "spec": _to_plain(document.get("spec") or {}),
        "eventType": status.get("eventType") or {},
        ROUTES: status.get(ROUTES) or [],
        LAST_READY: status.get(LAST_READY) or [],
        "conditions": [
            {name: value for name, value in one.items() if name != "lastTransitionTime"} for one in conditions
        ],
    }
    return ToolSeen(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        uid=str(metadata.get("uid") or ""),
        version=version_of(metadata),
        digest=_hash_content(content),
        owner=str(owner.get("uid") or ""),
        leaving=bool(metadata.get("deletionTimestamp")),
        conditions={str(one.get("type")): _seen_condition(one) for one in conditions},
        preserved={name: metadata[name] for name in ("annotations", "finalizers") if metadata.get(name)},
        last_ready=read_last_ready(status),
        probed=_read_probed(document.get("spec"), conditions),
        answering=answering,
    )


def tool_document(tool: ToolWanted, seen: ToolSeen | None, now: str) -> dict[str, Any]:
    """Return the Tool to write: new, or the next version.

    A condition keeps the time of its last transition as long as its status does not change.
    """
    event_type = tool.verdict.event_type
    content = _tool_content(tool.verdict)
    metadata = {
        "name": event_type.name,
        "namespace": event_type.namespace,
        "labels": content["labels"],
        "ownerReferences": [content["owner"]],
    }
    if seen is not None:
        metadata |= {**seen.preserved, "resourceVersion": str(seen.version), "uid": seen.uid}
    return {
        "apiVersion": tools.API_VERSION,
        "kind": tools.KIND,
        "metadata": metadata,
        "spec": content["spec"],
        "status": {
            "eventType": content["eventType"],
            "conditions": [
                *(
                    {**one, "lastTransitionTime": _transition_time(one, seen, now)}
                    for one in content["conditions"]
                ),
                *((seen.answering,) if seen is not None and seen.answering is not None else ()),
            ],
            **{name: content[name] for name in (ROUTES, LAST_READY) if content[name]},
        },
    }


def _tool_content(verdict: Verdict) -> dict[str, Any]:
    """Return the content of a Tool, without versions and times."""
    event_type = verdict.event_type
    return {
        "labels": _copy_labels(event_type.labels),
        "owner": {
            "apiVersion": event_type.api_version,
            "kind": EVENT_TYPE,
            "name": event_type.name,
            "uid": event_type.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        },
        "spec": _to_plain(verdict.spec),
        "eventType": {"uid": event_type.uid, "generation": event_type.generation},
        ROUTES: _to_plain([route_document(one) for one in verdict.routes]),
        LAST_READY: [version_document(one) for one in verdict.last_ready],
        "conditions": [_condition_document(condition) for condition in verdict.conditions],
    }


def _transition_time(condition: Mapping[str, str], seen: ToolSeen | None, now: str) -> str:
    known = seen.conditions.get(condition["type"]) if seen else None
    return known.since if known and known.status == condition["status"] and known.since else now


def _seen_condition(condition: Mapping[str, Any]) -> SeenCondition:
    status, reason, since = (
        str(condition.get(name) or "") for name in ("status", "reason", "lastTransitionTime")
    )
    return SeenCondition(status, reason, since)


def _read_probed(spec: object, conditions: list[Mapping[str, Any]]) -> tuple[str, bool] | None:
    """Return the Broker of a Tool with the result of the probe in its conditions."""
    probe = next((_seen_condition(one) for one in conditions if one.get("type") == REPLIES_ARRIVE), None)
    arrive = None if probe is None else read_probe_result(probe.status, probe.reason)
    return None if arrive is None else (str(_as_mapping(spec).get("broker")), arrive)


def _condition_document(condition: Condition) -> dict[str, str]:
    document = {"type": condition.type, "status": condition.status, "reason": condition.reason}
    return {**document, "message": condition.message} if condition.message else document


def _copy_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels for the selection of tools by agents. Labels of Knative and kubectl are left out."""
    return {name: value for name, value in labels.items() if not _is_foreign(name)}


def _is_foreign(label: str) -> bool:
    domain = label.partition("/")[0] if "/" in label else ""
    return any(domain == own or domain.endswith(f".{own}") for own in _NOT_COPIED)


def _is_controller(owner: object) -> bool:
    return (
        isinstance(owner, Mapping)
        and owner.get("kind") == EVENT_TYPE
        and str(owner.get("apiVersion", "")).startswith(f"{EVENTING}/")
        and owner.get("controller") is True
    )


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _to_plain(value: Any) -> Any:
    """Return data as the API server gives it back: 30.0 becomes 30, half a surrogate pair a question mark."""
    match value:
        case Mapping():
            return {_to_plain(name): _to_plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_to_plain(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case _:
            return value


def _hash_content(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
