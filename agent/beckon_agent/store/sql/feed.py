"""The feed in a database.

Positions are milliseconds of the database's clock, or one more than the last. So those of a new database
follow those of the database that it replaces, and a reader's old position is recognised.
"""

from sqlalchemy import Connection, delete, func, select, update

from beckon_agent.store.feed import FeedEntry, FeedPage
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.tables import feed, feed_starts
from beckon_contract.cloudevents.events import CloudEvent, to_structured

_LOCK = "beckon: feed"
_TRIM_EVERY = 50  # events; to count them costs more than to add one
_LAST = select(func.max(feed.c.position))
_START = select(func.max(feed_starts.c.position))
_ENTRY = select(feed.c.position, feed.c.namespace, feed.c.type, feed.c.event, feed.c.came_at)


class SqlFeed:
    """`store.feed.Feed` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added = 0

    async def append(self, namespace: str, event: CloudEvent, *, keep: int) -> bool:
        """Keep an event, in a transaction that no other one of the feed overlaps."""
        row = {
            "namespace": namespace,
            "type": event.type,
            "source": event.source,
            "event_id": event.id,
            "event": to_structured(event)[1].decode(),
        }
        self._added += 1
        trims = self._added % min(_TRIM_EVERY, keep) == 0

        def work(connection: Connection) -> bool:
            moment = database.lock_name(connection, _LOCK)
            last = _find_last(connection, moment)
            values = {**row, "position": max(last + 1, int(moment * 1000)), "came_at": moment}
            added = database.insert_into(connection, feed).on_conflict_do_nothing()
            is_new = connection.execute(added, values).rowcount > 0
            if trims:
                _trim(connection, keep)
            return is_new

        return await self._database.write(work)

    async def read(
        self, after: int, *, most: int, namespace: str | None = None, event_type: str | None = None
    ) -> FeedPage:
        """Return events after a position."""
        statement = _ENTRY.where(feed.c.position > after).order_by(feed.c.position).limit(most)
        if namespace is not None:
            statement = statement.where(feed.c.namespace == namespace)
        if event_type is not None:
            statement = statement.where(feed.c.type == event_type)

        def work(connection: Connection) -> FeedPage | None:
            # In this order: what is added in between is read or is after `last`; what is deleted in between
            # is before `start`.
            last = connection.scalar(_LAST)
            entries = [FeedEntry(*row) for row in connection.execute(statement)]
            start = connection.scalar(_START)
            return None if start is None else FeedPage(entries, last or start, start)

        page = await self._database.read(work)
        if page is None:
            await self._database.write(_begin)
            return await self.read(after, most=most, namespace=namespace, event_type=event_type)
        return page


def _begin(connection: Connection) -> None:
    _find_last(connection, database.lock_name(connection, _LOCK))


def _find_last(connection: Connection, moment: float) -> int:
    """Return the position of the last event of a locked feed, or of its start; the first call starts it."""
    last: int | None = connection.scalar(_LAST)
    if last is not None:
        return last
    start: int | None = connection.scalar(_START)
    if start is None:
        start = int(moment * 1000)
        connection.execute(feed_starts.insert().values(position=start))
    return start


def _trim(connection: Connection, keep: int) -> None:
    beyond = select(feed.c.position).order_by(feed.c.position.desc()).offset(keep).limit(1)
    newest = connection.scalar(beyond)
    if newest is not None:
        connection.execute(delete(feed).where(feed.c.position <= newest))
        connection.execute(update(feed_starts).values(position=newest))
