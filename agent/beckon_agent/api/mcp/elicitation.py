"""Approvals by the person at an MCP client: elicitation.

A client of 2026-07-28 gets the form as a result, and repeats its call with the answer (SEP-2322). Nothing is
stored meanwhile: the key of the form is made of the call, so an answer counts for no other arguments. A
client of an earlier revision gets the request `elicitation/create` on the stream of its call. It may answer
to another replica, so such a call is a stored run.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.call import RequestedCall, refuse_call
from beckon_agent.api.mcp.stored_calls import StoredCalls, is_call, needs_decision
from beckon_agent.core.records import Decision, StoredRun
from beckon_agent.core.run_events import (
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    RunFailed,
)
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_agent.tool_calls.progress import ProgressReport, current_listener
from beckon_agent.tool_calls.validation import NeedsApproval
from beckon_contract.failures import Reason

METHOD = "elicitation/create"
_MOST_SHOWN = 10_000  # characters of arguments
_MOST_REASON = 500  # characters
_PERSON_SECONDS = 3_600.0
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
        cause = "the client cannot show a form to a person: it does not declare the capability 'elicitation'"
        return _deny(wanted, f"{wanted.name} needs a person's approval, and {cause}")
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
    return _deny(wanted, f"a person did not allow this call{f': {reason}' if reason else ''}")


def _deny(wanted: RequestedCall, message: str) -> CallFinished:
    return refuse_call(wanted, failed_outcome(Reason.DENIED, message))


class AwaitedCalls:
    """Stored calls whose clients wait for the result, and may be sent a form."""

    def __init__(self, calls: StoredCalls) -> None:
        self._calls = calls

    async def make_call(self, wanted: RequestedCall) -> CallFinished:
        """Make a call and wait for its end. It is cancelled if this task is.

        Raises the errors of `Engine.start`.
        """
        prepared = wanted.prepare()
        if isinstance(prepared.action, CallOutcome):
            return refuse_call(wanted, prepared.action)
        run = await self._calls.start_call(wanted.hosted, prepared)
        ended = False
        try:
            with anyio.move_on_after(None) as limit:
                finished = await self._follow_call(wanted, run, limit)
                ended = True
                return finished
        finally:
            if not ended:
                with anyio.CancelScope(shield=True):
                    await self._calls.engine.cancel(run.id)
        return _deny(wanted, f"no decision of a person came in {_PERSON_SECONDS:g} seconds")

    async def _follow_call(
        self, wanted: RequestedCall, run: StoredRun, limit: anyio.CancelScope
    ) -> CallFinished:
        """Return the end of a call or of an agent's run; send a form for each call that needs an approval."""
        listener = current_listener()
        message = "the call was cancelled"
        async with aclosing(self._calls.engine.follow(run.id, wait=True)) as events:
            async for _, event in events:
                match event:
                    case ApprovalRequested():
                        limit.deadline = anyio.current_time() + _PERSON_SECONDS
                        await self._request_approval(wanted, event)
                    case CallStarted():  # from here on its tool's own time counts
                        limit.deadline = math.inf
                    case CallProgressed() if listener is not None:
                        listener(ProgressReport(event.done, event.total, event.message))
                    case CallFinished() if is_call(run):
                        return event
                    case RunFailed():
                        message = event.message
        ended = await self._calls.store.runs.get(run.id)
        finished = None if ended is None else await self._calls.read_end(ended)
        return finished or refuse_call(wanted, failed_outcome(Reason.TOOL_FAILED, message))

    async def take_answer(self, event_id: object, result: object) -> str | None:
        """Take the answer of the current principal's client to a form; return what is wrong with it.

        An error in place of a `result` closes the form. An answer to anything else is ignored.
        """
        found = await self._calls.store.journal.find_call(event_id) if isinstance(event_id, str) else None
        if found is None or not needs_decision(found[1]):
            return None
        run = await self._calls.find_run(found[0], notifications.current.get().hosted)
        if run is None:
            return None
        try:
            answer = parse_answer(result or {"action": "cancel"})
        except MCPError as error:
            return str(error)
        await self._calls.decide_call(found[1].event_id, *read_answer(answer))
        return None

    async def _request_approval(self, wanted: RequestedCall, event: ApprovalRequested) -> None:
        """Send the form of a call to its client, unless a person has allowed it already."""
        send = notifications.current.get().send_request
        if wanted.approved:
            await self._calls.decide_call(event.event_id, "approved")
        elif send is not None:
            form = approval_form(event.name, event.arguments)
            await send({"jsonrpc": "2.0", "id": event.event_id, **form})
        elif (listener := current_listener()) is not None:
            listener(ProgressReport(0, None, f"{event.name} waits for an approval; decide it at /approvals"))
