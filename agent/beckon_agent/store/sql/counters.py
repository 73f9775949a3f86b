"""The use of limits: sliding windows, reservations, and places.

A window is kept in a hundred buckets. The use in one counts from its last use for a whole window, so no
window, wherever it begins, ever holds more than the limit; in return a use may count a hundredth of the
window longer than necessary. A limit has at most about a hundred rows, however much it is used.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, Row, delete, func, select

from beckon_agent.core.records import LimitDecision, ReservedLimit
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.tables import buckets, places, reservations

_BUCKETS = 100
_OK = LimitDecision(True)
_UNTIL_SETTLED = 2.0  # seconds; when others have their answers, only their models know


class SqlCounters:
    """`store.base.Counters` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_amount(self, key: str, amount: int, *, limit: int, window: float) -> LimitDecision:
        """Use an amount of a limit, all or nothing. An amount above the limit never fits."""
        if amount < 0 or window <= 0:
            raise ValueError(f"{amount} per {window} s is no use of a limit: neither may be negative")
        return await self._database.write(
            lambda connection: _take_amount(connection, key, amount, limit, window)
        )

    async def reserve_amount(self, key: str, token: str, amount: int, limit: ReservedLimit) -> LimitDecision:
        """Reserve an amount, if anything is left."""
        return await self._database.write(
            lambda connection: _reserve_amount(connection, key, token, amount, limit)
        )

    async def settle_reservation(self, key: str, token: str, amount: int, *, window: float) -> None:
        """Replace a reservation by the actual use."""
        await self._database.write(
            lambda connection: _settle_reservation(connection, key, token, amount, window)
        )

    async def take_place(self, key: str, token: str, *, limit: int, seconds: float) -> LimitDecision:
        """Take a place, or keep it for longer."""
        return await self._database.write(
            lambda connection: _take_place(connection, key, token, limit, seconds)
        )

    async def give_place_back(self, key: str, token: str) -> None:
        """Give the place back."""
        mine = delete(places).where(places.c.key == key, places.c.token == token)
        await self._database.write(lambda connection: connection.execute(mine).rowcount)


def sweep_counters(connection: Connection) -> None:
    """Delete expired entries of limits without later requests."""
    connection.execute(delete(buckets).where(buckets.c.expires < database.now()))
    connection.execute(delete(places).where(places.c.expires < database.now()))
    connection.execute(delete(reservations).where(reservations.c.expires < database.now()))


def _take_amount(connection: Connection, key: str, amount: int, limit: int, window: float) -> LimitDecision:
    moment = database.lock_name(connection, f"beckon: take {key}")
    used = _select_uses(connection, key, window, moment)
    over = sum(part for _, part in used) + amount - limit
    if over > 0:
        return LimitDecision(False, _until_free(used, over, window, moment))
    _insert_use(connection, key, amount, window, moment)
    return _OK


def _reserve_amount(
    connection: Connection, key: str, token: str, amount: int, limit: ReservedLimit
) -> LimitDecision:
    moment = database.lock_name(connection, f"beckon: take {key}")
    connection.execute(
        delete(reservations).where(reservations.c.key == key, reservations.c.expires <= moment)
    )
    select_reserved = select(reservations.c.token, reservations.c.amount).where(reservations.c.key == key)
    reserved = {row.token: row.amount for row in connection.execute(select_reserved)}
    if token not in reserved:
        used = _select_uses(connection, key, limit.window, moment)
        over = sum(part for _, part in used) + 1 - limit.limit
        if over > 0:
            return LimitDecision(False, _until_free(used, over, limit.window, moment))
        if limit.behind_others and over + sum(reserved.values()) > 0:
            return LimitDecision(False, min(_UNTIL_SETTLED, limit.window))
    new = database.insert_into(connection, reservations).values(
        key=key, token=token, amount=amount, expires=moment + limit.seconds
    )
    later = {"amount": new.excluded.amount, "expires": new.excluded.expires}
    connection.execute(new.on_conflict_do_update(index_elements=["key", "token"], set_=later))
    return _OK


def _settle_reservation(connection: Connection, key: str, token: str, amount: int, window: float) -> None:
    moment = database.lock_name(connection, f"beckon: take {key}")
    mine = reservations.c.key == key, reservations.c.token == token
    connection.execute(delete(reservations).where(*mine))
    if amount:
        _insert_use(connection, key, amount, window, moment)


def _select_uses(connection: Connection, key: str, window: float, moment: float) -> Sequence[Row[float, int]]:
    """Return time and amount of each use in the current window. The oldest comes first."""
    return connection.execute(
        select(buckets.c.last_used, buckets.c.amount)
        .where(buckets.c.key == key, buckets.c.last_used > moment - window)
        .order_by(buckets.c.last_used)
    ).all()


def _insert_use(connection: Connection, key: str, amount: int, window: float, moment: float) -> None:
    connection.execute(delete(buckets).where(buckets.c.key == key, buckets.c.last_used <= moment - window))
    new = database.insert_into(connection, buckets).values(
        key=key,
        bucket=int(moment * _BUCKETS / window),
        last_used=moment,
        expires=moment + window,
        amount=amount,
    )
    later = {
        "last_used": moment,
        "expires": moment + window,
        "amount": buckets.c.amount + new.excluded.amount,
    }
    connection.execute(new.on_conflict_do_update(index_elements=["key", "bucket"], set_=later))


def _until_free(used: Sequence[Row[float, int]], over: int, window: float, moment: float) -> float:
    """Return the seconds until enough earlier use has expired.

    `over` is the amount that has to expire. The result is a whole window if even all of it is not enough.
    """
    for last_used, part in used:
        over -= part
        if over <= 0:
            return last_used + window - moment
    return window


def _take_place(connection: Connection, key: str, token: str, limit: int, seconds: float) -> LimitDecision:
    moment = database.lock_name(connection, f"beckon: enter {key}")
    connection.execute(delete(places).where(places.c.key == key, places.c.expires <= moment))
    others = select(func.count(), func.min(places.c.expires)).where(
        places.c.key == key, places.c.token != token
    )
    count, first = connection.execute(others).one()
    mine = connection.scalar(select(places.c.token).where(places.c.key == key, places.c.token == token))
    if mine is None and count >= limit:
        return LimitDecision(False, seconds if first is None else first - moment)
    place = database.insert_into(connection, places).values(key=key, token=token, expires=moment + seconds)
    connection.execute(
        place.on_conflict_do_update(index_elements=["key", "token"], set_={"expires": moment + seconds})
    )
    return _OK
