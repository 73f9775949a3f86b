"""The events of one call in both directions, recorded for later inspection."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from beckon_agent.core.records import Exchanged
from beckon_contract.cloudevents.events import CloudEvent, to_structured
from beckon_contract.correlation import hide_tokens, looks_like_token
from beckon_contract.yamltext import NotReadable, check_depth

MAX_STORED = 262_144  # bytes of data; of more the attributes are kept, and the result of the call

TOKEN = "(token)"  # noqa: S105  # written in place of a token
_AS_IT_IS = frozenset(("id", "source", "type", "data", "data_base64"))

Document = Mapping[str, Any]


@dataclass(slots=True)
class RecordedEvents:
    """The events of one call so far: its own, and its reply.

    `reply` may hold a problem document instead. `confirm` sends the receipt for the stored reply; it returns
    at once.
    """

    call: Document | None = None
    reply: Document | None = None
    confirm: Callable[[], None] | None = None

    def to_exchanged(self, event_id: str, name: str) -> Exchanged:
        """Return the events in the form of the store."""
        return Exchanged(event_id, name, self.call, self.reply)


_current: ContextVar[RecordedEvents | None] = ContextVar("exchanged", default=None)


@contextmanager
def recording_events() -> Iterator[RecordedEvents]:
    """Record the events sent and received by this task for one call."""
    noted = RecordedEvents()
    token = _current.set(noted)
    try:
        yield noted
    finally:
        _current.reset(token)


def record_call(event: CloudEvent) -> None:
    """Record the event of an outgoing call."""
    if (noted := _current.get()) is not None:
        noted.call = event_document(event)


def record_reply(event: CloudEvent) -> None:
    """Record the received reply."""
    if (noted := _current.get()) is not None:
        noted.reply = event_document(event)


def record_receipt(confirm: Callable[[], None]) -> None:
    """Record the function to confirm the stored reply."""
    if (noted := _current.get()) is not None:
        noted.confirm = confirm


def record_problem(problem: Mapping[str, object]) -> None:
    """Record the problem document received in place of a reply."""
    if (noted := _current.get()) is not None and problem:
        noted.reply = {"problem": shown_document(problem)}


def shown_document(value: object) -> Any:
    """Return a JSON value with its tokens hidden, for people to see.

    A token inside it would let them answer its call.
    """
    return hide_tokens(value, TOKEN)


def event_document(event: CloudEvent) -> Document:
    """Return an event in CloudEvents' JSON format, as in `core.records.Exchanged`.

    Data above `MAX_STORED` bytes, or nested too deeply, is left out.
    """
    attributes = without_tokens(event.attributes())
    if event.data is not None and len(event.data) > MAX_STORED:
        return {"event": attributes, "omitted": len(event.data)}
    try:
        # The standard parser: it reads integers of any length.
        document = json.loads(to_structured(event)[1])
        check_depth(document)  # what is nested too deeply cannot be written again
    except (NotReadable, RecursionError):
        return {"event": attributes, "omitted": len(event.data or b"")}
    return {"event": document | attributes}


def without_tokens(event: Document) -> Document:
    """Return an event with a mark in place of each correlation token.

    A token is spent once its call has its answer, but an event does not show that. A token is known by its
    shape alone: the attribute's name is a setting of the shim.
    """
    return {
        name: TOKEN if name not in _AS_IT_IS and looks_like_token(value) else value
        for name, value in event.items()
    }
