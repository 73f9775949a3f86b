"""Checkpoints of a run in the store, and its progress from them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from beckon_agent.core.model_types import Message, ToolCall, Turn, sum_usages
from beckon_agent.core.records import CallState, Exchanged, LogEntries, Past, StoredCall, StoredTurn
from beckon_agent.core.run_events import CallFinished
from beckon_agent.durable.prompts import PromptArchive, PromptRecorder
from beckon_agent.run.turn import assistant_message, ending_of, result_message
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.tool_calls.caller import AnswersLater, InputNeeded
from beckon_agent.tool_calls.checkpoint import RunProgress, ToolCallState
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome, is_repeatable, unknown_outcome
from beckon_agent.tool_calls.validation import HandedBack, NeedsApproval, PreparedCall
from beckon_contract.failures import Reason
from beckon_contract.inputs import InputAnswer, InputRequest, next_call_id
from beckon_contract.jsontext import dumps
from beckon_contract.resources.tools import Tool


def turn_to_store(step: int, turn: Turn, prompt: Mapping[str, object] | None) -> StoredTurn:
    """Return the stored form of a model's answer, with its prompt."""
    return StoredTurn(
        step=step,
        text=turn.text,
        reasoning=turn.reasoning,
        finish_reason=turn.finish_reason,
        usage=turn.usage,
        sent=turn.sent,
        written=[asdict(call) for call in turn.calls],
        prompt=prompt,
        details=turn.details,
    )


def call_to_store(step: int, number: int, call: ToolCallState) -> StoredCall:
    """Return the stored form of a call before it is made. A call that is not made has its result already."""
    prepared = call.prepared
    known = prepared.action if isinstance(prepared.action, CallOutcome) else None
    return StoredCall(
        event_id=call.event_id,
        step=step,
        number=number,
        id=prepared.tool_call.id,
        name=prepared.tool_call.name,
        arguments=prepared.arguments,
        extra=prepared.tool_call.extra,
        origin=prepared.tool_call.origin,
        state=_initial_state(prepared),
        result=known.result if known else None,
        failed=known is not None and known.failed,
        seconds=0.0 if known else None,
    )


def _initial_state(prepared: PreparedCall) -> CallState:
    if isinstance(prepared.action, CallOutcome):
        return "done"
    if isinstance(prepared.action, HandedBack):
        return "client"
    return "approval" if isinstance(prepared.action, NeedsApproval) else "open"


def progress_from_past(past: Past, tools: Mapping[str, Tool], characters: int) -> RunProgress:
    """Return the progress of a run, read back from its checkpoints.

    Results are cut for the model to this number of `characters`. Unfinished calls go to the tools as they are
    today.
    """
    if not past.turns:
        return RunProgress()
    by_step = {step: list(calls) for step, calls in groupby(past.calls, lambda call: call.step)}
    messages: list[Message] = []
    calls: list[ToolCallState] = []
    for turn in past.turns:
        messages += _to_messages(calls, characters)
        calls = [_recall_call(call, tools) for call in by_step.get(turn.step, ())]
        messages.append(assistant_message(turn, [call.prepared for call in calls]))
    last = past.turns[-1]
    return RunProgress(
        step=last.step + 1,
        messages=messages,
        unfinished=calls,
        usage=sum_usages(turn.usage for turn in past.turns),
        elsewhere=sum(call.tokens for call in past.calls),
        fingerprint=next((one for turn in reversed(past.turns) if (one := turn.details.fingerprint)), ""),
        answered=None if calls else ending_of(last.finish_reason),
        sent=last.sent,
    )


def _to_messages(calls: Sequence[ToolCallState], characters: int) -> list[Message]:
    return [result_message(call.finished, characters) for call in calls if call.finished is not None]


