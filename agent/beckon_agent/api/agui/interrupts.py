"""Interrupts of a thread: the approvals and forms that its runs wait for, and the answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ag_ui.core import ResumeEntry
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.create import ApprovalAnswer, decide_calls
from beckon_agent.api.responses.documents import approval_id, event_of_approval
from beckon_agent.api.responses.forms import FormAnswer, event_of_input, input_id
from beckon_agent.core.records import PersonState, StoredCall, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store
from beckon_contract.inputs import InputRequest, InvalidInput, next_call_id

FACE = "ag-ui"
"""What runs of this face are stored under."""

THREAD = "thread"
"""The member of a run's request with the client's id of the thread."""

_KINDS: tuple[PersonState, ...] = ("approval", "input")
_MOST_PENDING = 1000
_MAX_REASON = 2000
_SHOWN = 120


class _Decision(BaseModel):
    """The payload of the answer to an approval."""

    model_config = ConfigDict(extra="forbid", strict=True)

    approved: bool
    reason: str | None = Field(None, max_length=_MAX_REASON)


@dataclass(frozen=True, slots=True)
class Thread:
    """The client's thread with one agent."""

    id: str
    agent: str
    owner: str

    def has(self, run: StoredRun) -> bool:
        """Return True if a run is of this thread."""
        ours = (FACE, self.agent, self.owner, self.id)
        return (run.face, run.agent, run.owner, run.request.get(THREAD)) == ours


@dataclass(frozen=True, slots=True)
class _Answered:
    """An entry of `resume`, its place in the request, and the call that it answers, as it is now."""

    place: str
    entry: ResumeEntry
    call: StoredCall

    @property
    def is_open(self) -> bool:
        """True if the call waits for this very answer."""
        return self.call.needs_person and interrupt_id(self.call) == self.entry.interrupt_id

    def to_decision(self) -> ApprovalAnswer:
        """Return the decision on an approval; raise `ApiError` for a payload that is none.

        A cancelled entry is a denial.
        """
        identity = self.entry.interrupt_id
        if self.entry.status == "cancelled":
            reason = "the user closed the request without a decision"
            return ApprovalAnswer(approval_request_id=identity, approve=False, reason=reason)
        try:
            payload = _Decision.model_validate(self.entry.payload)
        except ValidationError:
            raise self._invalid(
                f"must be an object with 'approved', true or false, and maybe 'reason', a text of at most "
                f"{_MAX_REASON} characters; the arguments of a call cannot be edited"
            ) from None
        return ApprovalAnswer(approval_request_id=identity, approve=payload.approved, reason=payload.reason)

    def fill_form(self) -> InputRequest:
        """Return the call's request with this answer; raise `ApiError` if it does not fit the form."""
        try:
            return self._read_form().fill_form(self.call)
        except InvalidInput as error:
            raise self._invalid(f"does not fit the form: {error}") from None

    def repeats_input(self) -> bool:
        """Return True if a form has this very answer already. A later form of the call may be open."""
        return self._read_form().repeats(self.call)

    def _read_form(self) -> FormAnswer:
        """Return the answer to a form: the payload has its fields. A cancelled entry closes the form."""
        if self.entry.status == "cancelled":
            return FormAnswer(action="cancel")
        payload = {} if self.entry.payload is None else self.entry.payload
        if not isinstance(payload, dict):
            raise self._invalid("must be an object with the fields of the form")
        return FormAnswer(action="accept", content=payload)

    def _invalid(self, message: str) -> ApiError:
        place = f"{self.place}.payload"
        return ApiError(400, f"{place}: {message}", code="invalid_resume", param=place)


def interrupt_id(call: StoredCall) -> str:
    """Return the id of the interrupt of a call that waits for a person."""
    return input_id(call.event_id) if call.state == "input" else approval_id(call.event_id)


