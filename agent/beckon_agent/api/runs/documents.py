"""Runs, their steps and their events as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from beckon_agent.api.responses.documents import approval_id, response_id
from beckon_agent.api.runs.input_documents import InputState, input_state
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Usage, opening_text, sum_usages
from beckon_agent.core.records import (
    CallState,
    Decision,
    Exchanged,
    Past,
    RunStatus,
    RunSummary,
    StoredCall,
    StoredRun,
    StoredTurn,
    Waiting,
)
from beckon_agent.core.run_events import Ending
from beckon_agent.tool_calls.recorded_events import shown_document
from beckon_contract.resources.tools import CallOrigin

MOST_SHOWN = (
    65_536  # characters of a result, a text or arguments; all of it is in the events, or the response
)


class RunUsage(TypedDict):
    """The tokens used by a run or a step."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class RunError(TypedDict):
    """The failure of a run; `code` is for programs."""

    code: str
    message: str


class RunFields(TypedDict):
    """A run; times are seconds since the epoch."""

    id: str
    object: Literal["run"]
    agent: str
    face: str
    status: RunStatus
    ending: Ending | None
    error: RunError | None
    created_at: float
    ended_at: float | None
    background: bool
    conversation: str | None
    previous: str | None
    takeovers: int
    taken_over_at: float | None


class ToolCount(TypedDict):
    """The number of calls of one tool."""

    name: str
    calls: int


class RunListItem(RunFields):
    """A run in a list."""

    question: str
    usage: RunUsage | None
    tools: list[ToolCount]
    calls_failed: int
    approvals_waiting: int
    inputs_waiting: int


class ApprovalState(TypedDict):
    """The approval of a call, decided or not."""

    id: str
    decision: Decision | None
    by: str | None
    reason: str | None
    decided_at: float | None


class RunCall(TypedDict):
    """A call with its state, times and outcome."""

    event_id: str
    id: str
    name: str
    origin: CallOrigin
    arguments: Any
    state: CallState
    requested_at: float | None
    sent_at: float | None
    finished_at: float | None
    seconds: float | None
    attempts: int
    deliveries: int | None
    deadline: float | None
    report: Any
    failed: bool
    result: Any
    cut: bool
    reason: Any
    dead_letter: str | None
    approval: ApprovalState | None
    input: InputState | None


class RunStep(TypedDict):
    """An answer of the model, and its calls."""

    step: int
    model: Any
    text: str
    reasoning: str
    cut: bool
    finish_reason: str | None
    usage: RunUsage | None
    seconds: float | None
    ended_at: float | None
    tools_sent: list[str]
    calls: list[RunCall]


class RunDocument(RunFields):
    """A run with its steps."""

    question: str
    usage: RunUsage | None
    steps: list[RunStep]


class ExchangedEvents(TypedDict):
    """The events of a call; the `omitted` members count bytes of data too large to store."""

    id: str
    name: str
    call: dict[str, Any] | None
    call_omitted: int
    reply: dict[str, Any] | None
    reply_omitted: int
    problem: Any


class WaitingApproval(TypedDict):
    """A call waiting for approval."""

    id: str
    object: Literal["approval"]
    run: str
    response: str | None
    agent: str
    question: str
    name: str
    origin: CallOrigin
    arguments: Any
    cut: bool
    requested_at: float | None


class DecidedApproval(TypedDict):
    """A decision on a call."""

    id: str
    object: Literal["approval"]
    run: str
    decision: Decision


def summary_document(summary: RunSummary) -> RunListItem:
    """Return a run as an item of a list."""
    return {
        **_run_fields(summary.run),
        "question": summary.question,
        "usage": _to_usage(summary.usage),
        "tools": [{"name": name, "calls": calls} for name, calls in summary.tools.items()],
        "calls_failed": summary.failed,
        "approvals_waiting": summary.approvals,
        "inputs_waiting": summary.inputs,
    }


def run_document(run: StoredRun, past: Past) -> RunDocument:
    """Return a run with its steps."""
    calls = {
        step: [call for call in past.calls if call.step == step] for step in {c.step for c in past.calls}
    }
    used = run.usage or sum_usages(turn.usage for turn in past.turns)
    return {
        **_run_fields(run),
        "question": opening_text(run.input) or "",
        "usage": _to_usage(used),
        "steps": [_to_step(turn, calls.get(turn.step, ())) for turn in past.turns],
    }


