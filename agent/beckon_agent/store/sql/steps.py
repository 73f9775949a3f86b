"""The stored steps of a run, its log of events, and JSON documents shared by many turns.

Each shared document is stored once, under its digest.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, delete, exists, func, or_, select, update

from beckon_agent.core.model_types import AnswerDetails, Usage
from beckon_agent.core.records import LogEntries, Past, StoredCall, StoredTurn
from beckon_agent.store.base import NotHeld
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database, now
from beckon_agent.store.sql.tables import calls, events, materials, runs, turns
from beckon_agent.store.sql.tables import events as table


def usage_of(document: Mapping[str, Any] | None) -> Usage | None:
    """Return the usage stored as a document, or `None`.

    The document is the output of `dataclasses.asdict`.
    """
    return None if document is None else Usage(**document)


HELD = and_(
    runs.c.id == bindparam("the_run"),
    runs.c.holder == bindparam("the_holder"),
    runs.c.status == "running",
)
"""The run `the_run`, as long as `the_holder` has it.

Statements that every run needs are built once: to build one takes longer than to run it.
"""

LOCK_HELD = select(runs.c.id).where(HELD).with_for_update(key_share=True)
_LOCK_LOST = select(runs.c.lost).where(HELD).with_for_update(key_share=True)
CALL_COLUMNS = tuple(
    column for column in calls.c if column.name not in ("run_id", "call_event", "reply_event")
)
"""What a `StoredCall` holds: its events are large, and few ask for them."""

_TURN_COLUMNS = tuple(column for column in turns.c if column is not turns.c.run_id)


def lock_held(connection: Connection, run_id: str, holder: str) -> None:
    """Lock a held run against takeover until the transaction ends.

    Raises `NotHeld` if the holder has lost it.
    """
    lost_over(connection, run_id, holder)


def lost_over(connection: Connection, run_id: str, holder: str) -> int:
    """Lock a held run; return the processes lost since its last step.

    It is locked as by `lock_held`, and raises `NotHeld` as well.
    """
    lost: int | None = connection.scalar(_LOCK_LOST, {"the_run": run_id, "the_holder": holder})
    if lost is None:
        raise NotHeld(run_id)
    return lost


def append_events(connection: Connection, run_id: str, entries: LogEntries) -> None:
    """Append events to the log of a run locked by the caller.

    Events with existing numbers stay as they are.
    """
    rows = [
        {"run_id": run_id, "number": number, "event": dict(event)}
        for number, event in enumerate(entries.events, start=entries.first)
    ]
    if rows:
        connection.execute(database.insert_into(connection, events).on_conflict_do_nothing(), rows)


def load_past(connection: Connection, run_id: str) -> Past:
    """Return the turns and calls of a run. Calls after the last turn are left out."""
    rows = connection.execute(
        select(*_TURN_COLUMNS).where(turns.c.run_id == run_id).order_by(turns.c.step)
    ).all()
    last = rows[-1].step if rows else -1
    call_rows = connection.execute(
        select(*CALL_COLUMNS)
        .where(calls.c.run_id == run_id, calls.c.step <= last)
        .order_by(calls.c.step, calls.c.number)
    )
    return Past(
        [_to_turn(_row_members(row)) for row in rows],
        [StoredCall(**_row_members(row)) for row in call_rows],
    )


def requeue_run(connection: Connection, run_id: str) -> bool:
    """Queue a suspended run if it can continue.

    Return True if it was queued. The caller has locked the run. It can continue if it waits for nothing, or
    if it waits only for tools and a decision has opened a call.
    """
    undecided, unanswered, accepted, decided = (
        exists().where(calls.c.run_id == run_id, calls.c.state == state)
        for state in ("approval", "input", "accepted", "open")
    )
    going_on = and_(~undecided, ~unanswered, or_(~accepted, decided))
    statement = (
        update(runs)
        .where(runs.c.id == run_id, runs.c.status == "suspended", going_on)
        .values(status="queued")
    )
    return connection.execute(statement).rowcount > 0


def queue_for_new_form(connection: Connection, run_id: str, known: Collection[str] = ()) -> bool:
    """Queue a suspended run with a form that is not in its log yet; return True if it was queued.

    `known` are the event ids of the calls with a form in the log. The caller has locked the run. It continues
    until the form is in its log, and is suspended again.
    """
    new = exists().where(calls.c.run_id == run_id, calls.c.state == "input", calls.c.event_id.not_in(known))
    statement = (
        update(runs).where(runs.c.id == run_id, runs.c.status == "suspended", new).values(status="queued")
    )
    return connection.execute(statement).rowcount > 0


def _to_turn(members: dict[str, Any]) -> StoredTurn:
    converted = {
        "usage": usage_of(members["usage"]),
        "sent": tuple(members["sent"] or ()),
        "details": AnswerDetails.from_document(members["details"] or {}),
    }
    return StoredTurn(**members | converted)


def _row_members(row: Row[Any]) -> dict[str, Any]:
    return row._asdict()


class SqlEventLog:
    """`store.base.EventLog` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, run_id: str, holder: str, entries: LogEntries) -> None:
        """Store events."""

        def work(connection: Connection) -> None:
            lock_held(connection, run_id, holder)
            append_events(connection, run_id, entries)

        if entries.events:
            await self._database.write(work)

    async def read_after(
        self, run_id: str, number: int, *, most: int
    ) -> list[tuple[int, Mapping[str, object]]]:
        """Return the events after a number."""
        statement = (
            select(table.c.number, table.c.event)
            .where(table.c.run_id == run_id, table.c.number > number)
            .order_by(table.c.number)
            .limit(most)
        )
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [(row[0], row[1]) for row in rows]


_GRACE = 86_400.0  # seconds; a user of a document has renewed it less than an hour ago
_PAGE = 500


class SqlMaterials:
    """`store.base.Materials` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store_documents(self, documents: Mapping[str, object]) -> None:
        """Store documents in the order of their digests, to avoid deadlocks."""
        rows = [{"digest": digest, "document": documents[digest]} for digest in sorted(documents)]

        def work(connection: Connection) -> None:
            added = database.insert_into(connection, materials).values(used_at=now())
            connection.execute(
                added.on_conflict_do_update(index_elements=["digest"], set_={"used_at": now()}), rows
            )

        if rows:
            await self._database.write(work)

    async def read_documents(self, digests: Iterable[str]) -> dict[str, Any]:
        """Return documents by their digests."""
        wanted = sorted(set(digests))

        def work(connection: Connection) -> dict[str, Any]:
            documents: dict[str, Any] = {}
            for page in _split_pages(wanted):
                rows = select(materials.c.digest, materials.c.document).where(materials.c.digest.in_(page))
                documents |= {row.digest: row.document for row in connection.execute(rows)}
            return documents

        return await self._database.read(work)


def _split_pages(digests: list[str]) -> Iterable[list[str]]:
    return (digests[first : first + _PAGE] for first in range(0, len(digests), _PAGE))


def sweep_materials(connection: Connection) -> None:
    """Delete documents last used over a day before the oldest run.

    Without any runs, these are the documents last used over a day ago.
    """
    oldest = select(func.coalesce(func.min(runs.c.created_at), now())).scalar_subquery()
    connection.execute(delete(materials).where(materials.c.used_at < oldest - _GRACE))
