"""Input requests of a tool: forms for a person, in the middle of a call.

    class Confirmation(BaseModel):
        really: bool

    @tool(type="files.delete")
    def delete_files(pattern: str, person: Person) -> str:
        found = find_files(pattern)
        if not person.fill_form(f"Delete {len(found)} files?", Confirmation).really:
            return "nothing was deleted"
        ...

The function ends at the first form without an answer, and runs again from its beginning when the answer
comes, perhaps days later and in another process. So request input before the first effect.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from beckon_contract.inputs import InputAnswer, InputRequest, InvalidInput
from beckon_tools.errors import DeclarationError, ToolError

Fields = TypeVar("Fields", bound=BaseModel)


class Declined(ToolError):
    """The person has declined a form, or closed it. The model reads so, unless the function catches it."""


class InputRequired(BaseException):
    """The call needs input of a person; the function ends here.

    No `Exception`, so that a function which catches those does not take it for a fault.
    """

    def __init__(self, request: InputRequest) -> None:
        super().__init__(request.message)
        self.request = request


class Person:
    """The person behind a call. A function receives it by a parameter of this type."""

    def __init__(self, attribute: object = None) -> None:
        """Take the attribute `INPUT` of the call, `None` for its first event; raise `InvalidInput`."""
        answer = None if attribute is None else InputAnswer.from_attribute(attribute)
        self._answers: list[Mapping[str, Any]] = [] if answer is None else _read_state(answer)
        self._next = 0

    def fill_form(self, message: str, form: type[Fields], *, key: str = "input") -> Fields:
        """Return the form as the person has filled it in.

        `form` is a pydantic model whose fields are strings, numbers, booleans, enums, or lists of enums.
        `key` is the form's name for clients that fill it in by a program.
        Raises `Declined`, and `DeclarationError` for a form that MCP's elicitation cannot show.
        """
        try:
            answer = self.request_input(message, _form_schema(form), key=key)
        except InvalidInput as error:
            raise DeclarationError(f"the form {form.__name__} cannot be shown to a person: {error}") from None
        if answer.action != "accept":
            raise Declined(f"a person was shown this form and did not fill it in: {message}")
        try:
            return form.model_validate_json(orjson.dumps(answer.content or {}))
        except ValidationError as error:
            raise ToolError(f"the form is not filled in as it must be: {error.errors()[0]['msg']}") from None

    def request_input(self, message: str, schema: Mapping[str, Any], *, key: str = "input") -> InputAnswer:
        """Return the person's answer to a form with this JSON Schema.

        Raises `InputRequired` if there is none yet, and `InvalidInput` for a form that cannot be shown.
        """
        known = self._take_answer([message, schema], {"message": message, "schema": schema, "key": key})
        return InputAnswer.from_stored(known)

    def request_inputs(self, requests: Mapping[str, Mapping[str, Any]]) -> Mapping[str, InputAnswer]:
        """Return the answers to several requests of MCP, `{"method", "params"}`, by the same keys.

        The methods are `elicitation/create` for a form, and for the program of an MCP client
        `sampling/createMessage` and `roots/list`, whose results are the answers' contents. There is no answer
        to a request that the client of the call cannot take. Raises `InputRequired` and `InvalidInput`.
        """
        known = self._take_answer(requests, {"requests": requests})
        answers = InputAnswer.from_stored(known).answers or {}
        return {key: InputAnswer.from_stored(one) for key, one in answers.items()}

    def _take_answer(self, identity: object, document: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the next answer of the call; raise `InputRequired` unless it is one to this request."""
        digest = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
        known = self._answers[self._next] if self._next < len(self._answers) else {}
        if known.get("form") != digest:  # none yet, or the answer to another form
            state = orjson.dumps([*self._answers[: self._next], {"form": digest}]).decode()
            raise InputRequired(InputRequest.from_document({**document, "state": state}))
        self._next += 1
        return known


def _read_state(answer: InputAnswer) -> list[Mapping[str, Any]]:
    """Return the answers so far: those in the state of the form, and last the one to the form itself."""
    try:
        state = orjson.loads(answer.state)
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, list) or not state or not all(isinstance(one, dict) for one in state):
        raise InvalidInput("the state of the answer is not that of a form of this tool")
    return [*state[:-1], {**state[-1], **replace(answer, state="").to_document()}]


def _form_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a form without references: enums are written where they are used."""
    schema = form.model_json_schema()
    definitions = schema.pop("$defs", {})
    fields = {name: _resolve(one, definitions) for name, one in schema.get("properties", {}).items()}
    return {"type": "object", "properties": fields, "required": schema.get("required", [])}


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    resolved = dict(schema)
    reference = resolved.pop("$ref", None)
    if reference is not None:
        resolved = {**definitions[reference.rpartition("/")[2]], **resolved}
    if isinstance(resolved.get("items"), dict):
        resolved["items"] = _resolve(resolved["items"], definitions)
    return resolved
