"""The user message for the model, made from an event.

A question is passed on unchanged, any other event with its attributes and data. The text of an event is a
user's message, from any sender: never an instruction of ours.
"""

from collections.abc import Mapping

import orjson

from beckon_agent.core.model_types import Message
from beckon_contract.events import CloudEvent, EventError, EventFormatError
from beckon_contract.jsontext import NotJsonError, members
from beckon_contract.media_types import is_json
from beckon_contract.yamltext import NotReadable, check_depth

QUESTION = "question"
NOTHING = "NO_REPLY"

_SHOWN_ATTRIBUTES = ("type", "source", "subject", "time")
_UNAWAITED = f"Nobody waits for an answer. If there is nothing to tell, answer with exactly {NOTHING}."


def message_of(event: CloudEvent, *, awaited: bool) -> Message:
    """Return an event as a user message.

    If no answer is awaited, the message says so. Raises `EventError` for data that does not match its
    declared type, and `EventFormatError` for data that is neither JSON nor text.
    """
    text = _question_of(event)
    return {"role": "user", "content": text if awaited else f"{text}\n\n{_UNAWAITED}"}


def _question_of(event: CloudEvent) -> str:
    if event.data is None:
        return _described(event, "")
    if is_json(event.datacontenttype):
        return _from_json(event, _json(event))
    if (event.datacontenttype or "").lower().startswith("text/"):
        return _decoded(event)
    raise EventFormatError(
        f"an agent reads JSON and text, and the data of this event is {event.datacontenttype}"
    )


def _from_json(event: CloudEvent, data: object) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping) and isinstance(question := data.get(QUESTION), str) and question.strip():
        rest = _without_question(event)
        return f"{question}\n\n{rest}" if rest else question
    return _described(event, _decoded(event).strip())


def _without_question(event: CloudEvent) -> str:
    """Return the other members of an object as they were written.

    Large numbers are not changed.
    """
    try:
        texts = members(event.data or b"")
    except NotJsonError as error:
        raise EventError(f"the data of event {event.id!r} is not JSON: {error}") from None
    rest = [
        f"{orjson.dumps(name).decode()}: {text.decode()}" for name, text in texts.items() if name != QUESTION
    ]
    return "{" + ", ".join(rest) + "}" if rest else ""


def _described(event: CloudEvent, data: str) -> str:
    """Return the text of an event without a question.

    The attributes hold no line breaks.
    """
    attributes = event.attributes()
    lines = [f"{name}: {attributes[name]}" for name in _SHOWN_ATTRIBUTES if name in attributes]
    return "\n".join(["An event has come.", *lines, *(["data:", data] if data else [])])


def _json(event: CloudEvent) -> object:
    data = event.json()
    try:
        check_depth(data)
    except NotReadable as error:
        raise EventError(f"the data of event {event.id!r} cannot be read: {error}") from None
    return data


def _decoded(event: CloudEvent) -> str:
    try:
        return (event.data or b"").decode()
    except UnicodeDecodeError:
        raise EventError(f"the data of event {event.id!r} is not UTF-8; send text as UTF-8") from None
