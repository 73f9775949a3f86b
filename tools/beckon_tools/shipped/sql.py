"""The tool `sql`: read-only SQL over a table of the chemical elements."""

import asyncio
import csv
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings

TABLE = "elements"

# The SQL type of each column of the CSV file, which gives their order.
COLUMNS = {
    "number": "INTEGER PRIMARY KEY",
    "symbol": "TEXT NOT NULL",
    "name": "TEXT NOT NULL COLLATE NOCASE",
    "atomic_mass": "REAL NOT NULL",
    "group_number": "INTEGER",
    "period": "INTEGER NOT NULL",
    "block": "TEXT NOT NULL",
    "category": "TEXT NOT NULL",
    "phase": "TEXT",
    "melting_point_k": "REAL",
    "boiling_point_k": "REAL",
    "density_g_cm3": "REAL",
    "electronegativity": "REAL",
    "discovered": "INTEGER",
    "radioactive": "INTEGER NOT NULL",
}

SCHEMA = (
    f"Table {TABLE} ({', '.join(COLUMNS)}): one row a chemical element. "
    "category is one of nonmetal, noble gas, alkali metal, alkaline earth metal, metalloid, halogen, "
    "post-transition metal, transition metal, lanthanide, actinide; phase (at room temperature) one of "
    "solid, liquid, gas; block one of s, p, d, f; temperatures are in kelvin; discovered is a year, "
    "NULL for antiquity; radioactive is 0 or 1."
)
"""The table as a model reads of it."""

Row = tuple[str | int | float | None, ...]


@cache
def read_rows() -> tuple[Row, ...]:
    """Return the rows of the file, empty fields as `None`, numbers as numbers."""
    text = resources.files("beckon_tools.shipped").joinpath("data/elements.csv").read_text("utf-8")
    reader = csv.reader(text.splitlines())
    header = next(reader)
    if header != list(COLUMNS):
        raise ValueError(f"elements.csv has the columns {header}")
    readers = [_reader_of(declared) for declared in COLUMNS.values()]
    return tuple(
        tuple(read(field) if field else None for read, field in zip(readers, line, strict=True))
        for line in reader
    )


def load_table(connection: sqlite3.Connection) -> None:
    """Create the table in a database and fill it."""
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE {TABLE} ({declared})")
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(" ".join(["INSERT INTO", TABLE, "VALUES", f"({marks})"]), read_rows())
    connection.commit()


def _reader_of(declared: str) -> type[str] | type[int] | type[float]:
    return {"TEXT": str, "INTEGER": int, "REAL": float}[declared.split(maxsplit=1)[0]]


MAX_ROWS = 100
MAX_STEPS = 1_000_000  # of SQLite's virtual machine: about a tenth of a second
MAX_SECONDS = 2.0  # for the few steps that take long
MAX_MEMORY = 64 * 1024 * 1024  # bytes, of all queries of the process
_STEPS_A_CHECK = 200

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 5_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 5_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 64,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
}
_ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
)
# A list of what is allowed: printf('%.*c', 2147483647, 'x') alone runs for seconds in one step.
_FUNCTIONS = re.compile(
    "abs|avg|ceil|ceiling|coalesce|count|cume_dist|dense_rank|exp|first_value|floor|glob|group_concat|ifnull|"
    "instr|lag|last_value|lead|length|like|ln|log|log10|log2|lower|ltrim|max|min|mod|nth_value|ntile|nullif|"
    "percent_rank|pow|power|rank|replace|round|row_number|rtrim|sign|sqrt|substr|substring|sum|total|trim|trunc|"
    "typeof|unicode|upper",
    re.IGNORECASE,
)

Value = str | int | float | None


class QueryError(ValueError):
    """A query that cannot be answered; the message says why."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a query; `truncated` where there were more than `MAX_ROWS`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    truncated: bool


def run_select(query: str, load: Callable[[sqlite3.Connection], None]) -> Rows:
    """Run one SELECT on a database that `load` fills; raise `QueryError` for anything else.

    Every query has a fresh database in memory, which no other query sees: a hole in what follows
    would lead nowhere.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        load(connection)
        _lock_down(connection)
        cursor = connection.execute(query)
        if cursor.description is None:
            raise QueryError("only a SELECT is answered here")
        rows = cursor.fetchmany(MAX_ROWS + 1)
        columns = [column[0] for column in cursor.description]
    except MemoryError:
        raise QueryError(f"the query takes more than {MAX_MEMORY} bytes of memory; narrow it down") from None
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        raise QueryError(_error_text(error)) from None
    finally:
        connection.close()
    return Rows(
        columns, [[_to_value(value) for value in row] for row in rows[:MAX_ROWS]], len(rows) > MAX_ROWS
    )


def _lock_down(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA hard_heap_limit = {MAX_MEMORY}")
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    steps = 0
    deadline = time.monotonic() + MAX_SECONDS

    def is_over_limit() -> bool:
        nonlocal steps
        steps += _STEPS_A_CHECK
        return steps > MAX_STEPS or time.monotonic() > deadline

    connection.set_progress_handler(is_over_limit, _STEPS_A_CHECK)
    connection.set_authorizer(_authorize_action)


def _authorize_action(action: int, first: str | None, second: str | None, *_where: str | None) -> int:
    """Let a query read and compute, nothing else: no writing, attaching, pragmas, or extensions."""
    allowed = action in _ALLOWED
    if action == sqlite3.SQLITE_FUNCTION:
        allowed = _FUNCTIONS.fullmatch(second or "") is not None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _to_value(value: Value | bytes) -> Value:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def _error_text(error: Exception) -> str:
    message = str(error)
    if message == "interrupted":
        return f"the query takes more than {MAX_STEPS} steps or {MAX_SECONDS:g} seconds; narrow it down"
    if "not authorized" in message or "prohibited" in message:
        return f"only a SELECT on the data set is answered here ({message})"
    return message


@tool(
    type="sql",
    description=f"Query a database of the chemical elements in SQL; it can only be read. {SCHEMA}",
    hints=Hints(read_only=True, idempotent=True),
)
async def sql(
    query: Annotated[
        str,
        Field(
            description=(
                "One SELECT in SQLite's dialect, e.g. "
                '"SELECT name FROM elements ORDER BY density_g_cm3 DESC LIMIT 3"'
            ),
            max_length=4000,
        ),
    ],
) -> dict[str, object]:
    """Run the query; at most `MAX_ROWS` rows are returned."""
    statement = query.strip()
    try:
        selected = await asyncio.to_thread(run_select, statement, load_table)
    except QueryError as error:
        raise ToolError(f"the query cannot be answered: {error}. {SCHEMA}") from None
    result: dict[str, object] = {"sql": statement, "columns": selected.columns, "rows": selected.rows}
    if selected.truncated:
        result["note"] = f"only the first {MAX_ROWS} rows are shown"
    return result


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return sql
