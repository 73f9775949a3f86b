"""Approvals and input by the person at an MCP client: elicitation.

A client of 2026-07-28 gets the form as a result, and repeats its call with the answer (SEP-2322). For an
approval nothing is stored meanwhile: the key of the form is made of the call, so an answer counts for no
other arguments. All other calls with forms are stored runs, see `awaited_calls`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.call import RequestedCall, refuse_call
from beckon_agent.api.mcp.stored_calls import StoredCalls
from beckon_agent.api.runs.input_documents import FormAnswer
from beckon_agent.core.records import Decision, StoredCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.tool_calls.outcome import failed_outcome
from beckon_agent.tool_calls.validation import NeedsApproval
from beckon_contract.failures import Reason
from beckon_contract.inputs import InputRequest, InvalidInput, round_of

METHOD = "elicitation/create"
_NO_FORMS = "the client cannot show a form to a person: it does not declare the capability 'elicitation'"
_MOST_SHOWN = 10_000  # characters of arguments
_MOST_REASON = 500  # characters
_CLOSED = "the form was closed without a decision"
_REASON = {
    "type": "string",
    "title": "Reason",
    "description": "Optional: why the call is allowed or not.",
    "maxLength": _MOST_REASON,
}

Context = ServerRequestContext[Any, Any]


def takes_forms(context: Context) -> bool:
    """Return True if the client of a request shows forms to a person."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return notifications.current.get().send_request is not None
    capabilities = context.session.client_capabilities
    return capabilities is not None and has_form_mode(capabilities.elicitation)


def has_form_mode(capability: types.ElicitationCapability | None) -> bool:
    """Return True for a capability with forms. One without any mode has forms, as in earlier revisions."""
    return capability is not None and (capability.form is not None or capability.url is None)


def approval_form(name: str, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the request `elicitation/create` for the approval of a call, without an id."""
    shown = json.dumps(arguments, indent=2, ensure_ascii=False)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}\n… and {len(shown) - _MOST_SHOWN} characters more"
    params = {
        "mode": "form",
        "message": f"Allow the call of {name} with these arguments?\n{shown}",
        "requestedSchema": {"type": "object", "properties": {"reason": _REASON}},
    }
    return {"method": METHOD, "params": params}


def form_of(call: StoredCall) -> dict[str, object]:
    """Return the request `elicitation/create` of a stored call that waits for a person, without an id."""
    if call.state == "input":
        request = InputRequest.from_document(call.input_request)
        params = {"mode": "form", "message": request.message, "requestedSchema": request.schema}
        return {"method": METHOD, "params": params}
    return approval_form(call.name, call.arguments)


def form_key(call: StoredCall) -> str:
    """Return the key of the form of a stored call: another one in each round."""
    if call.state != "input":
        return f"approve-{call.event_id}"
    key = InputRequest.from_document(call.input_request).key
    number = round_of(call.event_id)
    return f"{key}-{number + 1}" if number else key


async def take_form(calls: StoredCalls, call: StoredCall, answer: types.ElicitResult) -> None:
    """Take a person's answer to the form of a stored call; raise `MCPError` if it does not fit the form."""
    if call.state != "input":
        await calls.decide_call(call.event_id, *read_answer(answer))
        return
    try:
        given = FormAnswer(action=answer.action, content=answer.content).to_answer(call)
    except InvalidInput as error:
        raise MCPError(types.INVALID_PARAMS, f"the answer to {METHOD} does not fit: {error}") from None
    await calls.engine.answer_input(call.event_id, given)


def read_answer(answer: object) -> tuple[Decision, str]:
    """Return the decision of an answer to a form, and its reason. Raises `MCPError` for any other answer."""
    if not isinstance(answer, types.ElicitResult):
        raise MCPError(types.INVALID_PARAMS, f"the answer to {METHOD} must have an 'action'")
    if answer.action == "cancel":
        return "denied", _CLOSED
    reason = (answer.content or {}).get("reason")
    decision: Decision = "approved" if answer.action == "accept" else "denied"
    return decision, reason[:_MOST_REASON] if isinstance(reason, str) else ""


def parse_answer(answer: object) -> types.ElicitResult:
    """Return the answer to a form from its JSON. Raises `MCPError` for any other."""
    try:
        return types.ElicitResult.model_validate(answer, by_name=False)
    except ValidationError as error:
        message = f"the answer to {METHOD} cannot be read: {error.errors()[0]['msg']}"
        raise MCPError(types.INVALID_PARAMS, message) from None


def request_approval(
    context: Context, wanted: RequestedCall, answers: types.InputResponses | None
) -> RequestedCall | CallFinished | dict[str, object]:
    """Return a call as it may be made, its refusal, or the result that requests an approval."""
    prepared = wanted.prepare()
    if not isinstance(prepared.action, NeedsApproval):
        return wanted
    if not takes_forms(context):
        return refuse_without_forms(context, wanted, "a person's approval")
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return wanted
    form = approval_form(wanted.name, prepared.arguments)
    identity = json.dumps([wanted.name, prepared.arguments], sort_keys=True)
    key = f"approve-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
    answer = (answers or {}).get(key)
    if answer is None:
        return {"resultType": "input_required", "inputRequests": {key: form}}
    decision, reason = read_answer(answer)
    if decision == "approved":
        return replace(wanted, approved=True)
    return deny_call(wanted, f"a person did not allow this call{f': {reason}' if reason else ''}")


def refuse_without_forms(context: Context, wanted: RequestedCall, needed: str) -> CallFinished:
    """Refuse a call that needs something of a person at a client without forms.

    Since 2026-07-28 ("Lifecycle", client capabilities) that is the error of a missing capability, raised as
    `MCPError`; in earlier revisions it is a result.
    """
    message = f"{wanted.name} needs {needed}, and {_NO_FORMS}"
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return deny_call(wanted, message)
    required: dict[str, object] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, required)


def deny_call(wanted: RequestedCall, message: str) -> CallFinished:
    """Return the end of a call that a person did not allow, or that no person could decide on."""
    return refuse_call(wanted, failed_outcome(Reason.DENIED, message))
