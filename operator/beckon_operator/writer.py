"""Brings Tools to their wanted state with a bounded number of requests.

An unchanged Tool costs no request.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from beckon_operator.cluster import Cluster
from beckon_operator.desired_state import Action, DesiredState
from beckon_operator.k8s_events import EventRecorder, event_on_undescribed, events_of
from beckon_operator.keyed_queue import STALE
from beckon_operator.metrics import Metrics
from beckon_operator.objects import EVENT_TYPES, TOOLS
from beckon_operator.tools import ToolSeen, ToolWanted, tool_document
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Refused, object_path

logger = logging.getLogger(__name__)


class Writer:
    """Creates, replaces and deletes Tools while this replica leads.

    A Tool that cannot be written is left as it is, and tried again after a pause.
    """

    def __init__(
        self,
        api: ApiClient,
        cluster: Cluster,
        desired: DesiredState,
        leads: Callable[[], bool],
        recorder: EventRecorder,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._desired = desired
        self._leads = leads
        self._recorder = recorder
        self._foreign: set[tuple[str, str]] = set()

    async def write_queued(self, at_once: int, metrics: Metrics) -> None:
        """Write the queued Tools, `at_once` at a time, until cancelled."""

        async def write(key: tuple[str, str]) -> None:
            metrics.queued.set(len(self._desired.queue))
            started = time.monotonic()
            action = await self._update_tool(*key)
            metrics.writes.labels(action.value).inc()
            metrics.writing.observe(time.monotonic() - started)

        await self._desired.queue.write_items(
            write,
            at_once=at_once,
            leads=self._leads,
            what="Tool",
            failures=metrics.failures.labels("write"),
        )

    async def _update_tool(self, namespace: str, name: str) -> Action:
        """Bring one Tool to its wanted state; return the action. Raises the error that prevented it."""
        action = self._desired.next_action(namespace, name)
        tool = self._desired.wanted_tool(namespace, name)
        if action is Action.FOREIGN:
            self._warn_foreign(namespace, name)
        elif pause := self._desired.seconds_to_settle(namespace, name):
            self._desired.queue.put_later((namespace, name), pause)
            return Action.NOTHING
        elif action is Action.CREATE and tool is not None and not await self._event_type_exists(tool):
            return Action.NOTHING
        elif action is not Action.NOTHING:
            await self._take_action(action, namespace, name)
        return action

    async def _take_action(self, action: Action, namespace: str, name: str) -> None:
        tool = self._desired.wanted_tool(namespace, name)
        seen = self._desired.tools.find_object(namespace, name)
        undescribed = self._desired.undescribed_event_type(namespace, name)
        if action is Action.EXPLAIN and undescribed is not None:
            self._recorder.queue_events([event_on_undescribed(undescribed)])
            self._desired.mark_explained(undescribed.event_type.uid)
            return
        try:
            if tool is not None:
                await self._write_tool(tool, seen)
            elif seen is not None:
                await self._api.delete(_tool_path(namespace, name), seen.uid, str(seen.version))
        except Refused as error:
            # Nothing can be created in a namespace that is gone; a Tool that exists can be read.
            if error.status in STALE and not (action is Action.CREATE and error.status == 404):
                await self._read_again(namespace, name)
            raise

    async def _event_type_exists(self, tool: ToolWanted) -> bool:
        """Return whether the EventType of a Tool exists; if it does not, record its deletion.

        Kubernetes deletes a Tool with its EventType. The operator may see the deletion of the Tool first, and
        must not create it again.
        """
        event_type = tool.verdict.event_type
        namespace, name, uid = event_type.namespace, event_type.name, event_type.uid
        stored = await self._api.find(
            object_path(event_type.api_version, EVENT_TYPES.plural, namespace, name)
        )
        if stored is not None and stored["metadata"]["uid"] == uid:
            return True
        self._cluster.observe_deletion(EVENT_TYPES, {"namespace": namespace, "name": name, "uid": uid})
        return False

    async def _write_tool(self, tool: ToolWanted, seen: ToolSeen | None) -> None:
        event_type = tool.verdict.event_type
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        content = tool_document(tool, seen, now)
        if seen is None:
            stored = await self._api.create(_tool_path(event_type.namespace), content)
        else:
            stored = await self._api.replace(_tool_path(event_type.namespace, event_type.name), content)
        metadata = stored["metadata"]
        self._desired.mark_written(tool, metadata["uid"], int(metadata["resourceVersion"]))
        self._cluster.observe_tool(stored)
        self._recorder.queue_events(events_of(tool, seen, metadata["uid"]))

    async def _read_again(self, namespace: str, name: str) -> None:
        stored = await self._api.find(_tool_path(namespace, name))
        if stored is not None:
            self._cluster.observe_tool(stored)
        elif seen := self._desired.tools.find_object(namespace, name):
            self._cluster.observe_deletion(TOOLS, {"namespace": namespace, "name": name, "uid": seen.uid})

    def _warn_foreign(self, namespace: str, name: str) -> None:
        """Warn once about a Tool without an EventType as its owner."""
        if (namespace, name) not in self._foreign:
            self._foreign.add((namespace, name))
            logger.warning(
                "Tool %s/%s has another owner and is left alone; delete it to get the one of its EventType",
                namespace,
                name,
            )


def _tool_path(namespace: str, name: str = "") -> str:
    return object_path(TOOLS.api_version, TOOLS.plural, namespace, name)
