"""Input requests: what a tool needs of the caller in the middle of a call, and the answers.

A reply whose state is `INPUT_REQUIRED` is no result: its data is one form for a person, or several requests
by name. The call is sent again with the answers in the attribute `INPUT`, as another event. Requests and
answers are those of MCP (revision 2026-07-28, "Multi Round-Trip Requests" and "Elicitation"): a form is one
flat object of strings, numbers, booleans and choices; the other requests are for the program of a client.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import quote

import jsonschema_rs

from beckon_contract.cloudevents.extensions import INPUT
from beckon_contract.jsontext import NotJsonError, dumps, loads
from beckon_contract.schema.validation import Validator

Action = Literal["accept", "decline", "cancel"]
Method = Literal["elicitation/create", "sampling/createMessage", "roots/list"]

FORM: Method = "elicitation/create"
METHODS: tuple[Method, ...] = (FORM, "sampling/createMessage", "roots/list")

_ACTIONS: tuple[Action, ...] = ("accept", "decline", "cancel")
_MOST_MESSAGE = 2_000  # characters
_MOST_SCHEMA = 16_384  # bytes
_MOST_PARAMS = 16_384  # bytes
_MOST_STATE = 2_000  # characters
_MOST_FIELDS = 50
_MOST_REQUESTS = 10
_MOST_ANSWER = 7_500  # bytes of a header: servers on aiohttp take 8,190
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_PRIMITIVES = ("string", "number", "integer", "boolean")


class InvalidInput(ValueError):
    """An input request or an answer that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form for a person. `schema` is a JSON Schema of one flat object."""

    message: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    @property
    def method(self) -> Method:
        """The method of MCP by which a client receives it."""
        return FORM

    @classmethod
    def from_members(cls, message: object, schema: object) -> "Form":
        """Return a form; raise `InvalidInput`."""
        if not isinstance(message, str) or not message.strip():
            raise InvalidInput("'message' must be a text for the person")
        _check_length("message", message, _MOST_MESSAGE)
        schema = schema or {"type": "object", "properties": {}}
        _check_form(schema)
        return cls(message, cast("Mapping[str, Any]", schema))

    def to_request(self) -> dict[str, object]:
        """Return the form as a request of MCP, without an id."""
        params = {"mode": "form", "message": self.message, "requestedSchema": self.schema}
        return {"method": FORM, "params": params}

    def read_content(self, content: object) -> dict[str, Any]:
        """Return the content of an accepted form; raise `InvalidInput` if it does not fit the schema."""
        document = _read_object(content, "the content of an accepted form")
        if problems := Validator(self.schema).problems(document):
            raise InvalidInput("; ".join(problems))
        return document


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request to the program of an MCP client: a completion of its model, or its folders."""

    method: Method
    params: Mapping[str, Any]

    def to_request(self) -> dict[str, object]:
        """Return the request of MCP, without an id."""
        return {"method": self.method, "params": self.params}

    def read_content(self, content: object) -> dict[str, Any]:
        """Return the client's result; raise `InvalidInput` if it is no object."""
        return _read_object(content, f"the result of {self.method}")


Request = Form | ClientRequest


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """The answer with which a call is sent again. `content` is `None` unless the form is accepted.

    To several requests, `answers` has for each the members `action` and `content`; the `action` of all is
    `accept` if one of them is accepted.
    """

    action: Action
    content: Mapping[str, Any] | None = None
    state: str = ""
    answers: Mapping[str, Mapping[str, Any]] | None = None

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
        content, state, answers = (document.get(name) for name in ("content", "state", "answers"))
        return cls(
            document["action"],
            content if isinstance(content, dict) else None,
            state if isinstance(state, str) else "",
            answers if isinstance(answers, dict) else None,
        )

    def to_document(self) -> dict[str, object]:
        """Return the answer as a JSON object."""
        return {
            **_answer_document(self.action, self.content),
            **({"state": self.state} if self.state else {}),
            **({} if self.answers is None else {"answers": self.answers}),
        }

    def to_attribute(self) -> str:
        """Return the value of the attribute `INPUT`."""
        return dumps(self.to_document()).decode()


