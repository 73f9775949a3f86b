"""The events of one call in both directions, recorded for later inspection."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from beckon_agent.core.records import Exchanged
from beckon_contract.correlation import hide_tokens, looks_like_token
from beckon_contract.events import CloudEvent, to_structured
from beckon_contract.yamltext import NotReadable, check_depth

MAX_STORED = 262_144  # bytes of data; of more the attributes are kept, and the result of the call

TOKEN = "(token)"  # noqa: S105  # stands where one was
_AS_IT_IS = frozenset(("id", "source", "type", "data", "data_base64"))

Document = Mapping[str, Any]


@dataclass(slots=True)
class RecordedEvents:
    """What has passed so far: the event that was sent, and the reply or the problem that came.

    `confirm` tells who passed the reply on that it is stored; it returns at once.
    """

    call: Document | None = None
    reply: Document | None = None
    confirm: Callable[[], None] | None = None

    def stored(self, event_id: str, name: str) -> Exchanged:
        """Return it as the store keeps it."""
        return Exchanged(event_id, name, self.call, self.reply)


_current: ContextVar[RecordedEvents | None] = ContextVar("exchanged", default=None)


@contextmanager
def recording_events() -> Iterator[RecordedEvents]:
    """Note the events that this task sends and gets for one call."""
    noted = RecordedEvents()
    token = _current.set(noted)
    try:
        yield noted
    finally:
        _current.reset(token)


def record_call(event: CloudEvent) -> None:
    """Note the event of a call that is sent now."""
    if (noted := _current.get()) is not None:
        noted.call = event_document(event)


def record_reply(event: CloudEvent) -> None:
    """Note the reply that came."""
    if (noted := _current.get()) is not None:
        noted.reply = event_document(event)


def record_receipt(confirm: Callable[[], None]) -> None:
    """Note how to confirm that the reply is stored."""
    if (noted := _current.get()) is not None:
        noted.confirm = confirm


def record_problem(problem: Mapping[str, object]) -> None:
    """Note the problem document that came in place of a reply."""
    if (noted := _current.get()) is not None and problem:
        noted.reply = {"problem": shown_document(problem)}


def shown_document(value: object) -> Any:
    """Return a JSON value as people may see it: a token inside it would let them answer its call."""
    return hide_tokens(value, TOKEN)


def event_document(event: CloudEvent) -> Document:
    """Return an event in CloudEvents' JSON format, as `store.records.Exchanged` has it."""
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
    """Return an event in whose attributes a mark stands for each correlation token.

    A token is spent once its call has its answer, but nobody who looks at events can see that, and it
    is known by its shape alone: the attribute's name is a setting of the shim.
    """
    return {
        name: TOKEN if name not in _AS_IT_IS and looks_like_token(value) else value
        for name, value in event.items()
    }
