"""The record of a call, in the tool's own database.

It is written by the transaction that has the effect. A process that ends between the effect of a call and
its reply has the call delivered again. The record closes that gap: it exists if and only if the effect
does, and the second delivery is answered by it.
"""

import hashlib
from typing import Any, TypeVar

import orjson

from beckon_tools.answers import reply_data
from beckon_tools.outcomes.ledger import CallKey

R = TypeVar("R")

TABLE = """\
CREATE TABLE IF NOT EXISTS beckon_outcomes (
    key TEXT PRIMARY KEY,
    outcome TEXT NOT NULL,
    stored TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)"""
"""The table that a record needs, for SQLite and PostgreSQL; rows are small, and of no use after a day."""

# A second run of the call waits here for the first one's transaction; then its own is rolled back.
_STORE = "INSERT INTO beckon_outcomes (key, outcome) VALUES (?, ?) ON CONFLICT DO NOTHING"
_STORE_ASYNCPG = (
    "INSERT INTO beckon_outcomes (key, outcome) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key"
)
_RECALL = "SELECT outcome FROM beckon_outcomes WHERE key = ?"
_RECALL_ASYNCPG = "SELECT outcome FROM beckon_outcomes WHERE key = $1"


class Recalled(BaseException):
    """The call has its outcome: the function ends here, its transaction is rolled back.

    No `Exception`, so that a function which catches those does not take it for a fault.
    """

    def __init__(self, outcome: str) -> None:
        super().__init__("the call has its outcome from an earlier delivery")
        self.data = outcome.encode()


class CallRecord:
    """The record of one call, for `sqlite3`.

    A function receives it by a parameter of this type. The table `TABLE` must exist. Methods raise the
    errors of the connection, and `TypeError` for a connection of another driver.
    """

    def __init__(self, call: CallKey) -> None:
        self._key = hashlib.sha256(orjson.dumps([*call])).hexdigest()

    def recall(self, connection: Any) -> None:
        """End the function here if an earlier delivery of the call had its effect."""
        _check_connection(connection, "sqlite3")
        row = connection.execute(_RECALL, (self._key,)).fetchone()
        if row is not None:
            raise Recalled(row[0])

    def store(self, connection: Any, result: R) -> R:
        """Write the result by the open transaction, and return it for the function to return.

        Ends the function here, its transaction rolled back, if another run of the call was first.
        """
        _check_connection(connection, "sqlite3")
        if connection.execute(_STORE, (self._key, reply_data(result).decode())).rowcount != 1:
            self.recall(connection)
        return result


class AsyncCallRecord:
    """The record of one call, for `asyncpg`, otherwise as `CallRecord`."""

    def __init__(self, call: CallKey) -> None:
        self._key = hashlib.sha256(orjson.dumps([*call])).hexdigest()

    async def recall(self, connection: Any) -> None:
        """End the function here if an earlier delivery of the call had its effect."""
        _check_connection(connection, "asyncpg")
        outcome = await connection.fetchval(_RECALL_ASYNCPG, self._key)
        if outcome is not None:
            raise Recalled(outcome)

    async def store(self, connection: Any, result: R) -> R:
        """Write the result by the open transaction, and return it for the function to return.

        Ends the function here, its transaction rolled back, if another run of the call was first.
        """
        _check_connection(connection, "asyncpg")
        if await connection.fetchval(_STORE_ASYNCPG, self._key, reply_data(result).decode()) is None:
            await self.recall(connection)
        return result


def _check_connection(connection: object, driver: str) -> None:
    drivers = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    if driver not in drivers:
        other = "AsyncCallRecord" if driver == "sqlite3" else "CallRecord"
        raise TypeError(
            f"the record of a call takes a connection of {driver}, not {type(connection).__qualname__!r}; "
            f"see {other} for the other driver"
        )
