"""Kubernetes Events about Tools and EventTypes, for `kubectl describe` and `kubectl events`.

They are notes, not state: their number is limited, and none is worth a retry.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beckon_contract.knative.eventtypes import KIND as EVENT_TYPE
from beckon_contract.knative.eventtypes import NO_DESCRIPTION
from beckon_contract.kubernetes_objects import READY, Condition
from beckon_contract.resources import tools
from beckon_operator.conditions.verdicts import UndescribedEventType
from beckon_operator.metrics import Metrics
from beckon_operator.tools import ToolSeen, ToolWanted
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, Refused, object_path

logger = logging.getLogger(__name__)

_API_VERSION = "events.k8s.io/v1"
_WAITING = 256  # more at once are dropped: a first start with thousands of Tools is no news
_PAUSE = 0.05  # seconds between two: twenty a second
_MAX_NOTE = 1024  # characters, Kubernetes' limit
_MAX_NAME = 253
_DOUBTFUL = frozenset(("ParametersMayBeStale", "NameCollision"))


@dataclass(frozen=True, slots=True)
class EventNote:
    """One Event: the change of an object, by default a Tool."""

    namespace: str
    regarding: str
    uid: str
    type: str
    reason: str
    message: str
    api_version: str = tools.API_VERSION
    kind: str = tools.KIND

    @property
    def name(self) -> str:
        """A name derived from the content, so equal Events are posted once."""
        text = "\n".join((self.uid, self.type, self.reason, self.message))
        ending = "." + hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.regarding[: _MAX_NAME - len(ending)] + ending


def events_of(tool: ToolWanted, before: ToolSeen | None, uid: str) -> list[EventNote]:
    """Return the Events about a written Tool: changes of Ready and Declared.

    Declared is left out if Ready has the same status and reason.
    """
    events = []
    declared, ready = tool.verdict.conditions[0], tool.verdict.ready
    if _has_changed(ready, before):
        events.append(ready)
    if _has_changed(declared, before) and (declared.status, declared.reason) != (ready.status, ready.reason):
        events.append(declared)
    where = tool.verdict.event_type
    return [
        EventNote(
            where.namespace,
            where.name,
            uid,
            "Normal" if one.status == "True" and not _is_doubtful(one) else "Warning",
            one.reason,
            one.message or "the tool can be called",
        )
        for one in events
    ]


def event_on_undescribed(skipped: UndescribedEventType) -> EventNote:
    """Return the Event about an EventType without a Tool. There is no Tool to show a condition."""
    event_type = skipped.event_type
    return EventNote(
        event_type.namespace,
        event_type.name,
        event_type.uid,
        "Warning",
        NO_DESCRIPTION,
        f"no Tool is made of this EventType: {skipped.message}",
        event_type.api_version,
        EVENT_TYPE,
    )


class EventRecorder:
    """Posts Events one after another; drops those it cannot post."""

    def __init__(self, api: ApiClient, metrics: Metrics, identity: str) -> None:
        self._api = api
        self._metrics = metrics
        self._identity = identity
        self._waiting: asyncio.Queue[EventNote] = asyncio.Queue(_WAITING)

    def queue_events(self, notes: list[EventNote]) -> None:
        """Queue Events for posting; drop them if the queue is full."""
        for note in notes:
            try:
                self._waiting.put_nowait(note)
            except asyncio.QueueFull:
                self._metrics.events.labels("dropped").inc()

    async def post_events(self) -> None:
        """Post queued Events, until cancelled."""
        while True:
            note = await self._waiting.get()
            try:
                path = object_path(_API_VERSION, "events", note.namespace)
                await self._api.create(path, self._to_event(note))
            except ApiError as error:
                known = isinstance(error, Refused) and error.status == 409
                self._metrics.events.labels("known" if known else "failed").inc()
                if not known:
                    about = note.kind, note.namespace, note.regarding
                    logger.debug("an Event about %s %s/%s failed: %r", *about, error)
            else:
                self._metrics.events.labels("posted").inc()
            await asyncio.sleep(_PAUSE)

    def _to_event(self, note: EventNote) -> Mapping[str, Any]:
        return {
            "apiVersion": _API_VERSION,
            "kind": "Event",
            "metadata": {"name": note.name, "namespace": note.namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": note.type,
            "reason": note.reason,
            "note": note.message[:_MAX_NOTE],
            "action": "Judged",
            "reportingController": "beckon.dev/operator",
            "reportingInstance": self._identity,
            "regarding": {
                "apiVersion": note.api_version,
                "kind": note.kind,
                "namespace": note.namespace,
                "name": note.regarding,
                "uid": note.uid,
            },
        }


def _has_changed(condition: Condition, before: ToolSeen | None) -> bool:
    known = before.conditions.get(condition.type) if before else None
    return known is None or (known.status, known.reason) != (condition.status, condition.reason)


def _is_doubtful(condition: Condition) -> bool:
    return condition.reason in _DOUBTFUL or (condition.type == READY and condition.reason != READY)
