"""Input requests: forms that a tool puts to a person in the middle of a call, and the answers to them.

A reply whose state is `INPUT_REQUIRED` is no result: its data is the form. The call is sent again with the
person's answer in the attribute `INPUT`, as another event. Forms and answers are those of MCP's elicitation
(revision 2026-07-28, "Elicitation"): one flat object of strings, numbers, booleans and choices.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

import jsonschema_rs

from beckon_contract.cloudevents.extensions import INPUT
from beckon_contract.jsontext import NotJsonError, dumps, loads
from beckon_contract.schema.validation import Validator

Action = Literal["accept", "decline", "cancel"]

_ACTIONS: tuple[Action, ...] = ("accept", "decline", "cancel")
_MOST_MESSAGE = 2_000  # characters
_MOST_SCHEMA = 16_384  # bytes
_MOST_STATE = 2_000  # characters
_MOST_FIELDS = 50
_MOST_ANSWER = 7_500  # bytes of a header: servers on aiohttp take 8,190
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_PRIMITIVES = ("string", "number", "integer", "boolean")


class InvalidInput(ValueError):
    """An input request or an answer that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A form for a person.

    `schema` is a JSON Schema of one flat object. `state` is a text of the tool that comes back with the
    answer. `key` is the name of the form for programs that fill it in.
    """

    message: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    state: str = ""
    key: str = "input"

    @classmethod
    def from_document(cls, document: object) -> "InputRequest":
        """Return the form in a reply's data, an object with these members; raise `InvalidInput`."""
        if not isinstance(document, Mapping):
            raise InvalidInput("an input request must be an object with a 'message'")
        message, state = document.get("message"), document.get("state", "")
        if not isinstance(message, str) or not message.strip():
            raise InvalidInput("'message' must be a text for the person")
        if not isinstance(state, str):
            raise InvalidInput("'state' must be a text")
        key = document.get("key", "input")
        if not isinstance(key, str) or not _KEY.match(key):
            raise InvalidInput("'key' must be a name of at most 64 letters, digits, '_', '-' and '.'")
        _check_length("message", message, _MOST_MESSAGE)
        _check_length("state", state, _MOST_STATE)
        schema = document.get("schema") or {"type": "object", "properties": {}}
        _check_form(schema)
        return cls(message, schema, state, key)

    def to_document(self) -> dict[str, object]:
        """Return the data of the reply."""
        state = {"state": self.state} if self.state else {}
        return {"message": self.message, "schema": self.schema, "key": self.key, **state}

    def read_content(self, content: object) -> dict[str, Any]:
        """Return the content of an accepted form; raise `InvalidInput` if it does not fit the schema."""
        if not isinstance(content, Mapping):
            raise InvalidInput("the content of an accepted form must be an object")
        found = dict(content)
        if problems := Validator(self.schema).problems(found):
            raise InvalidInput("; ".join(problems))
        return found


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """A person's answer to a form. `content` is `None` unless the form is accepted."""

    action: Action
    content: Mapping[str, Any] | None = None
    state: str = ""

    @classmethod
    def from_document(cls, document: object, request: InputRequest) -> "InputAnswer":
        """Return an answer to a form, `{"action", "content"}`; raise `InvalidInput`."""
        if not isinstance(document, Mapping) or document.get("action") not in _ACTIONS:
            raise InvalidInput(f"an answer must be an object with an 'action': {', '.join(_ACTIONS)}")
        action: Action = document["action"]
        content = request.read_content(document.get("content") or {}) if action == "accept" else None
        answer = cls(action, content, request.state)
        if len(quote(answer.to_attribute())) > _MOST_ANSWER:
            raise InvalidInput(f"the answer is too long: at most about {_MOST_ANSWER} bytes in all")
        return answer

    @classmethod
    def from_attribute(cls, text: object) -> "InputAnswer":
        """Return the answer in the attribute `INPUT` of a call; raise `InvalidInput`."""
        try:
            document = loads(text) if isinstance(text, str) else None
        except NotJsonError:
            document = None
        if not isinstance(document, dict) or document.get("action") not in _ACTIONS:
            raise InvalidInput(f"the attribute {INPUT!r} is no answer to an input request")
        return cls.from_stored(document)

    @classmethod
    def from_stored(cls, document: Mapping[str, Any]) -> "InputAnswer":
        """Return the answer that `to_document` has written."""
        content, state = document.get("content"), document.get("state")
        return cls(
            document["action"],
            content if isinstance(content, dict) else None,
            state if isinstance(state, str) else "",
        )

    def to_document(self) -> dict[str, object]:
        """Return the answer as a JSON object."""
        content = {} if self.content is None else {"content": self.content}
        return {"action": self.action, **content, **({"state": self.state} if self.state else {})}

    def to_attribute(self) -> str:
        """Return the value of the attribute `INPUT`."""
        return dumps(self.to_document()).decode()


_ROUND = re.compile(r"~(\d{1,4})\Z")


def next_call_id(event_id: str) -> str:
    """Return the id of the event that follows `event_id` with an answer.

    It is another id, for a tool answers a second event of one id with its first result.
    """
    return f"{first_call_id(event_id)}~{round_of(event_id) + 1}"


def round_of(event_id: str) -> int:
    """Return how often a call was sent again with an answer before the event of this id."""
    found = _ROUND.search(event_id)
    return 0 if found is None else int(found[1])


def first_call_id(event_id: str) -> str:
    """Return the id of the first event of a call."""
    return _ROUND.sub("", event_id)


def _check_length(name: str, text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidInput(f"{name!r} has {len(text)} characters, at most {most} are allowed")


def _check_form(schema: object) -> None:
    """Raise `InvalidInput` unless a schema is that of a flat form."""
    fields = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or schema.get("type") != "object" or not isinstance(fields, Mapping):
        raise InvalidInput("'schema' must be a JSON Schema of type object")
    if len(fields) > _MOST_FIELDS or len(dumps(schema)) > _MOST_SCHEMA:
        raise InvalidInput(f"'schema' is too large: at most {_MOST_FIELDS} fields and {_MOST_SCHEMA} bytes")
    for name, one in fields.items():
        if not _is_form_field(one):
            kinds = ", ".join(_PRIMITIVES)
            raise InvalidInput(f"the field {name!r} of 'schema' must be one of {kinds}, or a list of choices")
    try:
        Validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InvalidInput(f"'schema' is no valid JSON Schema: {error}") from None


def _is_form_field(schema: object) -> bool:
    if not isinstance(schema, Mapping) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items = schema.get("items")
        return isinstance(items, Mapping) and ("enum" in items or "anyOf" in items)
    return schema.get("type") in _PRIMITIVES
