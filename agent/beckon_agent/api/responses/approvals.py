"""Decisions on the approval requests of a waiting run.

They resume the run. The part of the run after them is a new response.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.ids import approval_id, event_of_approval
from beckon_agent.api.responses.output import Item
from beckon_agent.api.responses.validation import read
from beckon_agent.core.records import FINAL, StoredCall, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store

_REQUEST, _RESPONSE = "mcp_approval_request", "mcp_approval_response"
_SHOWN = 120


class ApprovalAnswer(BaseModel):
    """A decision on an approval request."""

    approval_request_id: str
    approve: bool
    reason: str | None = Field(None, max_length=2000)


@dataclass(frozen=True, slots=True)
class Answers:
    """A client's decisions about the calls of one run."""

    run: StoredRun
    part: int
    """The part of the run that follows the answers."""

    decided: Sequence[tuple[StoredCall, ApprovalAnswer]]


async def answers_in(given: str | Sequence[Item], engine: Engine, store: Store, owner: str) -> Answers | None:
    """Return the decisions at the end of an input.

    `None` if the input ends with other items. Answers before other items are history: clients that manage
    the history themselves send it back. Raises `ApiError` for answers to approval requests that this owner
    does not have.
    """
    answers = _trailing(given)
    decided: list[tuple[StoredCall, ApprovalAnswer]] = []
    runs: set[str] = set()
    for place, answer in answers:
        found = await store.journal.find_call(event_of_approval(answer.approval_request_id) or "")
        if found is None:
            raise _unknown(place, answer)
        runs.add(found[0])
        decided.append((found[1], answer))
    if not decided:
        return None
    run = await engine.get(next(iter(runs)))
    if run is None or run.owner != owner or len(runs) > 1:
        raise _unknown(*answers[0])
    waiting = [call for call in (await store.runs.load_past(run.id)).calls if _wanted_approval(call)]
    step = max(call.step for call, _ in decided)
    _check_whole([call for call in waiting if call.step == step], decided)
    return Answers(run, 1 + len({call.step for call in waiting if call.step <= step}), decided)


async def decide(answers: Answers, engine: Engine) -> None:
    """Pass the decisions on to the engine.

    Raises `ApiError` if a call was already decided otherwise, or the run ended without a decision on it.
    """
    for call, answer in answers.decided:
        if answers.run.status in FINAL and call.decision is None:
            raise _conflict(answer, f"nobody waits for an answer: the response is {answers.run.status}")
        decision = "approved" if answer.approve else "denied"
        if call.decision is None and call.state == "approval":
            done = await engine.decide_call(
                call.event_id,
                "approved" if answer.approve else "denied",
                by=answers.run.owner,
                reason=answer.reason or "",
            )
            if done:
                continue
            raise _conflict(answer, "somebody has decided about this call at this moment")
        if call.decision != decision:
            raise _conflict(answer, f"this call was {call.decision or 'ended'} already")


def _wanted_approval(call: StoredCall) -> bool:
    return call.decision is not None or call.state == "approval"


def _check_whole(waiting: Sequence[StoredCall], decided: Sequence[tuple[StoredCall, ApprovalAnswer]]) -> None:
    """Raise `ApiError` if an approval request is left unanswered.

    The run would keep waiting, and its client would not know.
    """
    answered = {call.event_id for call, _ in decided}
    open_ = [call for call in waiting if call.decision is None and call.event_id not in answered]
    if open_:
        names = ", ".join(approval_id(call.event_id) for call in open_)
        message = f"answer all questions of a response at once; these are left: {names}"
        raise ApiError(400, message, code="approvals_missing", param="input")


def _trailing(given: str | Sequence[Item]) -> list[tuple[str, ApprovalAnswer]]:
    """Return the answers at the end of an input, each with its place."""
    found: list[tuple[str, ApprovalAnswer]] = []
    items = [] if isinstance(given, str) else given
    for index in range(len(items) - 1, -1, -1):
        kind = items[index].get("type")
        if kind not in (_RESPONSE, _REQUEST):
            break
        if kind == _RESPONSE:
            place = f"input.{index}"
            found.append((place, read(ApprovalAnswer, items[index], place)))
    return found[::-1]


def _unknown(place: str, answer: ApprovalAnswer) -> ApiError:
    message = f"{place}: there is no question {answer.approval_request_id[:_SHOWN]!r} to answer"
    return ApiError(404, message, code="approval_request_not_found", param=place)


def _conflict(answer: ApprovalAnswer, message: str) -> ApiError:
    shown = f"{answer.approval_request_id[:_SHOWN]}: {message}"
    return ApiError(409, shown, code="already_decided", param="input")
