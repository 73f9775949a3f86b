"""The tool `sql`: queries on a bundled data set."""

import asyncio
from typing import Annotated

from pydantic import Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings
from beckon_tools.shipped import elements
from beckon_tools.shipped.sandbox import MAX_ROWS, QueryError, select


@tool(
    type="sql",
    description=f"Query a database of the chemical elements in SQL; it can only be read. {elements.SCHEMA}",
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
        found = await asyncio.to_thread(select, statement, elements.load)
    except QueryError as error:
        raise ToolError(f"the query cannot be answered: {error}. {elements.SCHEMA}") from None
    result: dict[str, object] = {"sql": statement, "columns": found.columns, "rows": found.rows}
    if found.truncated:
        result["note"] = f"only the first {MAX_ROWS} rows are shown"
    return result


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return sql
