"""Lists of an owner's runs and conversations, and a run's events."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from beckon_agent.core.model_types import Usage, sum_usages
from beckon_agent.core.records import (
    ConversationSummary,
    Exchanged,
    PersonState,
    RunFilter,
    RunSummary,
    StoredCall,
    StoredConversation,
    StoredRun,
    Waiting,
)
from beckon_agent.store.base import History
from beckon_agent.store.sql.conversations import COLUMNS, mentions_query, titles_of
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.steps import CALL_COLUMNS, usage_of
from beckon_agent.store.sql.tables import calls, conversations, runs, segments, turns

_RUN_COLUMNS = tuple(column for column in runs.c if column.name not in ("segment", "request"))
# Items that a client added to a conversation are stored as a run without work.
_SHOWN = and_(runs.c.retained, runs.c.agent != "")


class SqlHistory(History):
    """`store.base.History` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_runs(
        self, owner: str, wanted: RunFilter, *, after: str | None, most: int
    ) -> list[RunSummary]:
        """Return runs, the newest first."""
        return await self._database.read(
            lambda connection: _select_runs(connection, owner, wanted, after, most)
        )

    async def list_conversations(
        self, owner: str, *, query: str, after: str | None, most: int
    ) -> list[ConversationSummary]:
        """Return conversations, the last used first."""
        return await self._database.read(
            lambda connection: _select_conversations(connection, owner, query, after, most)
        )

    async def list_waiting_calls(
        self, owner: str, state: PersonState, *, after: str | None, most: int
    ) -> list[Waiting]:
        """Return the calls that wait for a person."""
        return await self._database.read(
            lambda connection: _select_waiting(connection, owner, state, after, most)
        )

    async def list_exchanged(self, run_id: str, *, after: str | None, most: int) -> list[Exchanged]:
        """Return the exchanged events of a run's calls."""
        return await self._database.read(
            lambda connection: _select_exchanged(connection, run_id, after, most)
        )


