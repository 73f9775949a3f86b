"""Stored calls whose clients wait for the result.

A client of 2026-07-28 gets the form for a person as a result, and repeats its call with the answer;
`requestState` is the id of the stored call's event. A client of an earlier revision gets the request
`elicitation/create` on the stream of its call, and may answer to another replica.
"""

import math
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.agent_tool import agent_behind
from beckon_agent.api.mcp.call import MadeCall, RequestedCall, refuse_call
from beckon_agent.api.mcp.input_requests import (
    Context,
    OpenRequest,
    deny_call,
    input_methods,
    open_requests,
    refuse_request,
    take_answers,
)
from beckon_agent.api.mcp.stored_calls import StoredCalls, is_call
from beckon_agent.core.records import StoredCall, StoredRun
from beckon_agent.core.run_events import (
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    InputRequested,
    RunFailed,
)
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_agent.tool_calls.progress import ProgressReport, current_listener
from beckon_contract.failures import Reason
from beckon_contract.inputs import InputRequest, first_call_id, next_call_id

_PERSON_SECONDS = 3_600.0
_ATTEMPTS = 20  # a tool sends ten requests at most, and their answers may come side by side


@dataclass(frozen=True, slots=True)
class _Caller:
    """A client that waits for its call; each of its `answers` is taken once, each request `sent` once."""

    context: Context
    wanted: RequestedCall
    answers: dict[str, object]
    sent: set[str] = field(default_factory=set)