@dataclass(frozen=True, slots=True)
class InputRequest:
    """What a tool requests before it goes on: by their keys, forms and requests to the client.

    `state` is a text of the tool that comes back with the answers. `answers` are those so far, given in
    `parts` portions. `is_keyed` is False for a reply that is one form, and is answered as one.
    """

    requests: Mapping[str, Request]
    state: str = ""
    is_keyed: bool = False
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parts: int = 0

    @classmethod
    def from_document(cls, document: object) -> "InputRequest":
        """Return the requests in a reply's data; raise `InvalidInput`."""
        if not isinstance(document, Mapping):
            raise InvalidInput("an input request must be an object with a 'message' or with 'requests'")
        state = document.get("state", "")
        if not isinstance(state, str):
            raise InvalidInput("'state' must be a text")
        _check_length("state", state, _MOST_STATE)
        requests = document.get("requests")
        if requests is None:
            key = document.get("key", "input")
            form = Form.from_members(document.get("message"), document.get("schema"))
            return cls({_check_key(key): form}, state)
        if not isinstance(requests, Mapping) or not 0 < len(requests) <= _MOST_REQUESTS:
            raise InvalidInput(f"'requests' must be an object with 1 to {_MOST_REQUESTS} requests of MCP")
        read = {_check_key(key): _read_request(key, one) for key, one in requests.items()}
        return cls(read, state, True)

    @classmethod
    def from_stored(cls, document: object) -> "InputRequest":
        """Return the requests that `to_document` has written, with their answers so far."""
        request = cls.from_document(document)
        members = document if isinstance(document, Mapping) else {}
        return replace(request, answers=members.get("answers", {}), parts=members.get("parts", 0))

    def to_document(self) -> dict[str, object]:
        """Return the data of the reply, or the document in the store.

        Its `message` and `schema` are those of the form that a person is shown now.
        """
        shown = {"message": self.message, "schema": {} if self.form is None else self.form.schema}
        state = {"state": self.state} if self.state else {}
        if not self.is_keyed:
            return {**shown, "key": next(iter(self.requests)), **state}
        requests = {key: one.to_request() for key, one in self.requests.items()}
        answered = {"answers": self.answers, "parts": self.parts} if self.answers else {}
        return {**shown, "requests": requests, **answered, **state}

    @property
    def waiting(self) -> dict[str, Request]:
        """The requests without an answer."""
        return {key: one for key, one in self.requests.items() if key not in self.answers}

    @property
    def form(self) -> Form | None:
        """The form that a person is shown now: the first one without an answer."""
        return next((one for one in self.waiting.values() if isinstance(one, Form)), None)

    @property
    def message(self) -> str:
        """The message of the form, or of the requests to the client if there is no form."""
        if self.form is not None:
            return self.form.message
        return f"The tool sends its client: {', '.join(one.method for one in self.waiting.values())}"

    def limit_to(self, methods: Collection[str]) -> "InputRequest | None":
        """Return the requests of these methods alone; `None` if no request without an answer is left."""
        allowed = {
            key: one for key, one in self.requests.items() if key in self.answers or one.method in methods
        }
        limited = replace(self, requests=allowed)
        return limited if limited.waiting else None

    def fill_form(self, document: object) -> "InputRequest":
        """Take a person's answer to the form, `{"action", "content"}`; raise `InvalidInput`.

        Where only requests to the client are left, a person can decline them all.
        """
        key = next((key for key, one in self.waiting.items() if one is self.form), None)
        if key is not None:
            return self.fill_in({key: document})
        if not isinstance(document, Mapping) or document.get("action") == "accept":
            raise InvalidInput("only the program of the client can answer; a person can decline")
        return self.fill_in(dict.fromkeys(self.waiting, document))

    def fill_in(self, answers: Mapping[str, object]) -> "InputRequest":
        """Take answers to requests, `{"action", "content"}` by their keys; raise `InvalidInput`."""
        content = {
            key: _read_answer(one, answers[key]) for key, one in self.waiting.items() if key in answers
        }
        filled = replace(self, answers={**self.answers, **content}, parts=self.parts + 1)
        # So far, if some are missing: a person who answers the rest could not mend what is too long already.
        so_far = filled.answer or InputAnswer("accept", None, self.state, filled.answers)
        if len(quote(so_far.to_attribute())) > _MOST_ANSWER:
            raise InvalidInput(f"the answer is too long: at most about {_MOST_ANSWER} bytes in all")
        return filled

    @property
    def answer(self) -> InputAnswer | None:
        """The answer for the tool; `None` while a request has none."""
        if self.waiting:
            return None
        answers = list(self.answers.values())
        if not self.is_keyed:
            return InputAnswer(answers[0]["action"], answers[0].get("content"), self.state)
        actions: list[Action] = [one["action"] for one in answers]
        action = "accept" if "accept" in actions else actions[0]
        return InputAnswer(action, None, self.state, self.answers)


def _read_request(key: object, document: object) -> Request:
    """Return a request of MCP; raise `InvalidInput`."""
    params = document.get("params") or {} if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(params, Mapping):
        raise InvalidInput(f"the request {key!r} must be an object with 'method' and 'params'")
    method = document.get("method")
    if method not in METHODS:
        raise InvalidInput(f"the method of the request {key!r} must be one of {', '.join(METHODS)}")
    if method == FORM:
        return Form.from_members(params.get("message"), params.get("requestedSchema"))
    if len(dumps(params)) > _MOST_PARAMS:
        raise InvalidInput(f"the request {key!r} is too large: at most {_MOST_PARAMS} bytes")
    return ClientRequest(method, params)


def _read_answer(request: Request, document: object) -> dict[str, Any]:
    """Return the answer to a request as it is stored; raise `InvalidInput`."""
    if not isinstance(document, Mapping) or document.get("action") not in _ACTIONS:
        raise InvalidInput(f"an answer must be an object with an 'action': {', '.join(_ACTIONS)}")
    action: Action = document["action"]
    content = request.read_content(document.get("content") or {}) if action == "accept" else None
    return _answer_document(action, content)


def _answer_document(action: Action, content: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"action": action, **({} if content is None else {"content": content})}


_ROUND = re.compile(r"~(\d{1,4})\Z")


def next_call_id(event_id: str) -> str:
    """Return the id of the event that follows `event_id` with an answer.

    It is another id, for a tool answers a second event of one id with its first result.
    """
    return f"{first_call_id(event_id)}~{round_of(event_id) + 1}"


def previous_call_id(event_id: str) -> str:
    """Return the id of the event before the answer with which `event_id` was sent."""
    number = round_of(event_id) - 1
    return first_call_id(event_id) + (f"~{number}" if number > 0 else "")


def round_of(event_id: str) -> int:
    """Return how often a call was sent again with an answer before the event of this id."""
    match = _ROUND.search(event_id)
    return 0 if match is None else int(match[1])


def first_call_id(event_id: str) -> str:
    """Return the id of the first event of a call."""
    return _ROUND.sub("", event_id)


def _check_key(key: object) -> str:
    if not isinstance(key, str) or not _KEY.match(key):
        raise InvalidInput("'key' must be a name of at most 64 letters, digits, '_', '-' and '.'")
    return key


def _read_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be an object")
    return dict(value)


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
