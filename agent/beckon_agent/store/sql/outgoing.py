"""What is sent to the clients of runs: push targets and owed answers, in a database."""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Update, delete, func, select, update

from beckon_agent.store.outgoing import MOST_TARGETS, DueTarget, OwedAnswer, PushTarget
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database, now
from beckon_agent.store.sql.tables import owed_answers
from beckon_agent.store.sql.tables import push_targets as table

_OTHERS = select(func.count()).select_from(table)


class SqlPushTargets:
    """`store.push.PushTargets` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, run_id: str, target: PushTarget) -> bool:
        """Add or replace a target."""

        def work(connection: Connection) -> bool:
            database.lock_name(connection, f"beckon: push {run_id}")
            others = _OTHERS.where(table.c.run_id == run_id, table.c.id != target.id)
            if (connection.scalar(others) or 0) >= MOST_TARGETS:
                return False
            fresh = {"target": asdict(target), "notified": "", "failures": 0, "due": now()}
            added = database.insert_into(connection, table).values(run_id=run_id, id=target.id, **fresh)
            connection.execute(added.on_conflict_do_update(index_elements=["run_id", "id"], set_=fresh))
            return True

        return await self._database.write(work)

    async def list_of(self, run_id: str) -> Sequence[PushTarget]:
        """Return the targets of a run."""
        targets = select(table.c.target).where(table.c.run_id == run_id).order_by(table.c.id)
        rows = await self._database.read(lambda connection: connection.scalars(targets).all())
        return [PushTarget(**row) for row in rows]

    async def delete(self, run_id: str, target_id: str) -> None:
        """Delete a target."""
        mine = delete(table).where(table.c.run_id == run_id, table.c.id == target_id)
        await self._database.write(lambda connection: connection.execute(mine).rowcount)

    async def claim_due(self, *, most: int, seconds: float) -> Sequence[DueTarget]:
        """Return due targets, the longest due first; no other replica gets them meanwhile."""
        select_due = (
            select(table.c.run_id, table.c.target, table.c.notified, table.c.failures)
            .where(table.c.due <= now())
            .order_by(table.c.due)
            .limit(most)
            .with_for_update(skip_locked=True)
        )

        def work(connection: Connection) -> list[DueTarget]:
            due = [
                DueTarget(run_id, PushTarget(**target), notified, failures)
                for run_id, target, notified, failures in connection.execute(select_due)
            ]
            for one in due:
                connection.execute(_of(one).values(due=now() + seconds))
            return due

        return await self._database.write(work)

    async def note_sent(self, due: DueTarget, *, seconds: float | None) -> None:
        """Store what a target was notified of; nothing if it was deleted or replaced by another address."""
        same = _of(due).where(table.c.target == asdict(due.target))
        again = None if seconds is None else now() + seconds
        changed = same.values(notified=due.notified, failures=due.failures, due=again)
        await self._database.write(lambda connection: connection.execute(changed).rowcount)


def _of(due: DueTarget) -> Update:
    return update(table).where(table.c.run_id == due.run_id, table.c.id == due.target.id)


class SqlOwedAnswers:
    """`store.owed_answers.OwedAnswers` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_due(self, *, most: int, seconds: float) -> Sequence[OwedAnswer]:
        """Return due answers, the longest due first; no other replica gets them meanwhile."""
        select_due = (
            select(owed_answers.c.run_id, owed_answers.c.failures)
            .where(owed_answers.c.due <= now())
            .order_by(owed_answers.c.due)
            .limit(most)
            .with_for_update(skip_locked=True)
        )

        def work(connection: Connection) -> list[OwedAnswer]:
            due = [OwedAnswer(run_id, failures) for run_id, failures in connection.execute(select_due)]
            if due:
                claimed = update(owed_answers).where(owed_answers.c.run_id.in_([one.run_id for one in due]))
                connection.execute(claimed.values(due=now() + seconds))
            return due

        return await self._database.write(work)

    async def postpone(self, run_id: str, *, seconds: float) -> None:
        """Count a failed attempt; the answer is due again in `seconds`."""
        later = (
            update(owed_answers)
            .where(owed_answers.c.run_id == run_id)
            .values(failures=owed_answers.c.failures + 1, due=now() + seconds)
        )
        await self._database.write(lambda connection: connection.execute(later).rowcount)

    async def settle(self, run_id: str) -> None:
        """Remove an answer."""
        mine = delete(owed_answers).where(owed_answers.c.run_id == run_id)
        await self._database.write(lambda connection: connection.execute(mine).rowcount)
