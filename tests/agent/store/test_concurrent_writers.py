"""Writers of one SQLite file that wait for one another."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from sqlalchemy import Connection, text

from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.sql.sqlite import SQLite

SOON = 20


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> AsyncIterator[SQLite]:
    database = SQLite(tmp_path / "file.db")
    await database.write(_made)
    yield database
    await database.aclose()


def _made(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE parent (id INTEGER PRIMARY KEY)"))
    connection.execute(
        text(
            "CREATE TABLE words (word TEXT PRIMARY KEY,"
            " parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    )


class Queue:
    """Work that waits before the thread until all of it is there."""

    def __init__(self, database: SQLite) -> None:
        self._database = database
        self._begun, self._open = threading.Event(), threading.Event()
        self._held = asyncio.ensure_future(database.write(self._hold))
        self._works: list[asyncio.Future[object]] = []

    def _hold(self, _: Connection) -> bool:
        self._begun.set()
        return self._open.wait(SOON)

    def add(self, word: str, *, fails: bool = False, parent: int | None = None) -> "asyncio.Future[object]":
        """Queue a piece that stores a word, and then may fail."""

        def work(connection: Connection) -> object:
            values = {"word": word, "parent": parent}
            connection.execute(text("INSERT INTO words VALUES (:word, :parent)"), values)
            if fails:
                raise KeyError(word)
            return word

        self._works.append(asyncio.ensure_future(self._database.write(work)))
        return self._works[-1]

    async def held(self) -> "Queue":
        """Wait until the thread is held."""
        assert await asyncio.to_thread(self._begun.wait, SOON)
        return self

    async def outcomes(self) -> list[object]:
        """Let the thread go on; return what came of each piece."""
        await asyncio.sleep(0)  # the last to come has its place
        self._open.set()
        assert await self._held
        return await asyncio.gather(*self._works, return_exceptions=True)


async def stored(database: SQLite) -> list[str]:
    words = text("SELECT word FROM words ORDER BY word")
    return await database.read(lambda connection: list(connection.scalars(words)))


async def test_a_piece_that_fails_is_undone_alone(database: SQLite) -> None:
    queue = await Queue(database).held()
    queue.add("a")
    queue.add("b", fails=True)
    queue.add("c")

    first, second, third = await queue.outcomes()

    assert (first, third) == ("a", "c")
    assert isinstance(second, KeyError)
    assert await stored(database) == ["a", "c"]


async def test_no_one_is_reported_that_it_is_stored_where_the_commit_fails(database: SQLite) -> None:
    queue = await Queue(database).held()
    queue.add("a")
    queue.add("orphan", parent=7)

    outcomes = await queue.outcomes()

    assert all(isinstance(outcome, Exception) for outcome in outcomes), outcomes
    assert await stored(database) == []


async def test_pieces_are_stored_in_the_order_in_which_they_came(database: SQLite) -> None:
    queue = await Queue(database).held()
    queue.add("a")
    again = queue.add("a")
    queue.add("b")

    await queue.outcomes()

    assert again.exception() is not None
    assert await stored(database) == ["a", "b"]


async def test_work_whose_caller_has_gone_is_left_out(database: SQLite) -> None:
    queue = await Queue(database).held()
    gone = queue.add("gone")
    queue.add("a")
    await asyncio.sleep(0)  # both have their places
    gone.cancel()

    await queue.outcomes()

    assert await stored(database) == ["a"]


async def test_more_pieces_than_one_transaction_takes_are_all_stored(database: SQLite) -> None:
    queue = await Queue(database).held()
    words = [f"{number:03}" for number in range(200)]
    for word in words:
        queue.add(word)

    assert await queue.outcomes() == words
    assert await stored(database) == words


async def test_a_database_that_fails_says_so_to_all_who_wait(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "none" / "file.db")  # SQLite makes files, and no folders
    works = [database.write(_made) for _ in range(3)]

    outcomes = await asyncio.gather(*works, return_exceptions=True)

    await database.aclose()
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
