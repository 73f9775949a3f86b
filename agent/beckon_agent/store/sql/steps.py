"""What runs and the journal share: the steps of a run as stored, and a run that waits no more."""

from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, exists, or_, select, update

from beckon_agent.store.base import NotHeld
from beckon_agent.store.records import Past, StoredCall, StoredTurn
from beckon_agent.store.sql.tables import calls, runs, turns
from beckon_agent.store.sql.usage import usage_of

HELD = and_(
    runs.c.id == bindparam("the_run"),
    runs.c.holder == bindparam("the_holder"),
    runs.c.status == "running",
)
"""The run `the_run`, as long as `the_holder` has it.

Statements that every run needs are built once: to build one takes longer than to run it.
"""

LOCK_HELD = select(runs.c.id).where(HELD).with_for_update(key_share=True)
_CALL_COLUMNS = tuple(column for column in calls.c if column is not calls.c.run_id)
_TURN_COLUMNS = tuple(column for column in turns.c if column is not turns.c.run_id)


def lock_held(connection: Connection, run_id: str, holder: str) -> None:
    """Let nobody take the run over until the transaction ends. Raises `NotHeld` where somebody has."""
    if connection.scalar(LOCK_HELD, {"the_run": run_id, "the_holder": holder}) is None:
        raise NotHeld(run_id)


def past(connection: Connection, run_id: str) -> Past:
    """Return the turns and calls of a run; the calls never go further than the turns."""
    found = connection.execute(
        select(*_TURN_COLUMNS).where(turns.c.run_id == run_id).order_by(turns.c.step)
    ).all()
    last = found[-1].step if found else -1
    made = connection.execute(
        select(*_CALL_COLUMNS)
        .where(calls.c.run_id == run_id, calls.c.step <= last)
        .order_by(calls.c.step, calls.c.number)
    )
    return Past(
        [_turn(_members(row)) for row in found],
        [StoredCall(**_members(row)) for row in made],
    )


def requeue(connection: Connection, run_id: str) -> bool:
    """Queue a suspended run that can go on; the caller has locked it. Return whether it was one.

    It can where it waits for nothing, and where only tools are waited for and a decision lets a call be made.
    """
    asked, accepted, decided = (
        exists().where(calls.c.run_id == run_id, calls.c.state == state)
        for state in ("approval", "accepted", "open")
    )
    statement = (
        update(runs)
        .where(runs.c.id == run_id, runs.c.status == "suspended", ~asked, or_(~accepted, decided))
        .values(status="queued")
    )
    return connection.execute(statement).rowcount > 0


def _turn(members: dict[str, Any]) -> StoredTurn:
    kept = {"usage": usage_of(members["usage"]), "sent": tuple(members["sent"] or ())}
    return StoredTurn(**members | kept)


def _members(row: Row[Any]) -> dict[str, Any]:
    return row._asdict()
