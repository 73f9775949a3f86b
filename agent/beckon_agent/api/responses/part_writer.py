"""Writes the events and items of one part of a response."""

from typing import Any

from beckon_agent.api.responses import item_types
from beckon_agent.api.responses.documents import State, item_id, response_document
from beckon_agent.api.responses.item_types import ItemTypes
from beckon_agent.api.responses.output import OutputItem
from beckon_agent.api.responses.text_parts import OpenText
from beckon_agent.core.records import StoredRun

Event = dict[str, Any]
"""One event of the API, with its `type` and `sequence_number`."""

HIDDEN = -1
"""The index of a call that the response does not show."""


class PartWriter:
    """The items of a part of a run, and the events about them.

    Parts before the wanted one are counted, and not written.
    """

    def __init__(self, run: StoredRun, part: int, types: ItemTypes) -> None:
        self._run = run
        self._wanted = part
        self._types = types
        self._part = 1
        self._events: list[Event] = []
        self._added: list[OutputItem] = []
        self._void: set[int] = set()
        self._sequence = 0
        self._items = 0

    @property
    def output(self) -> list[OutputItem]:
        """The items of the response so far."""
        return [item for index, item in enumerate(self._added) if index not in self._void]

    @property
    def is_reached(self) -> bool:
        """True if the run has reached this part."""
        return self._part >= self._wanted

    def next_id(self, kind: str) -> str:
        """Return the id of the next item."""
        self._items += 1
        return item_id(kind, self._run.id, self._items)

    def add_item(self, item: OutputItem) -> int:
        """Emit the beginning of an item; return its index."""
        self._added.append(item)
        index = len(self._added) - 1
        self.emit_event("response.output_item.added", output_index=index, item=item)
        return index

    def finish_item(self, index: int, item: OutputItem) -> None:
        """Emit the end of an item."""
        if index == HIDDEN:
            return
        self._added[index] = item
        self.emit_event("response.output_item.done", output_index=index, item=item)

    def emit_call(self, kind: str, index: int, **members: object) -> None:
        """Emit an event between the start and the end of a call; only OpenAI has such."""
        if self._types == "openai":
            self.emit_item(kind, index, **members)

    def emit_item(self, kind: str, index: int, **members: object) -> None:
        """Emit an event of an item."""
        self.emit_event(kind, item_id=self._added[index]["id"], output_index=index, **members)

    def emit_part(self, kind: str, growing: OpenText, **members: object) -> None:
        """Emit an event of a growing text."""
        self.emit_event(kind, item_id=growing.id, output_index=growing.index, content_index=0, **members)

    def emit_response(self, kind: str, state: State) -> None:
        """Emit an event with the whole response."""
        if self._part == self._wanted:
            document = response_document(self._run, self._part, state, self.output)
            self.emit_event(kind, response=document)

    def emit_event(self, kind: str, **members: object) -> None:
        """Emit an event, if its part is the wanted one."""
        if self._part == self._wanted:
            kind = item_types.event_type(kind, self._types)
            self._events.append({"type": kind, "sequence_number": self._sequence, **members})
            self._sequence += 1
