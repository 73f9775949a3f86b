"""The record of a call in the tool's own database: the effect is there once, whenever the tool dies."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
import httpx
import pytest

from beckon_tools import CallRecord, DeclarationError, Later, ToolError, tool
from beckon_tools.declaration import AnyTool
from beckon_tools.outcomes.record import TABLE, AsyncCallRecord
from beckon_tools.signature import read_signature
from tests.agent.store.postgres import Server
from tests.tools.serving import call, calling
from tests.tools.tool_process import post, tool_process

IN_SQLITE = '''
import os, signal, sqlite3
from contextlib import closing
from pathlib import Path

from beckon_tools import CallRecord, tool


@tool(type="card.charge")
def charge(amount: int, record: CallRecord) -> dict[str, int]:
    """Charge the card, and die before the first reply."""
    with closing(sqlite3.connect("bank.db")) as bank:
        with bank:
            record.recall(bank)
            number = bank.execute("INSERT INTO charges (amount) VALUES (?)", (amount,)).lastrowid
            result = record.store(bank, {"receipt": number})
    if not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return result
'''
IN_POSTGRESQL = '''
import os, signal
from pathlib import Path

import asyncpg

from beckon_tools import AsyncCallRecord, tool


@tool(type="card.charge")
async def charge(amount: int, record: AsyncCallRecord) -> dict[str, int]:
    """Charge the card, and die before the first reply."""
    bank = await asyncpg.connect(os.environ["BANK"])
    async with bank.transaction():
        await record.recall(bank)
        number = await bank.fetchval("INSERT INTO charges (amount) VALUES ($1) RETURNING id", amount)
        result = await record.store(bank, {"receipt": number})
    if not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    await bank.close()
    return result
'''
INSERT = "INSERT INTO charges (amount) VALUES ($1) RETURNING id"
CHARGES = "CREATE TABLE charges (id {0} PRIMARY KEY, amount INTEGER)"


def bank_of(folder: Path) -> Path:
    """Make a bank without charges in SQLite, and return its file."""
    with closing(sqlite3.connect(folder / "bank.db")) as bank, bank:
        bank.execute(TABLE)
        bank.execute(CHARGES.format("INTEGER"))
    return folder / "bank.db"


def amounts(bank: Path) -> list[int]:
    """Return the charges of a bank in SQLite."""
    with closing(sqlite3.connect(bank)) as database:
        return [row[0] for row in database.execute("SELECT amount FROM charges")]


async def killed_and_delivered_again(folder: Path, source: str, bank: str = "") -> list[object]:
    """Deliver a call to a tool that dies after its effect, then twice to the next process."""
    (folder / "card.py").write_text(source)
    event = call("card.charge", {"amount": 30})
    async with tool_process(folder, "card:charge", BANK=bank) as (process, url):
        with pytest.raises(httpx.TransportError):
            await post(url, event)
        assert await process.wait() == -9
    async with tool_process(folder, "card:charge", BANK=bank) as (_, url):
        return [(await post(url, event)).json() for _ in range(2)]


async def test_a_tool_that_is_killed_after_its_effect_in_sqlite_has_it_once(tmp_path: Path) -> None:
    bank = bank_of(tmp_path)
    answers = await killed_and_delivered_again(tmp_path, IN_SQLITE)

    assert answers == [{"receipt": 1}] * 2
    assert amounts(bank) == [30]


async def test_a_tool_that_is_killed_after_its_effect_in_postgresql_has_it_once(
    tmp_path: Path, postgres: Server
) -> None:
    url = await postgres.copy("bank")
    bank = await asyncpg.connect(url)
    await bank.execute(TABLE)
    await bank.execute(CHARGES.format("SERIAL"))
    answers = await killed_and_delivered_again(tmp_path, IN_POSTGRESQL, url)
    rows = await bank.fetch("SELECT amount FROM charges")
    await bank.close()

    assert answers == [{"receipt": 1}] * 2
    assert [row["amount"] for row in rows] == [30]


def charging(bank: Path, result: object) -> AnyTool:
    """Return a tool that charges without looking first, as two replicas at once would."""

    @tool(type="card.charge")
    def charge(amount: int, record: CallRecord) -> object:
        """Charge the card."""
        with closing(sqlite3.connect(bank)) as database, database:
            database.execute("INSERT INTO charges (amount) VALUES (?)", (amount,))
            if isinstance(result, Exception):
                raise result
            return record.store(database, result)

    return charge


async def delivered_to_each(bank: Path, results: list[object]) -> list[object]:
    """Deliver one call to a replica for each result; return what they answer."""
    answers = []
    for result in results:
        async with calling(charging(bank, result)) as caller:
            reply = await caller.reply(call("card.charge", {"amount": 30}))
            answers.append(reply.extensions.get("beckonstate") or reply.json())
    return answers


async def test_of_two_runs_of_a_call_the_second_is_rolled_back_and_answers_as_the_first(
    tmp_path: Path,
) -> None:
    bank = bank_of(tmp_path)

    assert await delivered_to_each(bank, ["one", "other"]) == ["one", "one"]
    assert amounts(bank) == [30]


async def test_a_call_that_is_answered_later_has_a_record_too(tmp_path: Path) -> None:
    bank = bank_of(tmp_path)

    assert await delivered_to_each(bank, [Later(), "other"]) == ["accepted", "accepted"]
    assert amounts(bank) == [30]


async def test_a_transaction_that_is_rolled_back_leaves_no_record(tmp_path: Path) -> None:
    bank = bank_of(tmp_path)
    refused, charged = await delivered_to_each(bank, [ToolError("no money"), "charged"])

    assert "no money" in str(refused)
    assert (charged, amounts(bank)) == ("charged", [30])


async def test_runs_at_once_in_postgresql_have_one_effect(postgres: Server) -> None:
    url = await postgres.copy("banks")
    bank = await asyncpg.create_pool(url, min_size=1, max_size=9)
    await bank.execute(TABLE)
    await bank.execute(CHARGES.format("SERIAL"))

    @tool(type="card.charge")
    async def charge(amount: int, record: AsyncCallRecord) -> object:
        """Charge the card."""
        async with bank.acquire() as connection, connection.transaction():
            number = await connection.fetchval(
                "INSERT INTO charges (amount) VALUES ($1) RETURNING id", amount
            )
            return await record.store(connection, number)

    async def replica() -> object:
        async with calling(charge) as caller:
            return await caller.result(call("card.charge", {"amount": 30}))

    answers = await asyncio.gather(*(replica() for _ in range(5)))
    charges = await bank.fetch("SELECT id FROM charges")
    await bank.close()

    assert answers == [charges[0]["id"]] * 5
    assert len(charges) == 1


def test_a_record_is_no_parameter_of_the_tool_and_comes_once() -> None:
    async def twice(first: CallRecord, second: CallRecord) -> None: ...

    def once(amount: int, record: CallRecord) -> None: ...

    assert list(read_signature(once).schema["properties"]) == ["amount"]
    with pytest.raises(DeclarationError, match="the record of the call twice"):
        read_signature(twice)


async def test_a_connection_of_another_driver_is_an_error_that_names_the_right_class(tmp_path: Path) -> None:
    @tool(type="card.charge")
    async def charge(record: AsyncCallRecord) -> None:
        """Charge the card."""
        with closing(sqlite3.connect(tmp_path / "bank.db")) as bank:
            await record.recall(bank)

    async with calling(charge) as caller:
        answer = await caller.result(call("card.charge", {}))

    assert "takes a connection of asyncpg, not 'Connection'; see CallRecord" in str(answer)
