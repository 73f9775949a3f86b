"""The tool `sql`: questions about a bundled data set, in plain words or as SQL."""

import asyncio
from typing import Annotated

from pydantic import Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings
from beckon_tools.shipped import elements
from beckon_tools.shipped.questions import EXAMPLES, NotUnderstood, translate
from beckon_tools.shipped.sandbox import MAX_ROWS, QueryError, select

_SCHEMA = (
    f"Table {elements.TABLE} ({', '.join(elements.COLUMNS)}): one row a chemical element. "
    "category is one of nonmetal, noble gas, alkali metal, alkaline earth metal, metalloid, halogen, "
    "post-transition metal, transition metal, lanthanide, actinide; phase (at room temperature) one of "
    "solid, liquid, gas; block one of s, p, d, f; temperatures are in kelvin; discovered is a year, "
    "NULL for antiquity; radioactive is 0 or 1."
)


@tool(
    type="sql",
    description=(
        "Answer a question about the chemical elements from a database: properties, counts, averages, "
        "superlatives, comparisons. Give the question, and better also the SQL query that answers it."
    ),
    hints=Hints(read_only=True, idempotent=True),
)
async def sql(
    question: Annotated[
        str,
        Field(
            description='The question in plain English, e.g. "Which metal has the highest melting point?"',
            max_length=500,
        ),
    ],
    query: Annotated[
        str,
        Field(
            description=f"The question as a SELECT in SQLite's dialect; it is run as it stands. {_SCHEMA}",
            max_length=4000,
        ),
    ] = "",
) -> dict[str, object]:
    """Run the query, or what the question becomes; at most `MAX_ROWS` rows are returned."""
    statement = _statement(question, query)
    try:
        found = await asyncio.to_thread(select, statement, elements.load)
    except QueryError as error:
        raise ToolError(f"the query cannot be answered: {error}. {_SCHEMA}") from None
    result: dict[str, object] = {"sql": statement, "columns": found.columns, "rows": found.rows}
    if found.truncated:
        result["note"] = f"only the first {MAX_ROWS} rows are shown"
    return result


def _statement(question: str, query: str) -> str:
    if query.strip():
        return query.strip()
    try:
        return translate(question)
    except NotUnderstood as error:
        examples = "; ".join(EXAMPLES)
        raise ToolError(
            f"the question is not understood: {error}. Ask as in: {examples}; or write a SQL query. {_SCHEMA}"
        ) from None


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return sql