def _run_fields(run: StoredRun) -> RunFields:
    return {
        "id": run.id,
        "object": "run",
        "agent": run.agent,
        "face": run.face,
        "status": run.status,
        "ending": run.ending,
        "error": {"code": run.error["code"], "message": run.error["message"]} if run.error else None,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
        "background": run.background,
        "conversation": run.conversation,
        "previous": run.previous,
        "takeovers": run.takeovers or 0,
        "taken_over_at": run.taken_over_at,
    }


def _to_step(turn: StoredTurn, calls: Sequence[StoredCall]) -> RunStep:
    answer = turn.text or turn.details.refusal
    text, reasoning = answer[:MOST_SHOWN], turn.reasoning[:MOST_SHOWN]
    return {
        "step": turn.step,
        "model": None if turn.prompt is None else turn.prompt.get("model"),
        "text": text,
        "reasoning": reasoning,
        "cut": (text, reasoning) != (answer, turn.reasoning),
        "finish_reason": turn.finish_reason,
        "usage": _to_usage(turn.usage),
        "seconds": turn.seconds,
        "ended_at": turn.ended_at,
        "tools_sent": list(turn.sent),
        "calls": [call_document(call, turn.ended_at) for call in calls],
    }


def call_document(call: StoredCall, requested_at: float | None) -> RunCall:
    """Return a call with its state, times and outcome."""
    arguments, arguments_cut = _cut_value(call.arguments)
    result, result_cut = _cut_value(call.result)
    return {
        "event_id": call.event_id,
        "id": call.id,
        "name": call.name,
        "origin": call.origin,
        "arguments": arguments,
        "state": call.state,
        "requested_at": requested_at,
        "sent_at": call.sent_at,
        "finished_at": call.finished_at,
        "seconds": call.seconds,
        "attempts": call.attempts or 0,
        "deliveries": call.deliveries,
        "deadline": call.deadline,
        "report": None if call.state == "done" else shown_document(call.report),
        "failed": call.failed,
        "result": result,
        "cut": arguments_cut or result_cut,
        "reason": _error_of(call).get("reason") if call.failed else None,
        "dead_letter": _dead_letter(call),
        "approval": _approval_state(call),
        "input": input_state(call),
    }


def _approval_state(call: StoredCall) -> ApprovalState | None:
    if call.decision is None and call.state != "approval":
        return None
    return {
        "id": approval_id(call.event_id),
        "decision": call.decision,
        "by": call.decided_by,
        "reason": call.decision_reason or None,
        "decided_at": call.decided_at,
    }


def _error_of(call: StoredCall) -> Mapping[str, object]:
    return json_values.as_mapping(json_values.as_mapping(call.result).get("error"))


def _dead_letter(call: StoredCall) -> str | None:
    """Return the reason of a failed delivery, `None` for other calls."""
    error = _error_of(call)
    return (
        json_values.as_text(shown_document(error.get("message")))
        if call.failed and error.get("reason") == "undeliverable"
        else None
    )


def _cut_value(value: object) -> tuple[object, bool]:
    """Return a JSON value, cut if long, and True if cut.

    A long value is replaced by the first `MOST_SHOWN` characters of its text.
    """
    value = shown_document(value)
    text = value if isinstance(value, str) else json_values.to_json(value)
    return (value, False) if len(text) <= MOST_SHOWN else (text[:MOST_SHOWN], True)


def exchanged_document(exchanged: Exchanged) -> ExchangedEvents:
    """Return the sent event of a call and its reply."""
    sent, came = exchanged.call or {}, exchanged.reply or {}
    return {
        "id": exchanged.event_id,
        "name": exchanged.name,
        "call": _shown_event(sent),
        "call_omitted": sent.get("omitted", 0),
        "reply": _shown_event(came),
        "reply_omitted": came.get("omitted", 0),
        "problem": shown_document(came.get("problem")),
    }


def _shown_event(passed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an event without tokens. Its data may have one, as may an event stored by an earlier version."""
    event = passed.get("event")
    return shown_document(event) if isinstance(event, Mapping) else None


def waiting_document(waiting: Waiting) -> WaitingApproval:
    """Return a call waiting for approval."""
    arguments, cut = _cut_value(waiting.call.arguments)
    return {
        "id": approval_id(waiting.call.event_id),
        "object": "approval",
        "run": waiting.run_id,
        "response": response_id(waiting.run_id, waiting.part) if waiting.face == "responses" else None,
        "agent": waiting.agent,
        "question": waiting.question,
        "name": waiting.call.name,
        "origin": waiting.call.origin,
        "arguments": arguments,
        "cut": cut,
        "requested_at": waiting.since,
    }


def _to_usage(usage: Usage | None) -> RunUsage | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
