"""What a task requests of the person at its client: decisions on calls, and input for tools."""

from collections.abc import Sequence
from typing import Any

from a2a.helpers.proto_helpers import get_data_parts, new_data_part, new_text_part
from a2a.types.a2a_pb2 import Message, Part
from a2a.utils.errors import InvalidParamsError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from beckon_agent.api.responses.documents import approval_id, event_of_approval
from beckon_agent.api.responses.forms import FormAnswer, event_of_input, input_id
from beckon_agent.core import json_values
from beckon_agent.core.records import Decision, StoredCall
from beckon_agent.tool_calls.recorded_events import shown_document

APPROVALS, INPUTS = "approvals", "inputs"
"""The members of a data part with the requests, and with their answers."""


def write_requests(calls: Sequence[StoredCall]) -> list[Part]:
    """Return the parts of a message that requests a decision on each call, or input for it."""
    approvals = [call for call in calls if call.state != "input"]
    inputs = [call for call in calls if call.state == "input"]
    lines = [
        f"The call {call.name}({json_values.to_json(shown_document(call.arguments))}) needs an approval."
        for call in approvals
    ]
    lines += [f"The tool {call.name} needs input: {_shown_form(call)['message']}" for call in inputs]
    text = "" if inputs else "with the text 'approve' or 'deny' for all of them, or "
    lines.append(f"Answer in this task {text}with a data part")
    members = [f'"{APPROVALS}": [{{"id": …, "approve": true or false, "reason": …}}]'] if approvals else []
    members += [f'"{INPUTS}": [{{"id": …, "action": "accept" or "decline", "content": …}}]'] if inputs else []
    lines[-1] += f" {{{', '.join(members)}}}."
    data: dict[str, object] = {}
    if approvals:
        data[APPROVALS] = [
            {"id": approval_id(call.event_id), "name": call.name, "arguments": shown_document(call.arguments)}
            for call in approvals
        ]
    if inputs:
        data[INPUTS] = [
            {"id": input_id(call.event_id), "name": call.name, **_shown_form(call)} for call in inputs
        ]
    return [new_text_part("\n".join(lines)), new_data_part(data)]


def _shown_form(call: StoredCall) -> dict[str, Any]:
    shown: dict[str, Any] = shown_document(call.input_request)
    return {"message": shown["message"], "schema": shown["schema"]}


class ApprovalDecision(BaseModel):
    """A decision on one approval request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(max_length=300)
    approve: bool
    reason: str = Field("", max_length=2000)

    @property
    def event_id(self) -> str:
        """The event of the call."""
        return event_of_approval(self.id) or ""

    @property
    def decision(self) -> Decision:
        """The decision as it is stored."""
        return "approved" if self.approve else "denied"


class FilledForm(FormAnswer):
    """An answer to the form of one tool."""

    id: str = Field(max_length=300)

    @property
    def event_id(self) -> str:
        """The event of the call."""
        return event_of_input(self.id) or ""


class _AnswerParts(BaseModel):
    """The data part with decisions and filled forms."""

    model_config = ConfigDict(extra="forbid")

    approvals: list[ApprovalDecision] = Field(default_factory=list, max_length=1000)
    inputs: list[FilledForm] = Field(default_factory=list, max_length=1000)


_WORDS = {"approve": True, "deny": False}


def read_answers(message: Message, pending: Sequence[StoredCall]) -> list[ApprovalDecision | FilledForm]:
    """Return an answer for each pending call; raise `InvalidParamsError` for a message with other content.

    The forms are those of `write_requests`.
    """
    data = get_data_parts(message.parts)
    decisions: list[ApprovalDecision | FilledForm] = []
    if data:
        try:
            for document in data:
                answers = _AnswerParts.model_validate(document)
                decisions += [*answers.approvals, *answers.inputs]
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidParamsError(f"message.parts: data.{where}: {first['msg']}") from None
    else:
        text = " ".join(part.text for part in message.parts).strip().rstrip(".!").lower()
        if text not in _WORDS or any(call.state == "input" for call in pending):
            words = "answer with the text 'approve' or 'deny' if it waits for approvals alone, else with data"
            raise InvalidParamsError(f"the task waits for a person: {words}, as its status.message shows")
        decisions += [
            ApprovalDecision(id=approval_id(call.event_id), approve=_WORDS[text]) for call in pending
        ]
    _check_answers(decisions, pending)
    return decisions


def _check_answers(answers: Sequence[ApprovalDecision | FilledForm], pending: Sequence[StoredCall]) -> None:
    ids = {
        input_id(call.event_id) if call.state == "input" else approval_id(call.event_id) for call in pending
    }
    answered = {one.id for one in answers}
    if unknown := sorted(answered - ids):
        raise InvalidParamsError(
            f"there is no request {unknown[0][:120]!r} in this task; its status.message lists them"
        )
    if missing := sorted(ids - answered):
        raise InvalidParamsError(f"answer all requests of the task at once; these are left: {missing}")
