"""Approvals and input by an MCP client: its person's forms, its model, its folders.

A client of 2026-07-28 gets the requests as a result, and repeats its call with the answers (SEP-2322). For an
approval nothing is stored meanwhile: the key of the form is made of the call, so an answer counts for no
other arguments. All other calls with requests are stored runs, see `awaited_calls`.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.call import RequestedCall, refuse_call
from beckon_agent.api.mcp.stored_calls import StoredCalls
from beckon_agent.core.records import Decision, StoredCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.tool_calls.outcome import failed_outcome
from beckon_agent.tool_calls.validation import NeedsApproval
from beckon_contract.failures import Reason
from beckon_contract.inputs import FORM, Form, InputRequest, InvalidInput, first_call_id, round_of

_CAPABILITIES: Mapping[str, Mapping[str, object]] = {
    FORM: {"elicitation": {"form": {}}},
    "sampling/createMessage": {"sampling": {}},
    "roots/list": {"roots": {}},
}
_RESULTS: Mapping[str, type[BaseModel]] = {
    "sampling/createMessage": types.CreateMessageResultWithTools,
    "roots/list": types.ListRootsResult,
}
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


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request to a client, as in MCP without an id.

    `id` is unique among all calls, `key` in the call; it is another one in each round. `name` is the tool's
    own key.
    """

    id: str
    key: str
    name: str
    request: Mapping[str, object]


def input_methods(context: Context) -> frozenset[str]:
    """Return the methods of the input requests that the client of a request can answer."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        info = notifications.current.get()
        return frozenset() if info.send_request is None else info.input_methods
    declared = context.session.client_capabilities
    if declared is None:
        return frozenset()
    has = {
        FORM: has_form_mode(declared.elicitation),
        "sampling/createMessage": declared.sampling is not None,
        "roots/list": declared.roots is not None,
    }
    return frozenset(method for method in has if has[method])


def takes_forms(context: Context) -> bool:
    """Return True if the client of a request shows forms to a person."""
    return FORM in input_methods(context)


def has_form_mode(capability: types.ElicitationCapability | None) -> bool:
    """Return True for a capability with forms. One without any mode has forms, as in earlier revisions."""
    return capability is not None and (capability.form is not None or capability.url is None)


def approval_form(name: str, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the request `elicitation/create` for the approval of a call, without an id."""
    shown = json.dumps(arguments, indent=2, ensure_ascii=False)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}\n… and {len(shown) - _MOST_SHOWN} characters more"
    message = f"Allow the call of {name} with these arguments?\n{shown}"
    return Form(message, {"type": "object", "properties": {"reason": _REASON}}).to_request()


def open_requests(call: StoredCall, methods: Collection[str]) -> list[OpenRequest]:
    """Return the requests of a stored call without an answer, by these methods."""
    if call.state != "input":
        form = approval_form(call.name, call.arguments)
        return [OpenRequest(call.event_id, f"approve-{call.event_id}", "", form)] if FORM in methods else []
    requested = InputRequest.from_stored(call.input_request)
    limited = requested.limit_to(methods)
    number = round_of(call.event_id) - requested.parts
    event_id = first_call_id(call.event_id) + (f"~{number}" if number else "")
    return [
        OpenRequest(
            f"{event_id}/{name}" if requested.is_keyed else event_id,
            f"{name}-{number + 1}" if number else name,
            name,
            one.to_request(),
        )
        for name, one in ({} if limited is None else limited.waiting).items()
    ]


async def take_answers(
    calls: StoredCalls, call: StoredCall, answers: Mapping[str, object], methods: Collection[str]
) -> bool:
    """Take a client's answers to requests of a stored call, by the tool's own keys.

    Requests of other methods are dropped. Raises `MCPError` for an answer that does not fit. Return False if
    other answers came at this moment.
    """
    if call.state != "input":
        await calls.decide_call(call.event_id, *read_answer(parse_answer(answers[""])))
        return True
    limited = InputRequest.from_stored(call.input_request).limit_to(methods)
    if limited is None:
        return True
    documents = {name: _to_document(limited.waiting[name].method, one) for name, one in answers.items()}
    try:
        filled = limited.fill_in(documents)
    except InvalidInput as error:
        method_names = ", ".join(dict.fromkeys(limited.waiting[name].method for name in answers))
        raise MCPError(types.INVALID_PARAMS, f"the answer to {method_names} does not fit: {error}") from None
    return await calls.engine.answer_input(call.event_id, filled)


def _to_document(method: str, answer: object) -> dict[str, object]:
    """Return an answer as in `beckon_contract.inputs`; raise `MCPError` for one that cannot be read."""
    if answer == {"action": "cancel"}:  # in place of an error
        return {"action": "cancel"}
    if method == FORM:
        form = parse_answer(answer)
        return {"action": form.action, "content": form.content}
    try:
        _RESULTS[method].model_validate(answer, by_name=False)
    except ValidationError as error:
        raise _unreadable(method, error) from None
    return {"action": "accept", "content": answer}


def read_answer(answer: object) -> tuple[Decision, str]:
    """Return the decision of an answer to a form, and its reason. Raises `MCPError` for any other answer."""
    if not isinstance(answer, types.ElicitResult):
        raise MCPError(types.INVALID_PARAMS, f"the answer to {FORM} must have an 'action'")
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
        raise _unreadable(FORM, error) from None


def _unreadable(method: str, error: ValidationError) -> MCPError:
    return MCPError(
        types.INVALID_PARAMS, f"the answer to {method} cannot be read: {error.errors()[0]['msg']}"
    )


def request_approval(
    context: Context, wanted: RequestedCall, answers: types.InputResponses | None
) -> RequestedCall | CallFinished | dict[str, object]:
    """Return a call as it may be made, its refusal, or the result that requests an approval."""
    prepared = wanted.prepare()
    if not isinstance(prepared.action, NeedsApproval):
        return wanted
    if not takes_forms(context):
        return refuse_without_capability(context, wanted, "a person's approval", [FORM])
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


def refuse_without_capability(
    context: Context, wanted: RequestedCall, needed: str, methods: Collection[str]
) -> CallFinished:
    """Refuse a call that needs an answer to one of these methods from a client that has none of them.

    Since 2026-07-28 ("Lifecycle", client capabilities) that is the error of a missing capability, raised as
    `MCPError`; in earlier revisions it is a result.
    """
    required = {name: value for method in methods for name, value in _CAPABILITIES[method].items()}
    names = " or ".join(repr(name) for name in required)
    message = f"{wanted.name} needs {needed}, and the client does not declare the capability {names}"
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return deny_call(wanted, message)
    details = {"requiredCapabilities": required}
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, details)


def refuse_request(context: Context, wanted: RequestedCall, request: InputRequest) -> CallFinished:
    """Refuse a call whose tool requests what its client cannot answer."""
    methods = dict.fromkeys(one.method for one in request.waiting.values())
    needed = "input of a person" if list(methods) == [FORM] else f"an answer to {', '.join(methods)}"
    return refuse_without_capability(context, wanted, needed, list(methods))


def deny_call(wanted: RequestedCall, message: str) -> CallFinished:
    """Return the end of a call that a person did not allow, or that no person could decide on."""
    return refuse_call(wanted, failed_outcome(Reason.DENIED, message))
