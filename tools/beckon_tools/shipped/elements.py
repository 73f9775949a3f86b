"""The bundled data set: the chemical elements, as one SQL table (data/README.md says what is what)."""

import csv
import sqlite3
from functools import cache
from importlib import resources

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
def rows() -> tuple[Row, ...]:
    """Return the rows of the file, empty fields as `None`, numbers as numbers."""
    text = resources.files("beckon_tools.shipped").joinpath("data/elements.csv").read_text("utf-8")
    reader = csv.reader(text.splitlines())
    header = next(reader)
    if header != list(COLUMNS):
        raise ValueError(f"elements.csv has the columns {header}")
    readers = [_reader(declared) for declared in COLUMNS.values()]
    return tuple(
        tuple(read(field) if field else None for read, field in zip(readers, line, strict=True))
        for line in reader
    )


def load(connection: sqlite3.Connection) -> None:
    """Create the table in a database and fill it."""
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE {TABLE} ({declared})")
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(" ".join(["INSERT INTO", TABLE, "VALUES", f"({marks})"]), rows())
    connection.commit()


def _reader(declared: str) -> type[str] | type[int] | type[float]:
    return {"TEXT": str, "INTEGER": int, "REAL": float}[declared.split(maxsplit=1)[0]]
