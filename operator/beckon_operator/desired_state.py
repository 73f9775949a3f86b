"""Wanted Tools, actual Tools, and the queue of those to write."""

import time
from collections.abc import Iterator, Mapping
from enum import Enum

from beckon_contract.kubernetes_objects import READY
from beckon_operator.conditions.verdicts import UndescribedEventType, Verdict
from beckon_operator.keyed_queue import KeyedQueue
from beckon_operator.objects import ObjectStore
from beckon_operator.tools import ToolSeen, ToolWanted

_SETTLING_SECONDS = 1.0


class Action(Enum):
    """The action to bring a Tool to its wanted state.

    A `FOREIGN` Tool is left alone; `EXPLAIN` is an Event about an EventType without a Tool.
    """

    NOTHING = "nothing"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"
    FOREIGN = "foreign"
    EXPLAIN = "explain"


class DesiredState:
    """Wanted and actual Tools by namespace and name, with a queue. The queue holds the Tools that differ."""

    def __init__(self) -> None:
        self.tools: ObjectStore[ToolSeen] = ObjectStore()
        self._wanted: dict[str, Mapping[str, ToolWanted]] = {}
        self._undescribed: dict[str, Mapping[str, UndescribedEventType]] = {}
        self._explained: set[str] = set()
        self.queue: KeyedQueue[tuple[str, str]] = KeyedQueue()
        self._unsettled: dict[tuple[str, str], float] = {}
        # What was written as which version: the API server may store it in other words.
        self._written: dict[str, tuple[int, bytes]] = {}

    def verdicts(self) -> Iterator[Verdict]:
        """Yield every current verdict."""
        for tools in self._wanted.values():
            for tool in tools.values():
                yield tool.verdict

    def wanted_tool(self, namespace: str, name: str) -> ToolWanted | None:
        """Return the wanted state of a Tool, or `None` for no Tool."""
        return self._wanted.get(namespace, {}).get(name)

    def undescribed_event_type(self, namespace: str, name: str) -> UndescribedEventType | None:
        """Return the EventType of this name if it lacks a description."""
        return self._undescribed.get(namespace, {}).get(name)

    def set_wanted(
        self,
        namespace: str,
        tools: Mapping[str, ToolWanted],
        undescribed: Mapping[str, UndescribedEventType] | None = None,
    ) -> None:
        """Set all wanted Tools and undescribed EventTypes of a namespace."""
        before = self._wanted.pop(namespace, {})
        if tools:
            self._wanted[namespace] = tools
        skipped, skipped_before = undescribed or {}, self._undescribed.pop(namespace, {})
        if skipped:
            self._undescribed[namespace] = skipped
        uids = {one.event_type.uid for one in skipped.values()}
        self._explained -= {one.event_type.uid for one in skipped_before.values()} - uids
        known = self.tools.objects_within(namespace)
        same = {name for name, tool in tools.items() if before.get(name) is tool}
        for name in (before.keys() | tools.keys() | known.keys() | skipped.keys()) - same:
            self.queue_tool(namespace, name)

    def mark_explained(self, uid: str) -> None:
        """Record the posting of the Event about an EventType."""
        self._explained.add(uid)

    def mark_written(self, tool: ToolWanted, uid: str, version: int) -> None:
        """Record a written Tool and its stored version."""
        self._written[uid] = version, tool.digest

    def observe_tool_deletion(self, namespace: str, name: str, uid: str) -> None:
        """Drop a deleted Tool, and queue it if it is still wanted."""
        self._written.pop(uid, None)
        if self.tools.drop_object(namespace, name, uid) is not None:
            self.queue_tool(namespace, name)

    def next_action(self, namespace: str, name: str) -> Action:
        """Return the action to bring a Tool to its wanted state."""
        tool, seen = self.wanted_tool(namespace, name), self.tools.find_object(namespace, name)
        if seen is None and tool is None:
            skipped = self.undescribed_event_type(namespace, name)
            explain = skipped is not None and skipped.event_type.uid not in self._explained
            return Action.EXPLAIN if explain else Action.NOTHING
        if seen is None:
            return Action.CREATE
        if not seen.owner:
            return Action.NOTHING if tool is None else Action.FOREIGN
        if seen.leaving:
            return Action.NOTHING
        if tool is None:
            return Action.DELETE
        written = self._written.get(seen.uid) == (seen.version, tool.digest)
        return Action.NOTHING if written or seen.digest == tool.digest else Action.REPLACE

    def seconds_to_settle(self, namespace: str, name: str) -> float:
        """Return the seconds for which the write of a Tool is put off, 0.0 to write it now.

        A Tool that is not ready yet mostly is in a moment, once its Trigger is. Within the first second only
        the last of its states is written.
        """
        key, now = (namespace, name), time.monotonic()
        due = self._unsettled.setdefault(key, now + _SETTLING_SECONDS)
        if due > now and self._may_settle(namespace, name):
            return due - now
        del self._unsettled[key]
        return 0.0

    def _may_settle(self, namespace: str, name: str) -> bool:
        """Return True if a Tool that differs is declared, but neither ready nor offered."""
        tool, seen = self.wanted_tool(namespace, name), self.tools.find_object(namespace, name)
        if tool is None or self.next_action(namespace, name) is Action.NOTHING:
            return False
        if tool.verdict.conditions[0].status != "True" or tool.verdict.ready.status == "True":
            return False
        if seen is None:
            return True
        ready = seen.conditions.get(READY)
        return seen.owner == tool.owner and (ready is None or ready.status != "True")

    def queue_tool(self, namespace: str, name: str) -> None:
        """Queue a Tool if it needs an action."""
        if self.next_action(namespace, name) is not Action.NOTHING:
            self.queue.put((namespace, name))

    def queue_all(self) -> None:
        """Queue every Tool in need of an action."""
        for verdict in list(self.verdicts()):
            self.queue_tool(verdict.event_type.namespace, verdict.event_type.name)
        for seen in list(self.tools):
            self.queue_tool(seen.namespace, seen.name)
        for namespace, names in list(self._undescribed.items()):
            for name in names:
                self.queue_tool(namespace, name)
