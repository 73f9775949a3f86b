"""The bundled data set against facts that anybody can look up, and against itself."""

import sqlite3
from collections.abc import Iterator

import pytest

from beckon_tools.shipped import sql


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    sql.load_table(connection)
    yield connection
    connection.close()


def one(database: sqlite3.Connection, query: str) -> object:
    return database.execute(query).fetchone()[0]


def test_the_elements_are_numbered_without_a_gap(database: sqlite3.Connection) -> None:
    assert [row[0] for row in database.execute("SELECT number FROM elements")] == list(range(1, 119))
    assert one(database, "SELECT COUNT(DISTINCT symbol) + COUNT(DISTINCT name) FROM elements") == 236


@pytest.mark.parametrize(
    ("symbol", "known"),
    [
        ("H", ("Hydrogen", 1.008, 1, 1, 13.99)),
        ("C", ("Carbon", 12.011, 14, 2, None)),
        ("Al", ("Aluminium", 26.981538, 13, 3, 933.47)),
        ("Ca", ("Calcium", 40.078, 2, 4, 1115.15)),
        ("Zr", ("Zirconium", 91.224, 4, 5, 2127.15)),
        ("Sn", ("Tin", 118.71, 14, 5, 505.08)),
        ("Ne", ("Neon", 20.1797, 18, 2, 24.56)),
        ("Ni", ("Nickel", 58.6934, 10, 4, 1728.15)),
        ("W", ("Tungsten", 183.84, 6, 6, 3687.15)),
        ("U", ("Uranium", 238.02891, None, 7, 1408.15)),
        ("Og", ("Oganesson", 294, 18, 7, None)),
    ],
)
def test_known_figures_are_right(
    database: sqlite3.Connection, symbol: str, known: tuple[object, ...]
) -> None:
    columns = "name, atomic_mass, group_number, period, melting_point_k"
    found = database.execute(f"SELECT {columns} FROM elements WHERE symbol = ?", (symbol,)).fetchone()
    assert found == known


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("category = 'noble gas' AND group_number = 18", 7),
        ("category = 'alkali metal' AND group_number = 1", 6),
        ("category = 'alkaline earth metal' AND group_number = 2", 6),
        ("category = 'halogen' AND group_number = 17", 6),
        ("category = 'lanthanide' AND number BETWEEN 57 AND 71", 15),
        ("category = 'actinide' AND number BETWEEN 89 AND 103", 15),
        ("phase = 'gas'", 11),
        ("phase = 'liquid'", 2),
        ("block = 's'", 14),
        ("block = 'p'", 36),
        ("block = 'd'", 40),
        ("block = 'f'", 28),
        ("discovered NOT BETWEEN 1600 AND 2015", 0),
        ("group_number NOT BETWEEN 1 AND 18", 0),
        ("boiling_point_k <= melting_point_k AND symbol != 'As'", 0),
        ("phase = 'solid' AND melting_point_k < 298.15", 0),
        ("phase = 'gas' AND boiling_point_k > 298.15", 0),
        ("density_g_cm3 <= 0 OR density_g_cm3 > 23", 0),
        ("electronegativity NOT BETWEEN 0.7 AND 3.98", 0),
        ("radioactive NOT IN (0, 1)", 0),
        ("radioactive = 0 AND number > 83", 0),
        ("discovered IS NULL", 13),
    ],
)
def test_the_table_agrees_with_itself(database: sqlite3.Connection, condition: str, count: int) -> None:
    assert one(database, f"SELECT COUNT(*) FROM elements WHERE {condition}") == count


def test_masses_grow_with_the_number_but_for_the_known_exceptions(database: sqlite3.Connection) -> None:
    query = """
        SELECT heavier.symbol FROM elements heavier JOIN elements next ON next.number = heavier.number + 1
        WHERE heavier.atomic_mass > next.atomic_mass AND heavier.number < 92"""
    assert [row[0] for row in database.execute(query)] == ["Ar", "Co", "Te", "Th"]
