import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_tools import ToolError
from beckon_tools.shipped.sql import COLUMNS, MAX_ROWS, QueryError, Rows, load_table, run_select, sql
from tests.tools.serving import call, calling


def run(query: str) -> Rows:
    return run_select(query, load_table)


WRITES = [
    "INSERT INTO elements (number, symbol, name) VALUES (119, 'Uue', 'Ununennium')",
    "UPDATE elements SET name = 'Lead' WHERE symbol = 'Au'",
    "DELETE FROM elements",
    "DROP TABLE elements",
    "CREATE TABLE mine (x)",
    "CREATE TEMP TABLE mine (x)",
    "CREATE VIEW mine AS SELECT 1",
    "ALTER TABLE elements ADD COLUMN x",
    "REPLACE INTO elements (number) VALUES (1)",
    "WITH x AS (SELECT 1) DELETE FROM elements",
    "ATTACH DATABASE '/etc/passwd' AS stolen",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "PRAGMA writable_schema = 1",
    "PRAGMA query_only = OFF",
    "PRAGMA table_info(elements)",
    "SELECT * FROM pragma_database_list",
    "VACUUM",
    "VACUUM INTO '/tmp/stolen.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT a",
    "SELECT load_extension('/tmp/evil.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'x')",
    "SELECT 1; DELETE FROM elements",
    "EXPLAIN DELETE FROM elements",
    "",
    "-- nothing",
    "SELECT ?1",
    "SELECT :name",
    "SELECT nothing FROM elements",
    "SELECT 1\x00",
    "not sql at all",
    "Which metal has the highest melting point?",
    "delete all the elements",
    "'; DROP TABLE elements; --",
]


@pytest.mark.parametrize("query", WRITES)
def test_nothing_but_one_plain_select_is_answered(query: str) -> None:
    with pytest.raises(QueryError):
        run(query)
    assert run("SELECT COUNT(*), SUM(number) FROM elements").rows == [[118, 7021]]


BOMBS = [
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT x FROM c",
    "SELECT COUNT(*) FROM elements a, elements b, elements c, elements d",
    "SELECT * FROM elements a, elements b, elements c ORDER BY a.name || b.name || c.name",
    "SELECT zeroblob(1000000000)",
    "SELECT hex(zeroblob(19000))",
    "SELECT printf('%.*c', 2147483647, 'x')",
    "SELECT format('%.*c', 2147483647, 'x')",
    "SELECT group_concat(a.name || b.name) FROM elements a, elements b, elements c",
    f"SELECT replace(replace('{'x' * 4000}', 'x', 'yyyy'), 'y', 'zzzz')",
    f"SELECT replace('{'x' * 1200}', 'x', 'yyyy') || a.name || b.name || c.name AS s "
    "FROM elements a, elements b, elements c ORDER BY s",
    f"SELECT COUNT(*) FROM elements a, elements b, elements c WHERE replace('{'x' * 4000}', "
    "'xxxxxxxy' || c.name, a.name || b.name)",
    f"SELECT 'a' LIKE '{'%a' * 60}'",
    f"SELECT {'(' * 200}1{')' * 200}",
    f"SELECT {' UNION ALL SELECT '.join(['1'] * 50)}",
    f"SELECT '{'x' * 6000}'",
]


@pytest.mark.parametrize("query", BOMBS, ids=range(len(BOMBS)))
def test_a_query_that_would_take_too_much_is_stopped(query: str) -> None:
    with pytest.raises(QueryError):
        run(query)


@given(
    st.text(max_size=80),
    st.sampled_from(["{}", "SELECT {}", "SELECT * FROM elements WHERE {}", "WITH a AS ({}) SELECT 1"]),
)
def test_any_text_is_rows_or_a_clear_error(text: str, template: str) -> None:
    with contextlib.suppress(QueryError):
        assert len(run(template.format(text)).rows) <= MAX_ROWS


def test_rows_beyond_the_limit_are_cut_and_said_to_be() -> None:
    found = run("SELECT name FROM elements")
    assert (len(found.rows), found.truncated) == (MAX_ROWS, True)
    assert not run("SELECT name FROM elements LIMIT 100").truncated


def test_expressions_joins_and_recursion_within_bounds_are_answered() -> None:
    query = """
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5)
        SELECT n.x, e.name, round(e.atomic_mass, 1), x'00ff' FROM n JOIN elements e ON e.number = n.x
        WHERE e.name LIKE 'h%' ORDER BY n.x DESC"""
    assert run(query).rows == [[2, "Helium", 4.0, "x'00ff'"], [1, "Hydrogen", 1.0, "x'00ff'"]]


async def test_the_tool_runs_the_query_that_the_model_wrote() -> None:
    query = "SELECT name FROM elements WHERE symbol = 'W'"
    async with calling(sql) as caller:
        result = await caller.result(call("sql", {"query": f" {query}\n"}))
    assert result == {"sql": query, "columns": ["name"], "rows": [["Tungsten"]]}


def test_the_model_is_given_the_schema_of_the_table() -> None:
    assert all(column in sql.description for column in COLUMNS)


async def test_the_query_of_the_description_has_an_answer() -> None:
    schema = sql.signature.schema["properties"]["query"]["description"]
    query = schema.split('"')[1]
    result = await sql(query)
    assert result["rows"] == [["Osmium"], ["Iridium"], ["Platinum"]]


@pytest.mark.parametrize("query", ["", "report me a joke", "SELECT nothing FROM elements"])
async def test_what_fails_shows_the_model_the_columns(query: str) -> None:
    with pytest.raises(ToolError, match="melting_point_k"):
        await sql(query)


async def test_a_long_query_does_not_hold_up_other_calls() -> None:
    slow = BOMBS[0]
    async with calling(sql) as caller:
        bomb = asyncio.create_task(caller.result(call("sql", {"query": slow}, id="slow")))
        assert await caller.result(call("sql", {"query": "SELECT 1"}, id="fast"))
        result = await bomb
    assert isinstance(result, dict)
    assert "more than 1000000 steps" in result["error"]["message"]
