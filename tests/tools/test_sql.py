import asyncio
import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_tools import ToolError
from beckon_tools.shipped import elements
from beckon_tools.shipped.questions import EXAMPLES, NotUnderstood, translate
from beckon_tools.shipped.sandbox import MAX_ROWS, QueryError, Rows, select
from beckon_tools.shipped.sql import sql
from tests.tools.serving import call, calling


def run(query: str) -> Rows:
    return select(query, elements.load)


def answer(question: str) -> list[Any]:
    return [row[0] if len(row) == 1 else row for row in run(translate(question)).rows]


def names(question: str) -> list[object]:
    found = run(translate(question))
    return [row[list(found.columns).index("name")] for row in found.rows]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which metal has the highest melting point?", ["Tungsten"]),
        ("What is the lightest element?", ["Hydrogen"]),
        ("the heaviest stable element", ["Bismuth"]),
        ("Which noble gas is the densest?", ["Radon"]),
        ("What are the three most electronegative elements?", ["Fluorine", "Oxygen", "Chlorine"]),
        ("top 3 elements by density", ["Osmium", "Iridium", "Platinum"]),
        ("the 2 elements with the lowest boiling point", ["Helium", "Hydrogen"]),
        ("Which elements are liquid at room temperature?", ["Bromine", "Mercury"]),
        ("List the alkali metals", ["Lithium", "Sodium", "Potassium", "Rubidium", "Caesium", "Francium"]),
        ("Which halogens are gases?", ["Fluorine", "Chlorine"]),
        ("noble gases in period 2", ["Neon"]),
        ("elements with a density above 22", ["Osmium", "Iridium"]),
        ("elements with an electronegativity of at least 3.4", ["Oxygen", "Fluorine"]),
        ("metals that melt below 0 °C", ["Mercury"]),
        ("metals that melt below 32 F", ["Mercury"]),
        ("elements with a melting point between 300 and 303", ["Gallium", "Caesium"]),
        ("Which elements are denser than platinum?", ["Osmium", "Iridium"]),
        ("Which elements are heavier than 293?", ["Tennessine", "Oganesson"]),
        ("nonmetals discovered in the 17th century", ["Phosphorus"]),
        ("elements discovered in the 1990s", ["Darmstadtium", "Roentgenium", "Copernicium", "Flerovium"]),
        ("Which elements were discovered after 2003?", ["Nihonium", "Tennessine"]),
        ("Which element was discovered first?", ["Phosphorus"]),
        ("What is element 79?", ["Gold"]),
        ("Is iron denser than lead?", ["Lead", "Iron"]),
        ("compare the densities of Fe and gold", ["Gold", "Iron"]),
        ("Tell me about helium.", ["Helium"]),
        ("Tell me about aluminum's melting point", ["Aluminium"]),
    ],
)
def test_a_question_names_the_elements_that_it_asks_for(question: str, expected: list[str]) -> None:
    assert names(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many elements are there?", [118]),
        ("How many noble gases are there?", [7]),
        ("How many elements are gases at room temperature?", [11]),
        ("number of elements per block", [["d", 40], ["f", 28], ["p", 36], ["s", 14]]),
        ("How many gases are there in each period?", [[1, 2], [2, 4], [3, 2], [4, 1], [5, 1], [6, 1]]),
        ("What is the average density of the halogens?", [2.0101]),
        ("boiling point of gold", [["Gold", "Au", 3109.15]]),
        ("What is the atomic mass of Fe?", [["Iron", "Fe", 55.845]]),
        ("symbol of tungsten", [["Tungsten", "W"]]),
        ("When was oxygen discovered?", [["Oxygen", "O", 1774]]),
        ("What is the average atomic mass of alkali metals in period 4?", [39.0983]),
    ],
)
def test_a_question_has_the_figures_that_it_asks_for(question: str, expected: list[object]) -> None:
    assert answer(question) == expected


def test_the_extreme_of_each_group_is_told_with_its_element() -> None:
    assert answer("highest boiling point per block") == [
        ["d", "Rhenium", 5863.15],
        ["f", "Thorium", 5058.15],
        ["p", "Boron", 4273.15],
        ["s", "Beryllium", 2741.15],
    ]


@pytest.mark.parametrize("question", EXAMPLES)
def test_the_questions_that_errors_offer_have_answers(question: str) -> None:
    assert answer(question)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the weather in Paris?", "'weather'"),
        ("delete all the elements", "'delete'"),
        ("Which metal has the highest price?", "'price'"),
        ("Is gold not heavier?", "'not'"),
        ("", "names no element"),
        ("what is it?", "names no element"),
        ("the average of the metals", "of which property"),
        ("'; DROP TABLE elements; --", "'drop'"),
    ],
)
def test_a_question_that_is_not_wholly_understood_is_refused(question: str, told: str) -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate(question)
    assert told in str(refused.value)


WORDS = """
    average highest lowest top 5 three melting boiling point density of gold iron the metals gases liquids
    noble radioactive group 17 period 4 block d per category how many heavier denser than discovered before
    after 1900 in between and 10 above below °C K first last by each electronegativity lightest O'Brien"; --
"""
words = st.sampled_from(WORDS.split())


@given(st.one_of(st.text(max_size=60), st.lists(words, max_size=12).map(" ".join)))
def test_any_question_becomes_sql_that_runs_or_a_clear_refusal(question: str) -> None:
    with contextlib.suppress(NotUnderstood):
        query = translate(question)
        assert re.match(r"SELECT [^;]*\Z", query)
        assert run(query).columns


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
        result = await caller.result(call("sql", {"question": "Who is W?", "query": query}))
    assert result == {"sql": query, "columns": ["name"], "rows": [["Tungsten"]]}


async def test_the_tool_tells_the_sql_that_a_question_became() -> None:
    async with calling(sql) as caller:
        result = await caller.result(call("sql", {"question": "How many noble gases are there?"}))
    assert result == {
        "sql": "SELECT COUNT(*) AS count FROM elements WHERE category = 'noble gas'",
        "columns": ["count"],
        "rows": [[7]],
    }


@pytest.mark.parametrize(
    ("question", "query"), [("tell me a joke", ""), ("x", "SELECT nothing FROM elements")]
)
async def test_what_fails_tells_the_model_the_columns(question: str, query: str) -> None:
    with pytest.raises(ToolError, match="melting_point_k"):
        await sql(question, query)


async def test_a_long_query_does_not_hold_up_other_calls() -> None:
    slow = BOMBS[0]
    async with calling(sql) as caller:
        bomb = asyncio.create_task(caller.result(call("sql", {"question": "x", "query": slow}, id="slow")))
        assert await caller.result(call("sql", {"question": "How many metals are there?"}, id="fast"))
        result = await bomb
    assert isinstance(result, dict)
    assert "more than 1000000 steps" in result["error"]["message"]