def _select_runs(
    connection: Connection, owner: str, wanted: RunFilter, after: str | None, most: int
) -> list[RunSummary]:
    statement = (
        select(*_RUN_COLUMNS, segments.c.opening)
        .join_from(runs, segments, runs.c.segment == segments.c.id)
        .where(runs.c.owner == owner, _SHOWN)
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(most)
    )
    for column, value in (
        (runs.c.status, wanted.status),
        (runs.c.agent, wanted.agent),
        (runs.c.conversation, wanted.conversation),
        (runs.c.face, wanted.face),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if after is not None:
        statement = statement.where(_runs_behind(connection, owner, after))
    rows = connection.execute(statement).all()
    call_counts = _calls_of(connection, [row.id for row in rows])
    counted = tokens_so_far(connection, [row.id for row in rows if row.ended_at is None])
    summaries = []
    for row in rows:
        members = row._asdict()
        question = members.pop("opening") or ""
        usage = usage_of(members["usage"])
        run = StoredRun(**members | {"usage": usage}, input=())
        made_calls = call_counts.get(run.id, _CallCounts({}))
        usage = counted.get(run.id) if usage is None else usage
        over = run.ended_at is not None  # no run waits for a person any more
        approvals, inputs = (0, 0) if over else (made_calls.approvals, made_calls.inputs)
        summaries.append(
            RunSummary(run, question, made_calls.tools, made_calls.failed, approvals, inputs, usage)
        )
    return summaries


@dataclass(slots=True)
class _CallCounts:
    """Counts of a run's calls: by tool name, the failed ones, and those waiting for a person."""

    tools: dict[str, int]
    failed: int = 0
    approvals: int = 0
    inputs: int = 0


def _calls_of(connection: Connection, run_ids: list[str]) -> dict[str, _CallCounts]:
    """Return the counts of calls per run, for each run with calls."""
    failed = func.sum(case((calls.c.failed, 1), else_=0))
    approvals, inputs = (
        func.sum(case((calls.c.state == state, 1), else_=0)) for state in ("approval", "input")
    )
    statement = (
        select(calls.c.run_id, calls.c.name, func.count(), failed, approvals, inputs)
        .where(calls.c.run_id.in_(run_ids))
        .group_by(calls.c.run_id, calls.c.name)
        .order_by(calls.c.name)
    )
    by_run: dict[str, _CallCounts] = {}
    for run_id, name, number, *counts in connection.execute(statement) if run_ids else ():
        counted = by_run.setdefault(run_id, _CallCounts({}))
        counted.tools[name] = number
        counted.failed += counts[0]
        counted.approvals += counts[1]
        counted.inputs += counts[2]
    return by_run


def _select_conversations(
    connection: Connection, owner: str, query: str, after: str | None, most: int
) -> list[ConversationSummary]:
    statement = (
        select(*COLUMNS, conversations.c.used_at)
        .where(conversations.c.owner == owner)
        .order_by(conversations.c.used_at.desc(), conversations.c.id.desc())
        .limit(most)
    )
    if query:
        statement = statement.where(mentions_query(query, owner))
    if after is not None:
        name, used_at = _place_of(connection, owner, after)
        statement = statement.where(_earlier_than(conversations.c.used_at, conversations.c.id, used_at, name))
    rows = connection.execute(statement).all()
    titles = titles_of(connection, [row.id for row in rows])
    summaries = []
    for row in rows:
        members = row._asdict()
        used_at = members.pop("used_at")
        summaries.append(ConversationSummary(StoredConversation(**members), titles.get(row.id, ""), used_at))
    return summaries


def _place_of(connection: Connection, owner: str, after: str) -> tuple[str, float]:
    """Return id and time of a place in the list of conversations.

    For an id alone it is the present place. Raises `KeyError` for an unknown id.
    """
    name, _, stood = after.rpartition("@")
    if name:
        with suppress(ValueError):
            return name, float(stood)
    last = select(conversations.c.used_at).where(conversations.c.id == after, conversations.c.owner == owner)
    used_at = connection.scalar(last)
    if used_at is None:
        raise KeyError(after)
    return after, used_at


def _runs_behind(connection: Connection, owner: str, after: str) -> ColumnElement[bool]:
    """Return the condition for runs listed after the given one.

    Runs that have come in front of it meanwhile make no difference. Raises `KeyError` for an unknown id.
    """
    last = select(runs.c.created_at).where(runs.c.id == after, runs.c.owner == owner)
    created_at = connection.scalar(last)
    if created_at is None:
        raise KeyError(after)
    return _earlier_than(runs.c.created_at, runs.c.id, created_at, after)


def _earlier_than(
    time: ColumnElement[float], name: ColumnElement[str], last: float, last_name: str
) -> ColumnElement[bool]:
    return or_(time < last, and_(time == last, name < last_name))


def _select_waiting(
    connection: Connection, owner: str, state: PersonState, after: str | None, most: int
) -> list[Waiting]:
    earlier = calls.alias("earlier")
    requested_before = (
        select(func.count(earlier.c.step.distinct()))
        .where(earlier.c.run_id == calls.c.run_id, earlier.c.step < calls.c.step)
        .where(earlier.c.decision.is_not(None))
        .scalar_subquery()
    )
    about = {
        "run_id": runs.c.id,
        "agent": runs.c.agent,
        "face": runs.c.face,
        "question": func.coalesce(segments.c.opening, ""),
        "part": requested_before + 1,
        "since": turns.c.ended_at,
    }
    statement = (
        select(*(column.label(f"of_{name}") for name, column in about.items()), *CALL_COLUMNS)
        .join_from(calls, runs, calls.c.run_id == runs.c.id)
        .join(segments, runs.c.segment == segments.c.id)
        .join(turns, and_(turns.c.run_id == calls.c.run_id, turns.c.step == calls.c.step))
        .where(runs.c.owner == owner, runs.c.ended_at.is_(None), calls.c.state == state)
        .order_by(runs.c.created_at, runs.c.id, calls.c.step, calls.c.number)
        .limit(most)
    )
    if after is not None:
        statement = statement.where(_calls_behind(connection, owner, after))
    waiting = []
    for row in connection.execute(statement):
        members = row._asdict()
        known = {name: members.pop(f"of_{name}") for name in about}
        waiting.append(Waiting(**known, call=StoredCall(**members)))
    return waiting


def _calls_behind(connection: Connection, owner: str, after: str) -> ColumnElement[bool]:
    """Return the condition for calls listed after the given one.

    That call may have been decided since it was listed. Raises `KeyError` for an unknown id.
    """
    place = (
        select(runs.c.created_at, runs.c.id, calls.c.step, calls.c.number)
        .join(calls, calls.c.run_id == runs.c.id)
        .where(calls.c.event_id == after, runs.c.owner == owner)
    )
    last = connection.execute(place).first()
    if last is None:
        raise KeyError(after)
    columns = (runs.c.created_at, runs.c.id, calls.c.step, calls.c.number)
    return or_(
        *(
            and_(
                *(left == right for left, right in zip(columns[:n], last[:n], strict=True)),
                columns[n] > last[n],
            )
            for n in range(len(columns))
        )
    )


def _select_exchanged(connection: Connection, run_id: str, after: str | None, most: int) -> list[Exchanged]:
    statement = (
        select(calls.c.event_id, calls.c.name, calls.c.call_event, calls.c.reply_event)
        .where(calls.c.run_id == run_id)
        .order_by(calls.c.step, calls.c.number)
        .limit(most)
    )
    if after is not None:
        place = select(calls.c.step, calls.c.number).where(
            calls.c.event_id == after, calls.c.run_id == run_id
        )
        last = connection.execute(place).first()
        if last is None:
            raise KeyError(after)
        later = and_(calls.c.step == last.step, calls.c.number > last.number)
        statement = statement.where(or_(calls.c.step > last.step, later))
    return [Exchanged(*row) for row in connection.execute(statement)]


def tokens_so_far(connection: Connection, run_ids: Sequence[str]) -> dict[str, Usage]:
    """Return the counted token usage of each of these runs."""
    if not run_ids:
        return {}
    tokens: dict[str, Usage] = {}
    statement = select(turns.c.run_id, turns.c.usage).where(turns.c.run_id.in_(run_ids))
    for run_id, document in connection.execute(statement):
        if (usage := sum_usages((tokens.get(run_id), usage_of(document)))) is not None:
            tokens[run_id] = usage
    return tokens
