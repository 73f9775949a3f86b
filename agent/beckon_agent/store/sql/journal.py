"""The steps of runs: turns of the model, and states of calls.

A transaction locks the run first and its calls after it, so that two never wait for each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, Double, Row, Update, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from beckon_agent.core.model_types import NO_DETAILS
from beckon_agent.core.records import (
    FINAL,
    Decision,
    Exchanged,
    LogEntries,
    RunStatus,
    StoredCall,
    StoredTurn,
)
from beckon_agent.store.base import NO_ENTRIES
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.database import now as clock
from beckon_agent.store.sql.steps import (
    CALL_COLUMNS,
    LOCK_HELD,
    append_events,
    lock_held,
    lost_over,
    queue_for_new_form,
    requeue_run,
)
from beckon_agent.store.sql.tables import calls, runs, turns
from beckon_contract.cloudevents.extensions import read_deliveries
from beckon_contract.inputs import next_call_id

_CALL_MEMBERS = tuple(member.name for member in fields(StoredCall))
_WITH_RUN = select(calls.c.run_id, *CALL_COLUMNS)

_LOCK_RUN_OF = (
    select(runs.c.id, runs.c.status)
    .join(calls, calls.c.run_id == runs.c.id)
    .where(calls.c.event_id == bindparam("the_call"))
    .with_for_update(of=runs, key_share=True)
)
_GOES_ON = update(runs).where(runs.c.id == bindparam("the_run")).values(lost=0)
_ADD_TURN = insert(turns).values(ended_at=clock())
_ADD_CALLS = insert(calls)
_OF_HELD = and_(
    calls.c.event_id == bindparam("the_call"),
    calls.c.run_id == LOCK_HELD.scalar_subquery(),
)
_SEND = (
    update(calls)
    .where(
        _OF_HELD,
        or_(calls.c.state == "open", calls.c.state == "sent"),
        calls.c.decision.is_distinct_from("denied"),
    )
    .values(
        state="sent",
        sent_at=clock(),
        due=clock() + bindparam("wait", type_=Double()),
        attempts=func.coalesce(calls.c.attempts, 0) + 1,
    )
)
_DUE = select(calls.c.run_id, *CALL_COLUMNS, (func.coalesce(calls.c.due, 0) - clock()).label("left")).where(
    calls.c.event_id == bindparam("the_call")
)
_DEADLINE = clock() + bindparam("patience", type_=Double())
_ACCEPT = update(calls).where(_OF_HELD, calls.c.state == "sent").values(state="accepted", deadline=_DEADLINE)
_ACCEPT_ANYWAY = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state == "sent")
    .values(state="accepted", deadline=_DEADLINE)
)
_REPORT = update(calls).where(
    calls.c.event_id == bindparam("the_call"), or_(calls.c.state == "accepted", calls.c.state == "sent")
)
_FINISH = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state != "done")
    .values(
        state="done",
        finished_at=clock(),
        # A late reply may reach a process that never made the call; the sent event stays as it is.
        call_event=func.coalesce(bindparam("sent_event", type_=calls.c.call_event.type), calls.c.call_event),
    )
)
_REQUEST_INPUT = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state.in_(("sent", "accepted")))
    .values(state="input", deadline=_DEADLINE, due=None)
)
_ANSWER_INPUT = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state == "input")
    .values(
        state="open", deadline=None, report=None, attempts=None, sent_at=None, event_id=bindparam("the_next")
    )
)
_ANSWER_PART = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state == "input")
    .values(event_id=bindparam("the_next"))
)
_DECIDE = (
    update(calls)
    .where(calls.c.event_id == bindparam("the_call"), calls.c.state == "approval")
    .values(state="open", decided_at=clock())
)


class SqlJournal:
    """`store.base.Journal` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_turn(
        self,
        run_id: str,
        holder: str,
        turn: StoredTurn,
        calls: Sequence[StoredCall],
        entries: LogEntries = NO_ENTRIES,
    ) -> None:
        """Store events, a turn and its calls.

        Raises `ValueError` if the step or one of the calls is stored already.
        """

        def work(connection: Connection) -> None:
            if lost_over(connection, run_id, holder):
                connection.execute(_GOES_ON, {"the_run": run_id})
            append_events(connection, run_id, entries)
            _add_turn(connection, run_id, turn, calls)

        try:
            await self._database.write(work)
        except IntegrityError:
            raise ValueError(
                f"step {turn.step} of run {run_id!r}, or one of its calls, is stored already"
            ) from None

    async def mark_sent(self, run_id: str, holder: str, event_id: str, *, seconds: float = 0.0) -> None:
        """Mark a call as sent; a finished call stays finished.

        Raises `ValueError` for a call of another run, a denied call, or one that is neither `open` nor
        `sent`.
        """
        await self._database.write(
            lambda connection: _mark_sent(connection, run_id, holder, event_id, seconds)
        )

    async def find_due_call(self, event_id: str) -> tuple[StoredCall, float] | None:
        """Return a call and the seconds until its reply is due. A call without a due time is overdue."""
        row = await self._database.read(
            lambda connection: connection.execute(_DUE, {"the_call": event_id}).first()
        )
        if row is None:
            return None
        members = row._asdict()
        left = members.pop("left")
        del members["run_id"]
        return StoredCall(**members), left

    async def mark_accepted(
        self,
        run_id: str,
        holder: str | None,
        event_id: str,
        *,
        seconds: float,
        exchanged: Exchanged | None = None,
    ) -> None:
        """Mark a sent call as answered later. A call already answered stays `done`."""
        sent = {} if exchanged is None else {"call_event": exchanged.call}

        def work(connection: Connection) -> None:
            if holder is None:
                _lock_run_of(connection, event_id)
                connection.execute(_ACCEPT_ANYWAY, {"the_call": event_id, "patience": seconds})
                return
            members = {"the_run": run_id, "the_holder": holder, "the_call": event_id, "patience": seconds}
            if connection.execute(_ACCEPT, members | sent).rowcount == 0:
                lock_held(connection, run_id, holder)

        await self._database.write(work)

    async def store_report(self, event_id: str, report: Mapping[str, Any]) -> bool:
        """Store the latest progress report of a call."""
        members = {"the_call": event_id, "report": report}
        return await self._database.write(
            lambda connection: connection.execute(_REPORT, members).rowcount > 0
        )

    async def list_reports(self, run_id: str) -> list[StoredCall]:
        """Return the unanswered calls with a progress report, or with a form that waits."""
        statement = _WITH_RUN.where(
            calls.c.run_id == run_id,
            or_(calls.c.report.is_not(None), calls.c.state == "input"),
            calls.c.state != "done",
        ).order_by(calls.c.step, calls.c.number)
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [_with_run(row)[1] for row in rows]

    async def finish_call(
        self,
        event_id: str,
        *,
        result: object,
        failed: bool,
        seconds: float | None,
        tokens: int = 0,
        exchanged: Exchanged | None = None,
    ) -> bool:
        """Store the first result of a call."""
        sent, came = (exchanged.call, exchanged.reply) if exchanged else (None, None)

        def work(connection: Connection) -> bool:
            run = _lock_run_of(connection, event_id)
            if run is None:
                return False
            values = {"result": result, "failed": failed, "seconds": seconds, "tokens": tokens}
            members = {"the_call": event_id, **values, "sent_event": sent, "reply_event": came}
            members["deliveries"] = _count_deliveries(came)
            return _change_call(connection, run, _FINISH, members)

        return await self._database.write(work)

    async def store_decision(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Store the first decision on a call, unless the run has ended."""

        def work(connection: Connection) -> bool:
            run = _lock_run_of(connection, event_id)
            if run is None or run[1] in FINAL:
                return False
            members = {"decision": decision, "decided_by": by, "decision_reason": reason}
            return _change_call(connection, run, _DECIDE, {"the_call": event_id, **members})

        return await self._database.write(work)

    async def store_input_request(
        self,
        event_id: str,
        request: Mapping[str, Any],
        *,
        seconds: float,
        exchanged: Exchanged | None = None,
    ) -> bool:
        """Store the form of an unanswered call."""
        sent, came = (exchanged.call, exchanged.reply) if exchanged else (None, None)

        def work(connection: Connection) -> bool:
            run = _lock_run_of(connection, event_id)
            if run is None:
                return False
            members = {"the_call": event_id, "patience": seconds, "input_request": request}
            members |= {"reply_event": came} | ({} if sent is None else {"call_event": sent})
            first = connection.execute(_REQUEST_INPUT, members).rowcount > 0
            if first:
                queue_for_new_form(connection, run[0])
            return first

        return await self._database.write(work)

    async def store_input_answer(self, event_id: str, answer: Mapping[str, Any]) -> bool:
        """Store the first answer to the form of a call, unless the run has ended."""

        def work(connection: Connection) -> bool:
            run = _lock_run_of(connection, event_id)
            if run is None or run[1] in FINAL:
                return False
            members = {"the_next": next_call_id(event_id), "input_answer": answer}
            return _change_call(connection, run, _ANSWER_INPUT, {"the_call": event_id, **members})

        return await self._database.write(work)

    async def store_partial_answer(self, event_id: str, request: Mapping[str, Any]) -> bool:
        """Store the first answers to a part of what a call requests, unless the run has ended."""

        def work(connection: Connection) -> bool:
            run = _lock_run_of(connection, event_id)
            if run is None or run[1] in FINAL:
                return False
            members = {"the_call": event_id, "the_next": next_call_id(event_id), "input_request": request}
            first = connection.execute(_ANSWER_PART, members).rowcount > 0
            if first:
                queue_for_new_form(connection, run[0])
            return first

        return await self._database.write(work)

    async def find_call(self, event_id: str) -> tuple[str, StoredCall] | None:
        """Return a call and the id of its run."""
        statement = _WITH_RUN.where(calls.c.event_id == event_id)
        row = await self._database.read(lambda connection: connection.execute(statement).first())
        return None if row is None else _with_run(row)

    async def list_overdue(self, *, most: int) -> list[tuple[str, StoredCall]]:
        """Return overdue calls of unfinished runs, the longest overdue first."""
        statement = (
            _WITH_RUN.join(runs, runs.c.id == calls.c.run_id)
            .where(
                calls.c.state.in_(("accepted", "input")),
                calls.c.deadline < clock(),
                runs.c.ended_at.is_(None),
            )
            .order_by(calls.c.deadline)
            .limit(most)
        )
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [_with_run(row) for row in rows]


def _add_turn(connection: Connection, run_id: str, turn: StoredTurn, made: Sequence[StoredCall]) -> None:
    connection.execute(
        _ADD_TURN,
        {
            "run_id": run_id,
            "step": turn.step,
            "text": turn.text,
            "reasoning": turn.reasoning,
            "finish_reason": turn.finish_reason,
            "usage": asdict(turn.usage) if turn.usage else None,
            "sent": turn.sent or None,
            "written": turn.written,
            "prompt": turn.prompt,
            "seconds": turn.seconds,
            "details": None if turn.details == NO_DETAILS else asdict(turn.details),
        },
    )
    if made:
        rows = [{name: getattr(call, name) for name in _CALL_MEMBERS} | {"run_id": run_id} for call in made]
        connection.execute(_ADD_CALLS, rows)


def _count_deliveries(came: Mapping[str, Any] | None) -> int | None:
    event = (came or {}).get("event")
    return read_deliveries(event) if isinstance(event, Mapping) else None


def _mark_sent(connection: Connection, run_id: str, holder: str, event_id: str, seconds: float) -> None:
    members = {"the_run": run_id, "the_holder": holder, "the_call": event_id, "wait": seconds}
    if connection.execute(_SEND, members).rowcount == 0:
        lock_held(connection, run_id, holder)
        mine = (calls.c.event_id == event_id) & (calls.c.run_id == run_id)
        state = connection.scalar(select(calls.c.state).where(mine))
        if state != "done":
            raise ValueError(f"the call {event_id!r} must not be sent: {_why_not(state)}")


def _why_not(state: str | None) -> str:
    if state is None:
        return "it is no call of this run"
    return "it was denied" if state == "open" else f"its state is {state!r}"


def _lock_run_of(connection: Connection, event_id: str) -> tuple[str, RunStatus] | None:
    """Lock the run of a call; return the run's id and status.

    The present state of the call is seen by a later statement only.
    """
    row = connection.execute(_LOCK_RUN_OF, {"the_call": event_id}).first()
    return None if row is None else (row[0], row[1])


def _change_call(
    connection: Connection, run: tuple[str, RunStatus], change: Update, members: Mapping[str, object]
) -> bool:
    """Change a call; return True for the first such change.

    A suspended run that waited for nothing else is queued.
    """
    first = connection.execute(change, members).rowcount > 0
    run_id, status = run
    if first and status == "suspended":
        requeue_run(connection, run_id)
    return first


def _with_run(row: Row[Any]) -> tuple[str, StoredCall]:
    members = row._asdict()
    return members.pop("run_id"), StoredCall(**members)