def _recall_call(stored: StoredCall, tools: Mapping[str, Tool]) -> ToolCallState:
    arguments = dumps(stored.arguments).decode()
    tool_call = ToolCall(stored.id, stored.name, arguments, stored.extra, stored.origin)
    was_sent = stored.state == "sent"
    answer = None if stored.input_answer is None else InputAnswer.from_stored(stored.input_answer)
    action = _action_of(stored, tools)
    prepared = PreparedCall(tool_call, stored.arguments, action, again=was_sent, answer=answer)
    posted = was_sent and _reply_may_come(tools.get(stored.name))
    finished = None
    if stored.state == "done":
        seconds, tokens = stored.seconds or 0.0, stored.tokens
        finished = CallFinished(stored.id, stored.name, stored.result, stored.failed, seconds, tokens)
    return ToolCallState(
        stored.event_id,
        prepared,
        finished,
        accepted=stored.state == "accepted",
        posted=posted,
        input_request=_pending_request(stored),
    )


def _pending_request(stored: StoredCall) -> InputRequest | None:
    if stored.state != "input" or stored.input_request is None:
        return None
    return InputRequest.from_stored(stored.input_request)


def _reply_may_come(tool: Tool | None) -> bool:
    """True if a possibly delivered call must wait for its reply. It is not posted again then."""
    return tool is None or not (is_repeatable(tool) or tool.dispatch == "direct")


def _action_of(
    stored: StoredCall, tools: Mapping[str, Tool]
) -> Tool | CallOutcome | NeedsApproval | HandedBack:
    if stored.state == "done":
        return CallOutcome(stored.result, stored.failed)
    if stored.state == "client":
        return HandedBack()
    if stored.decision == "denied":
        because = f": {stored.decision_reason}" if stored.decision_reason else ""
        return failed_outcome(Reason.DENIED, f"a person did not allow this call{because}")
    tool = tools.get(stored.name)
    if stored.state == "sent" and (tool is None or _is_lost(tool)):
        return unknown_outcome("the agent was restarted during the call, and no reply came in time")
    if tool is None:
        return failed_outcome(Reason.UNKNOWN_TOOL, f"the tool {stored.name} is not offered any more")
    return NeedsApproval(tool) if stored.state == "approval" and stored.decision is None else tool


def _is_lost(tool: Tool) -> bool:
    """True if the reply to a direct call was lost with its connection.

    The connection belonged to a process that is dead, and the call cannot be repeated.
    """
    return tool.dispatch == "direct" and not is_repeatable(tool)


logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_LOOK = 0.1
_LONGEST_LOOK = 1.0
_LONGEST_PAUSE = 5.0
_HANDOVER_SECONDS = 5.0  # a shim gives a reply without a receipt to the late reply sink after three
_STORE_SECONDS = 600.0

WithLog = Callable[[Callable[[LogEntries], Awaitable[None]]], Awaitable[None]]
"""Makes a step of the store with the published events that its log does not have yet."""


