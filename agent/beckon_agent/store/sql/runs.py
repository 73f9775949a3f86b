"""Runs from their beginning to their end, and their holders."""

from collections.abc import Collection
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from beckon_agent.core.model_types import Message
from beckon_agent.core.records import FINAL, Ended, LogEntries, NewRun, Past, RunStatus, StoredRun
from beckon_agent.store.base import NO_ENTRIES, NotHeld, RunExists
from beckon_agent.store.sql import steps
from beckon_agent.store.sql.conversations import (
    advance_conversation,
    append_segment,
    complete_segment,
    delete_unused,
    mark_used,
)
from beckon_agent.store.sql.conversations import load_messages as messages_of_chain
from beckon_agent.store.sql.counters import sweep_counters
from beckon_agent.store.sql.database import Database, now
from beckon_agent.store.sql.steps import (
    HELD,
    append_events,
    load_past,
    queue_for_new_form,
    requeue_run,
    usage_of,
)
from beckon_agent.store.sql.tables import conversations, owed_answers, runs, segments

_GIVEN = [member.name for member in fields(NewRun) if member.name not in ("input", "request")]
_AS_STORED = (
    *(column for column in runs.c if column is not runs.c.segment),
    segments.c.input,
)

_STORED = select(*_AS_STORED).join_from(runs, segments, runs.c.segment == segments.c.id)
_ONE = _STORED.where(runs.c.id == bindparam("the_run"))
_LEASE = now() + bindparam("lease", type_=Double())
_CREATE = (
    insert(runs)
    .values(created_at=now(), since=now(), held_until=_LEASE)
    .returning(runs.c.created_at, runs.c.since, runs.c.held_until)
)
_RENEW = (
    update(runs)
    .where(runs.c.holder == bindparam("the_holder"))
    .values(held_until=_LEASE)
    .returning(runs.c.id)
)
_THESE = runs.c.id.in_(bindparam("these", expanding=True))
_RENEW_SOME = _RENEW.where(_THESE)
_WORKED = case((runs.c.since.is_(None), runs.c.worked), else_=runs.c.worked + now() - runs.c.since)
_RELEASE = (
    update(runs)
    .where(runs.c.holder == bindparam("the_holder"), runs.c.status == "running")
    .values(status="queued", holder=None, held_until=_LEASE, worked=_WORKED, since=None)
)
_RELEASE_SOME = _RELEASE.where(_THESE)
_OVER = runs.c.held_until < now()
_FREE = (
    select(runs.c.id)
    .where(
        runs.c.ended_at.is_(None),
        or_(
            and_(runs.c.status == "queued", or_(runs.c.held_until.is_(None), _OVER)),
            and_(runs.c.status == "running", _OVER),
        ),
    )
    .order_by(runs.c.created_at, runs.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True, key_share=True)
)
_TAKE = (
    update(runs)
    .where(_THESE)
    .values(
        status="running",
        held_until=_LEASE,
        lost=case((runs.c.status == "running", runs.c.lost + 1), else_=runs.c.lost),
        takeovers=func.coalesce(runs.c.takeovers, 0) + case((runs.c.status == "running", 1), else_=0),
        taken_over_at=case((runs.c.status == "running", now()), else_=runs.c.taken_over_at),
        # What a lost process worked on counts up to now, by this clock and by no replica's.
        worked=case((runs.c.status == "running", _WORKED), else_=runs.c.worked),
        since=now(),
    )
)
_LET_GO = (
    update(runs)
    .where(HELD)
    .values(status="suspended", holder=None, held_until=None, worked=_WORKED, since=None)
)
_END = (
    update(runs)
    .where(HELD)
    .values(ended_at=now(), holder=None, held_until=None)
    .returning(runs.c.segment, runs.c.previous, runs.c.conversation, runs.c.retained)
)
_END_ANYWAY = (
    update(runs)
    .where(runs.c.id == bindparam("the_run"), runs.c.ended_at.is_(None))
    .values(ended_at=now(), holder=None, held_until=None)
    .returning(runs.c.segment, runs.c.previous, runs.c.conversation, runs.c.retained)
)
_LINGER = 60.0  # seconds
_DELETE = delete(runs).where(runs.c.id == bindparam("the_run")).returning(runs.c.segment)


