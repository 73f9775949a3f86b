"""Output: colours and tables on a terminal, plain text elsewhere; and what its reader may type next."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import orjson
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Text

from beckon_contract.jsontext import dumps
from beckon_runtime.terminal import printable


class SafeConsole(Console):
    """A console for text of strangers, and for readers of a pipe that may close it early.

    On a terminal it makes control characters visible. A file or a program gets the text as it is. Brackets in
    a text are never markup of Rich: a style is that of the call, or of a `Text`.
    """

    def __init__(self, **options: Any) -> None:
        """Take the options of Rich's own console."""
        super().__init__(markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of an object, printable on a terminal."""
        for segment in super().render(renderable, options):
            is_safe = segment.control is not None or not self.is_terminal
            yield segment if is_safe else Segment(printable(segment.text), segment.style)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """Return the line of a step in progress, which Rich would read as markup."""
        return super().status(Text(status) if isinstance(status, str) else status, **options)

    def on_broken_pipe(self) -> None:
        """Exit with status 0 and discard the buffered output."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


out = SafeConsole(highlight=False, soft_wrap=True)
err = SafeConsole(stderr=True, highlight=False, soft_wrap=True)


def own_command(*, from_any_folder: bool = False) -> str:
    """Return the command by which the user can run `beckon` again, in this folder or in any.

    uv sets `UV` where it runs a command in an environment that is on the PATH of this process alone.
    """
    if shutil.which("beckon") and "UV" not in os.environ:
        return "beckon"
    called = Path(sys.argv[0])
    if called.name != "beckon":
        return f"{sys.executable if from_any_folder else 'python'} -m beckon_cli"
    here = os.path.relpath(called)
    return str(called.resolve()) if from_any_folder or here.startswith("..") else here


def write_text(text: str, to: TextIO | None = None) -> None:
    """Write a piece of text at once, to standard output unless named; printable on a terminal."""
    stream = to or sys.stdout
    stream.write(printable(text) if stream.isatty() else text)
    stream.flush()


def print_json(document: object) -> None:
    """Print one JSON document to standard output, indented."""
    write_text(dumps(document, orjson.OPT_INDENT_2).decode() + "\n")


def print_json_line(document: object, *, to_stderr: bool = False) -> None:
    """Print one JSON document as a line."""
    write_text(dumps(document).decode() + "\n", sys.stderr if to_stderr else sys.stdout)


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table on a terminal, else as indented lines.

    The table fits the width of the terminal.
    """
    if not out.is_terminal:
        for row in rows:
            sys.stdout.write("    " + "  ".join(cell for cell in row if cell) + "\n")
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row("  ", *(Text(cell) for cell in row))
    SafeConsole(highlight=False).print(table)


_LONGEST_LINE = 300


def compact_json(value: object) -> str:
    """Return a value as one line of JSON, cut at 300 characters. A string is returned without quotes."""
    text = value if isinstance(value, str) else dumps(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


def call_text(name: str, arguments: object) -> str:
    """Return a call as people write it: `name(key=value, …)`."""
    if not isinstance(arguments, dict):
        return f"{name}({compact_json(arguments)})"
    inside = ", ".join(f"{key}={dumps(value).decode()}" for key, value in arguments.items())
    return f"{name}({compact_json(inside)})"


def print_incomplete() -> None:
    """Print to standard error that the answer is incomplete."""
    reason = "the run reached a limit, or the model's server ended the answer in the middle"
    err.print(f"the answer is incomplete: {reason}", style="yellow")


def report_text(name: str, report: Mapping[str, Any]) -> str:
    """Return a tool's progress report as text: `name: 2 of 3 · message`."""
    total = report["total"]
    done = f"{report['progress']:g}" if total is None else f"{report['progress']:g} of {total:g}"
    return f"{name}: " + " · ".join(filter(None, (done, compact_json(report["message"]))))