class StoredCheckpoints:
    """Stores the checkpoints of one run for its holder.

    `record_turn`, `record_sending` and `record_acceptance` raise `NotHeld` once another process has the run.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        holder: str,
        archive: PromptArchive,
        asking: PromptRecorder,
        *,
        with_log: WithLog,
    ) -> None:
        self._journal = store.journal
        self._run_id = run_id
        self._holder = holder
        self._archive = archive
        self._asking = asking
        self._store_with_log = with_log

    async def record_turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        """Store an answer of the model with its calls and its prompt.

        Events of the run not yet in the log are stored with it.
        """
        calls_to_store = [call_to_store(step, number, call) for number, call in enumerate(calls)]
        prompt = None if self._asking.last is None else await self._archive.store_prompt(self._asking.last)
        stored = replace(turn_to_store(step, turn, prompt), seconds=self._asking.seconds)
        await self._store_with_log(
            lambda entries: self._journal.add_turn(
                self._run_id, self._holder, stored, calls_to_store, entries
            )
        )

    async def record_sending(self, call: ToolCallState, *, seconds: float) -> None:
        """Mark a call as sent before making it, unless it is refused.

        If the store does not answer, it is unknown whether it has the mark, but the call was not posted: so
        this is tried again until the store answers, as in `_until_stored`.
        """
        if not isinstance(call.prepared.action, CallOutcome):
            sent = partial(
                self._journal.mark_sent, self._run_id, self._holder, call.event_id, seconds=seconds
            )
            await _until_stored(sent)

    async def wait_for_reply(self, call: ToolCallState) -> CallFinished | None:
        """Wait until the reply of a call is stored, or overdue.

        It is stored by the replica that takes late replies. A reply that came in time to an earlier process,
        which died before it could store the reply, is handed over later: it is overdue only some seconds
        after it was due. Return `None` if it is overdue; raises `AnswersLater` if the tool has accepted the
        call to answer it later, and `InputNeeded` if it requests input.
        """
        pause, handover = _LOOK, _HANDOVER_SECONDS if call.prepared.again else 0.0
        while (run_and_call := await self._journal.find_due_call(call.event_id)) is not None:
            stored, left = run_and_call
            if stored.state == "done":
                seconds, tokens = stored.seconds or 0.0, stored.tokens
                return CallFinished(stored.id, stored.name, stored.result, stored.failed, seconds, tokens)
            if stored.state == "accepted":
                raise AnswersLater
            if (request := _pending_request(stored)) is not None:
                raise InputNeeded(request)
            left += handover
            if left <= 0:
                return None
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, _LONGEST_LOOK)
        answered = await self._journal.find_call(next_call_id(call.event_id))
        if answered is not None:  # the form has come as an event, and a person was quicker than this loop
            raise InputNeeded(InputRequest.from_stored(answered[1].input_request))
        return None

    async def record_acceptance(self, call: ToolCallState, *, seconds: float) -> None:
        """Mark a call as answered later; an answer already stored stays."""
        await self._journal.mark_accepted(
            self._run_id, self._holder, call.event_id, seconds=seconds, exchanged=_to_exchanged(call)
        )
        _confirm_receipt(call)

    async def record_input_request(
        self, call: ToolCallState, request: InputRequest, *, seconds: float
    ) -> None:
        """Store the form of a call; an answer already stored stays."""
        await _until_stored(
            partial(
                self._journal.store_input_request,
                call.event_id,
                request.to_document(),
                seconds=seconds,
                exchanged=_to_exchanged(call),
            )
        )
        _confirm_receipt(call)

    async def record_result(self, call: ToolCallState) -> None:
        """Store the result of a call, or take the one already stored. A late reply may have come earlier."""
        answer = call.finished
        if answer is None:
            return
        first = await _until_stored(
            partial(
                self._journal.finish_call,
                call.event_id,
                result=answer.result,
                failed=answer.failed,
                seconds=answer.seconds,
                tokens=answer.tokens,
                exchanged=_to_exchanged(call),
            )
        )
        if not first and (run_and_call := await self._journal.find_call(call.event_id)) is not None:
            stored = run_and_call[1]
            call.finished = replace(answer, result=stored.result, failed=stored.failed, tokens=stored.tokens)
        _confirm_receipt(call)


async def _until_stored(step: Callable[[], Awaitable[Result]]) -> Result:
    """Repeat a step of the store until the store answers.

    The step may be made twice. Only this process knows the data it stores: after a restart the call would
    have to be posted again, or end without its result. Raises `StoreUnavailable` after ten minutes.
    """
    gives_up, pause = time.monotonic() + _STORE_SECONDS, _LOOK
    while True:
        try:
            return await step()
        except StoreUnavailable as error:
            if time.monotonic() + pause > gives_up:
                raise
            logger.warning("the store does not answer, tried again in %.2g s: %s", pause, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _confirm_receipt(call: ToolCallState) -> None:
    """Confirm the stored reply of a call to its forwarder."""
    if call.noted is not None and call.noted.confirm is not None:
        call.noted.confirm()


def _to_exchanged(call: ToolCallState) -> Exchanged | None:
    return (
        None if call.noted is None else call.noted.to_exchanged(call.event_id, call.prepared.tool_call.name)
    )