class AwaitedCalls:
    """Stored calls whose clients wait for the result, and may be sent a form."""

    def __init__(self, calls: StoredCalls) -> None:
        self._calls = calls

    async def make_call(
        self, context: Context, answers: types.InputResponses | None, wanted: RequestedCall
    ) -> MadeCall:
        """Make a call and wait for its end. It is cancelled if this task is.

        A client of 2026-07-28 gets the result `input_required` if the tool requests input for which there is
        no answer by its key in `answers`. Raises the errors of `Engine.start`, and `MCPError` for an answer
        that does not fit.
        """
        prepared = wanted.prepare()
        if isinstance(prepared.action, CallOutcome):
            return refuse_call(wanted, prepared.action)
        run = await self._calls.start_call(wanted.hosted, prepared)
        return await self._wait_for(_Caller(context, wanted, _to_json(answers)), run)

    async def resume_call(
        self, state: str, answers: types.InputResponses | None, context: Context, wanted: RequestedCall
    ) -> MadeCall:
        """Go on with a call whose tool has requested input; `state` is its `requestState`.

        Raises `MCPError` for the state of another call, and for answers that do not fit.
        """
        run = await self._calls.find_run(state.partition(".")[0], wanted.hosted)
        if run is None or not await self._belongs_to(run, state, wanted):
            message = "requestState is not that of this call: it was changed, or the call has been forgotten"
            raise MCPError(types.INVALID_PARAMS, message)
        return await self._wait_for(_Caller(context, wanted, _to_json(answers)), run)

    async def _belongs_to(self, run: StoredRun, state: str, wanted: RequestedCall) -> bool:
        """Return True if a run is that of a call, or of an agent as a tool, and has the call of a state."""
        calls = (await self._calls.store.runs.load_past(run.id)).calls
        if first_call_id(state) not in {first_call_id(call.event_id) for call in calls}:
            return False
        arguments = wanted.prepare().arguments
        if is_call(run):
            return (calls[0].name, calls[0].arguments) == (wanted.name, arguments)
        agent = agent_behind(wanted.hosted, wanted.name)
        return agent is not None and [{"role": "user", "content": arguments.get("message")}] == list(
            run.input
        )

    async def _wait_for(self, caller: _Caller, run: StoredRun) -> MadeCall:
        ended = False
        try:
            with anyio.move_on_after(None) as limit:
                result = await self._follow_call(caller, run, limit)
                ended = True
                return result
        except MCPError:
            ended = True  # the client may send a better answer
            raise
        finally:
            if not ended:
                with anyio.CancelScope(shield=True):
                    await self._calls.engine.cancel(run.id)
        return deny_call(caller.wanted, f"no decision of a person came in {_PERSON_SECONDS:g} seconds")

    async def _follow_call(self, caller: _Caller, run: StoredRun, limit: anyio.CancelScope) -> MadeCall:
        """Return the end of a call or of an agent's run; send a form for each call that needs a person."""
        listener = current_listener()
        message = "the call was cancelled"
        async with aclosing(self._calls.engine.follow(run.id, wait=True)) as events:
            async for _, event in events:
                match event:
                    case ApprovalRequested() | InputRequested():
                        limit.deadline = anyio.current_time() + _PERSON_SECONDS
                        if requested := await self._put_requests(caller, run, event):
                            return requested
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
        return finished or refuse_call(caller.wanted, failed_outcome(Reason.TOOL_FAILED, message))

    async def take_answer(self, request_id: object, result: object) -> str | None:
        """Take the answer of the current principal's client to a request; return what is wrong with it.

        An error in place of a `result` closes the request. An answer to anything else is ignored.
        """
        if not isinstance(request_id, str):
            return None
        methods = notifications.current.get().input_methods
        for _ in range(_ATTEMPTS):
            call = await self._find_waiting_call(request_id.partition("/")[0])
            pending = [] if call is None else open_requests(call, methods)
            name = next((one.name for one in pending if one.id == request_id), None)
            if call is None or name is None:
                return None
            try:
                if await take_answers(self._calls, call, {name: result or {"action": "cancel"}}, methods):
                    return None
            except MCPError as error:
                return str(error)
        return "other answers to the call came at the same moment; send this one again"

    async def _find_waiting_call(self, event_id: str) -> StoredCall | None:
        """Return a call of the current principal that waits for its client.

        Each answer to a part of its requests gives it the next event id.
        """
        for _ in range(_ATTEMPTS):
            run_and_call = await self._calls.store.journal.find_call(event_id)
            if run_and_call is not None:
                run = await self._calls.find_run(run_and_call[0], notifications.current.get().hosted)
                return run_and_call[1] if run is not None and run_and_call[1].needs_person else None
            event_id = next_call_id(event_id)
        return None

    async def _put_requests(
        self, caller: _Caller, run: StoredRun, event: ApprovalRequested | InputRequested
    ) -> dict[str, object] | None:
        """Put the requests of a call to its client; return them if they are a result.

        None are put that have their answers already: in the store, or from this client.
        """
        run_and_call = await self._calls.store.journal.find_call(event.event_id)
        if run_and_call is None or not run_and_call[1].needs_person:
            return None
        call, context = run_and_call[1], caller.context
        methods = input_methods(context)
        pending = open_requests(call, methods)
        answers = {one.name: caller.answers.pop(one.key) for one in pending if one.key in caller.answers}
        if caller.wanted.approved and call.state == "approval":
            await self._calls.decide_call(call.event_id, "approved")
        elif answers:
            await take_answers(self._calls, call, answers, methods)
        elif not pending:
            await self._refuse_input(caller, run, call)
        elif context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            requests = {one.key: one.request for one in pending}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": call.event_id}
        else:
            await _send_requests(pending, caller.sent)
        return None

    async def _refuse_input(self, caller: _Caller, run: StoredRun, call: StoredCall) -> None:
        """Refuse a call that needs input of its client; an approval can be decided elsewhere.

        Raises `MCPError` if the call is the client's own, in revisions with an error for it.
        """
        if call.state == "input":
            message = f"{call.name} needs input, and the client of this run cannot answer its requests"
            denied = failed_outcome(Reason.DENIED, message)
            await self._calls.store.journal.finish_call(
                call.event_id, result=denied.result, failed=True, seconds=None
            )
            if is_call(run):
                refuse_request(caller.context, caller.wanted, InputRequest.from_stored(call.input_request))
        elif (listener := current_listener()) is not None:
            listener(ProgressReport(0, None, f"{call.name} waits for an approval; decide it at /approvals"))


def _to_json(answers: types.InputResponses | None) -> dict[str, object]:
    """Return a client's answers as JSON values."""
    return {
        key: one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, one in (answers or {}).items()
    }


async def _send_requests(pending: Sequence[OpenRequest], sent: set[str]) -> None:
    """Send requests that were not sent yet, on the stream of a client's call."""
    send = notifications.current.get().send_request
    for one in pending:
        if send is not None and one.id not in sent:
            sent.add(one.id)
            await send({"jsonrpc": "2.0", "id": one.id, **one.request})
