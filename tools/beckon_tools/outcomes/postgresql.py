"""The ledger in PostgreSQL: one row for each call.

The table is created if it does not exist.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the package brings no types

from beckon_tools.outcomes.ledger import Claim, Unavailable

_SECONDS = 5.0
_CONNECTIONS = 10
_SWEEP_SECONDS = 60.0

_IS_THERE = "SELECT to_regclass('beckon_tool_calls') IS NOT NULL"
_MAKE = """
SELECT pg_advisory_xact_lock(hashtext('beckon_tool_calls'));
CREATE TABLE IF NOT EXISTS beckon_tool_calls (
    key text PRIMARY KEY,
    owner text NOT NULL,
    data bytea,
    expires timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS beckon_tool_calls_expires ON beckon_tool_calls (expires);
"""
_CLAIM = """
INSERT INTO beckon_tool_calls AS known (key, owner, expires)
VALUES ($1, $2, now() + make_interval(secs => $3))
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, data = NULL, expires = excluded.expires
WHERE known.expires <= now()
RETURNING true
"""
_KNOWN = "SELECT data FROM beckon_tool_calls WHERE key = $1 AND expires > now()"
_MINE = "WHERE key = $1 AND owner = $2 AND data IS NULL"
_RENEW = f"UPDATE beckon_tool_calls SET expires = now() + make_interval(secs => $3) {_MINE} RETURNING true"  # noqa: S608 - of constants
_KEEP = f"UPDATE beckon_tool_calls SET data = $3, expires = now() + make_interval(secs => $4) {_MINE}"  # noqa: S608 - of constants
_RELEASE = f"DELETE FROM beckon_tool_calls {_MINE}"  # noqa: S608 - of constants
# A number is a row without an outcome, in the column of a call's owner: replicas of an older
# version share the table, and its administrator may have allowed no other table.
_COUNT = """
INSERT INTO beckon_tool_calls AS known (key, owner, expires)
VALUES ($1, '1', now() + make_interval(secs => $2))
ON CONFLICT (key) DO UPDATE SET expires = excluded.expires,
    owner = CASE WHEN known.expires <= now() THEN '1' ELSE (known.owner::bigint + 1)::text END
RETURNING owner::bigint
"""
_SWEEP = "DELETE FROM beckon_tool_calls WHERE expires <= now()"


class PostgresqlLedger:
    """A `Ledger` in the database at `url`, connected when it is used first."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._next_sweep = 0.0

    async def claim(self, key: str, owner: str, lease: float) -> Claim:
        """Claim a call, unless it has an owner or an outcome."""
        if await self._fetch_value(_CLAIM, key, owner, lease):
            await self._remove_expired()
            return Claim(mine=True)
        return Claim(mine=False, data=await self._fetch_value(_KNOWN, key))

    async def renew(self, key: str, owner: str, lease: float) -> bool:
        """Extend the lease of a call; `False` if the owner has lost it."""
        return bool(await self._fetch_value(_RENEW, key, owner, lease))

    async def store_outcome(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        """Write the outcome of a call, if it is still the owner's."""
        await self._fetch_value(_KEEP, key, owner, data, ttl)

    async def release(self, key: str, owner: str) -> None:
        """Give a call up without an outcome, if it is still the owner's."""
        await self._fetch_value(_RELEASE, key, owner)

    async def count(self, key: str, ttl: float) -> int:
        """Increment the number of a key and return it. The number is stored for `ttl` seconds from now."""
        return int(await self._fetch_value(_COUNT, key, ttl))

    async def close(self) -> None:
        """Close every connection; raises nothing."""
        if self._pool is not None:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                await asyncio.wait_for(self._pool.close(), _SECONDS)

    async def _remove_expired(self) -> None:
        """Remove the expired rows, at most once a minute."""
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            await self._fetch_value(_SWEEP)

    async def _fetch_value(self, statement: str, *arguments: object) -> Any:
        with _convert_errors():
            pool = await self._open_pool()
            return await pool.fetchval(statement, *arguments)

    async def _open_pool(self) -> Any:
        async with self._opening:
            if self._pool is None:
                pool = await asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=_CONNECTIONS,
                    timeout=_SECONDS,
                    command_timeout=_SECONDS,
                    statement_cache_size=0,  # a pooler between us would give statements to others
                )
                if not await pool.fetchval(_IS_THERE):
                    await pool.execute(_MAKE)
                self._pool = pool
        return self._pool


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise Unavailable(f"PostgreSQL does not answer: {type(error).__name__}") from error
