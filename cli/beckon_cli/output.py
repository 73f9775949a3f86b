"""What people and programs read: colours and tables on a terminal, plain text elsewhere."""

import sys
from collections.abc import Iterable, Sequence

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(document: object) -> None:
    """Print one JSON document to standard output, indented."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def print_json_line(document: object, *, to_stderr: bool = False) -> None:
    """Print one JSON document as a line."""
    (sys.stderr if to_stderr else sys.stdout).write(orjson.dumps(document).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on a terminal, and lines of tab-separated values elsewhere."""
    if not out.is_terminal:
        for row in rows:
            sys.stdout.write("\t".join(cell.replace("\n", " ") for cell in row) + "\n")
        return
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def compact(value: object, limit: int = 300) -> str:
    """Return a value as JSON on one line, cut where it is long."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def call_text(name: str, arguments: object) -> str:
    """Return a call as people write it: `name(key=value, …)`."""
    if not isinstance(arguments, dict):
        return f"{name}({compact(arguments)})"
    inside = ", ".join(f"{key}={orjson.dumps(value).decode()}" for key, value in arguments.items())
    return f"{name}({compact(inside)})"