@dataclass(frozen=True, slots=True)
class Interrupts:
    """The interrupts in a store."""

    engine: Engine
    store: Store

    async def check_none(self, thread: Thread) -> None:
        """Raise `ApiError` if a run of the thread waits for answers."""
        waiting: dict[str, list[str]] = {}
        for kind in _KINDS:
            pending = await self.store.history.list_waiting_calls(
                thread.owner, kind, after=None, most=_MOST_PENDING
            )
            for one in pending:
                if one.face == FACE:
                    waiting.setdefault(one.run_id, []).append(interrupt_id(one.call))
        for run_id, interrupts in waiting.items():
            run = await self.engine.get(run_id)
            if run is not None and thread.has(run):
                ids = ", ".join(interrupts)
                message = f"this thread waits for answers; send 'resume' with an entry for each of {ids}"
                raise ApiError(409, message, code="interrupts_pending")

    async def answer(self, resume: Sequence[ResumeEntry], thread: Thread) -> StoredRun:
        """Answer the interrupts of a run; return the run.

        The same answers again have no effect. Raises `ApiError` for interrupts that the thread does not have
        or that have another answer, for answers that do not fit, and if an interrupt is left unanswered.
        """
        run, answered = await self._find_calls(resume, thread)
        if any(one.is_open for one in answered):
            await self._check_whole(run, answered)
        # All answers are read before the first one counts.
        decisions = [
            (one.call, one.to_decision()) for one in answered if event_of_approval(one.entry.interrupt_id)
        ]
        forms = [one for one in answered if event_of_input(one.entry.interrupt_id)]
        inputs = [(one.call.event_id, one.fill_form()) for one in forms if one.is_open]
        if not all(one.is_open or one.repeats_input() for one in forms):
            raise _form_conflict()
        await decide_calls(run, decisions, self.engine)
        for event_id, answers in inputs:
            if not await self.engine.answer_input(event_id, answers):
                raise _form_conflict()
        return run

    async def _find_calls(
        self, resume: Sequence[ResumeEntry], thread: Thread
    ) -> tuple[StoredRun, list[_Answered]]:
        runs: set[str] = set()
        answered: list[_Answered] = []
        for at, entry in enumerate(resume):
            run_and_call = await self._find_call(entry.interrupt_id)
            if run_and_call is None:
                raise _not_found(entry)
            runs.add(run_and_call[0])
            answered.append(_Answered(f"resume.{at}", entry, run_and_call[1]))
        run = await self.engine.get(next(iter(runs)))
        if run is None or len(runs) > 1 or not thread.has(run):
            raise _not_found(resume[0])
        return run, answered

    async def _find_call(self, interrupt: str) -> tuple[str, StoredCall] | None:
        """Return the call of an interrupt and the id of its run, also if it has its answer."""
        if event_id := event_of_approval(interrupt):
            return await self.store.journal.find_call(event_id)
        event_id = event_of_input(interrupt)
        if event_id is None:
            return None
        journal = self.store.journal
        run_and_call = await journal.find_call(event_id) or await journal.find_call(next_call_id(event_id))
        return run_and_call if run_and_call and run_and_call[1].input_request is not None else None

    async def _check_whole(self, run: StoredRun, answered: Sequence[_Answered]) -> None:
        """Raise `ApiError` if a call of a run waits for a person and has no answer here."""
        answered_ids = {one.entry.interrupt_id for one in answered}
        calls = (await self.store.runs.load_past(run.id)).calls
        unanswered = [interrupt_id(call) for call in calls if call.needs_person]
        if missing := ", ".join(one for one in unanswered if one not in answered_ids):
            message = f"answer all interrupts of a run at once; these are left: {missing}"
            raise ApiError(400, message, code="interrupts_missing", param="resume")


def _form_conflict() -> ApiError:
    message = "resume: a form has another answer already, its time is over, or the run has ended"
    return ApiError(409, message, code="already_decided", param="resume")


def _not_found(entry: ResumeEntry) -> ApiError:
    shown = entry.interrupt_id[:_SHOWN]
    message = f"resume: this thread has no interrupt {shown!r}; send those that ended its last run"
    return ApiError(404, message, code="interrupt_not_found", param="resume")