class SqlRuns:
    """`store.base.Runs` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewRun, *, holder: str | None, seconds: float) -> StoredRun:
        """Store a run after its previous one or its conversation."""
        try:
            return await self._database.write(
                lambda connection: _create_run(connection, new, holder, seconds)
            )
        except IntegrityError:
            raise RunExists(f"there is a run {new.id!r} already") from None

    async def get(self, run_id: str) -> StoredRun | None:
        """Return a run."""
        row = await self._database.read(
            lambda connection: connection.execute(_ONE, {"the_run": run_id}).first()
        )
        return None if row is None else _to_run(row)

    async def load_past(self, run_id: str) -> Past:
        """Return turns and calls."""
        return await self._database.read(lambda connection: load_past(connection, run_id))

    async def load_messages(self, run_id: str) -> list[Message]:
        """Return the chain up to the run's own input."""
        own = select(runs.c.segment).where(runs.c.id == run_id).scalar_subquery()
        return await self._database.read(
            lambda connection: messages_of_chain(connection, own, input_alone=True)
        )

    async def load_added_messages(self, run_id: str) -> list[Message]:
        """Return the messages of the run's own segment after the input."""
        own = select(segments.c.added).join(runs, runs.c.segment == segments.c.id).where(runs.c.id == run_id)
        return await self._database.read(lambda connection: connection.scalar(own) or [])

    async def delete(self, run_id: str) -> bool:
        """Delete a run, and its messages unless others need them."""
        return await self._database.write(lambda connection: _delete_run(connection, run_id))

    async def claim_runs(self, holder: str, *, seconds: float, most: int) -> list[StoredRun]:
        """Take over runs without a live holder.

        Runs locked by another claim at the same time are left to it.
        """
        return await self._database.write(lambda connection: _claim_runs(connection, holder, seconds, most))

    async def renew_leases(
        self, holder: str, *, seconds: float, only: Collection[str] | None = None
    ) -> frozenset[str]:
        """Extend the leases of this holder's runs, or of some of them."""
        members: dict[str, object] = {"the_holder": holder, "lease": seconds}
        statement = _RENEW
        if only is not None:
            statement, members["these"] = _RENEW_SOME, list(only)
        return await self._database.write(
            lambda connection: frozenset(connection.scalars(statement, members))
        )

    async def release_runs(self, holder: str, *, seconds: float, only: Collection[str] | None = None) -> None:
        """Queue runs of this holder again."""
        members: dict[str, object] = {"the_holder": holder, "lease": seconds}
        statement = _RELEASE
        if only is not None:
            statement, members["these"] = _RELEASE_SOME, list(only)
        await self._database.write(lambda connection: connection.execute(statement, members).rowcount)

    async def suspend(
        self, run_id: str, holder: str, entries: LogEntries = NO_ENTRIES, *, forms: Collection[str] = ()
    ) -> RunStatus:
        """Suspend a run until an approval, input or a late answer."""
        members = {"the_run": run_id, "the_holder": holder}

        def work(connection: Connection) -> RunStatus:
            if connection.execute(_LET_GO, members).rowcount == 0:
                raise NotHeld(run_id)
            append_events(connection, run_id, entries)
            queued = requeue_run(connection, run_id) or queue_for_new_form(connection, run_id, forms)
            return "queued" if queued else "suspended"

        return await self._database.write(work)

    async def end_run(
        self, run_id: str, holder: str | None, ended: Ended, entries: LogEntries = NO_ENTRIES
    ) -> bool:
        """Set a run's final status; append its messages to its conversation."""
        if ended.status not in FINAL:
            raise ValueError(f"{ended.status!r} is no status to end with")
        return await self._database.write(
            lambda connection: _end_run(connection, run_id, holder, ended, entries)
        )

    async def purge(self, keep_seconds: float | None) -> int:
        """Delete in batches, to keep the waits of others short."""
        deleted = await self._purge_batch(and_(~runs.c.retained, runs.c.ended_at < now() - _LINGER))
        if keep_seconds is not None:
            deleted += await self._purge_batch(runs.c.ended_at < now() - keep_seconds)
        await self._database.write(sweep_counters)
        await self._database.write(steps.sweep_materials)
        return deleted

    async def _purge_batch(self, over: ColumnElement[bool]) -> int:
        deleted = 0
        while piece := await self._database.write(lambda connection: _purge_runs(connection, over)):
            deleted += piece
        return deleted


