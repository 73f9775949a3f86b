"""Looking into a database past the store."""

import sqlite3
from contextlib import closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the package brings no types


async def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            return connection.execute(statement).fetchall()
    opened = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await opened.fetch(statement)]
    finally:
        await opened.close()


async def count(url: str, table: str) -> int:
    """Return how many rows a table has."""
    [[number]] = await execute(url, f"SELECT count(*) FROM {table}")
    return int(number)
