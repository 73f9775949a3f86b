"""Conversations by what was said in them: every segment of each, and of runs that have left none there.

Those are still at work, or were cut off: somebody who looks for the question wants to find it all the same.
"""

from collections.abc import Sequence

from sqlalchemy import CTE, ColumnElement, Connection, and_, exists, literal, or_, select

from beckon_agent.store.spoken import words
from beckon_agent.store.sql.tables import conversations, runs, segments

_LEFT_NOTHING = or_(runs.c.ended_at.is_(None), runs.c.status.in_(("failed", "cancelled")))


def _segments(mine: ColumnElement[bool]) -> CTE:
    """Return all segments of some conversations, each with how many stand behind it."""
    link = (
        select(
            conversations.c.id.label("conversation"),
            segments.c.id,
            segments.c.parent,
            literal(0).label("depth"),
        )
        .join(segments, segments.c.id == conversations.c.head)
        .where(mine)
        .cte("link", recursive=True)
    )
    before = select(link.c.conversation, segments.c.id, segments.c.parent, link.c.depth + 1)
    return link.union_all(before.join(segments, segments.c.id == link.c.parent))


def says(query: str, owner: str) -> ColumnElement[bool]:
    """Return the condition of an owner's conversations that a query finds."""
    link = _segments(conversations.c.owner == owner)
    found = segments.c.said.contains(words(query), autoescape=True)
    ended = select(link.c.conversation).join(segments, segments.c.id == link.c.id).where(found)
    asked = (
        exists()
        .where(runs.c.conversation == conversations.c.id, _LEFT_NOTHING)
        .where(segments.c.id == runs.c.segment, found)
    )
    return or_(conversations.c.id.in_(ended), asked)


def titles(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return how the first question of each of these conversations begins, where there is one."""
    if not ids:
        return {}
    link = _segments(conversations.c.id.in_(ids))
    ended = (
        select(link.c.conversation, segments.c.opening)
        .join(segments, segments.c.id == link.c.id)
        .where(segments.c.opening.is_not(None))
        .order_by(link.c.depth)
    )
    asked = (
        select(runs.c.conversation, segments.c.opening)
        .join(segments, segments.c.id == runs.c.segment)
        .where(and_(runs.c.conversation.in_(ids), _LEFT_NOTHING, segments.c.opening.is_not(None)))
        .order_by(runs.c.created_at.desc())
    )
    # Of each the last row counts: the earliest question, and one that is part of the conversation above all.
    found = {row[0]: row[1] for row in connection.execute(asked)}
    return found | {row[0]: row[1] for row in connection.execute(ended)}