def _to_run(row: Row[Any]) -> StoredRun:
    members = row._asdict()
    return StoredRun(**members | {"usage": usage_of(members["usage"])})


def _create_run(connection: Connection, new: NewRun, holder: str | None, seconds: float) -> StoredRun:
    status: RunStatus = "running" if holder else "queued"
    segment = append_segment(connection, _lock_parent(connection, new), new.input)
    members = {name: getattr(new, name) for name in _GIVEN}
    columns = {"request": dict(new.request), "status": status, "holder": holder, "segment": segment}
    lease = {"lease": seconds if holder else None}
    if new.conversation is not None:
        mark_used(connection, new.conversation)
    created_at, since, held_until = connection.execute(_CREATE, members | columns | lease).one()
    return StoredRun(
        **members,
        input=new.input,
        request=new.request,
        status=status,
        created_at=created_at,
        holder=holder,
        held_until=held_until,
        since=since,
    )


def _lock_parent(connection: Connection, new: NewRun) -> int | None:
    """Return the segment before a new run, locked until the transaction ends.

    Raises `KeyError` if the previous run or the conversation does not exist.
    """
    parent: int | None = None
    if new.conversation is not None:
        select_head = select(conversations.c.head).where(conversations.c.id == new.conversation)
        parent = _select_existing(connection, select_head, new.conversation)
    if new.previous is not None:
        select_head = select(runs.c.segment).where(runs.c.id == new.previous, runs.c.retained)
        parent = _select_existing(connection, select_head, new.previous)
    return parent


def _select_existing(connection: Connection, statement: Select[int], name: str) -> int:
    existing: int | None = connection.scalar(statement.with_for_update(read=True, key_share=True))
    if existing is None:
        raise KeyError(name)
    return existing


def _claim_runs(connection: Connection, holder: str, seconds: float, most: int) -> list[StoredRun]:
    claimed = connection.scalars(_FREE, {"most": most}).all()
    if not claimed:
        return []
    connection.execute(_TAKE, {"these": claimed, "holder": holder, "lease": seconds})
    ordered = _STORED.where(runs.c.id.in_(claimed)).order_by(runs.c.created_at, runs.c.id)
    return [_to_run(row) for row in connection.execute(ordered)]


def _end_run(
    connection: Connection, run_id: str, holder: str | None, ended: Ended, entries: LogEntries
) -> bool:
    members = {
        "the_run": run_id,
        "status": ended.status,
        "ending": ended.ending,
        "usage": asdict(ended.usage) if ended.usage else None,
        "error": dict(ended.error) if ended.error else None,
    }
    if holder is None:
        run = connection.execute(_END_ANYWAY, members).first()
    else:
        run = connection.execute(_END, members | {"the_holder": holder}).first()
    if run is None:
        if holder is not None:
            raise NotHeld(run_id)
        return False
    _keep_rest(connection, run_id, ended, entries, retained=run.retained)
    if ended.added is not None and (run.retained or run.conversation is not None):
        complete_segment(connection, run.segment, ended.added)
        if run.conversation is not None:
            advance_conversation(connection, run.conversation, run.segment)
    if not (run.retained or ended.lingers):
        alone = run.previous is None and run.conversation is None
        _delete_run(connection, run_id, alone=alone)
    return True


def _keep_rest(
    connection: Connection, run_id: str, ended: Ended, entries: LogEntries, *, retained: bool
) -> None:
    """Store the last events of a run for its followers, and that its answer is owed."""
    if retained or ended.lingers:
        append_events(connection, run_id, entries)
    if retained and ended.owed:
        connection.execute(insert(owed_answers).values(run_id=run_id, failures=0, due=now()))


def _delete_run(connection: Connection, run_id: str, *, alone: bool = False) -> bool:
    segment = connection.scalar(_DELETE, {"the_run": run_id})
    if segment is None:
        return False
    delete_unused(connection, [segment], alone=alone)
    return True


def _purge_runs(connection: Connection, over: ColumnElement[bool]) -> int:
    ended = (
        select(runs.c.id).where(over).order_by(runs.c.ended_at).limit(200).with_for_update(skip_locked=True)
    )
    ids = connection.scalars(ended).all()
    if not ids:
        return 0
    gone = connection.scalars(delete(runs).where(runs.c.id.in_(ids)).returning(runs.c.segment)).all()
    delete_unused(connection, gone)
    return len(gone)
