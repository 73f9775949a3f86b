"""The figures of small checkouts, counted by hand."""

from pathlib import Path

import pytest

from lint.figures import main, measure
from lint.source import read_modules
from tests.lint.tree import LONG, write_room

CALLS = '''
class Call:
    """One call, which a model makes."""

    def __init__(self):
        """What is not counted: Python named it."""

    def told(self):
        """Return a text.

        A relative clause that stands later is none of an opening.
        """


class Reply:
    """One reply."""


async def parse_reply():
    """Whether it parses."""

    def inner():
        pass
'''
RUNS = "from beckon_shop import calls, price\n\n\nclass _Call: ...\n\n\ndef _start(): ...\n"


def figures(root: Path) -> dict[str, float]:
    return {figure.label: figure.value for figure in measure(read_modules(root))}


def test_figures_are_shares_of_what_there_is(tmp_path: Path) -> None:
    write_room(tmp_path, {"calls.py": CALLS, "runs.py": RUNS, "price.py": LONG})

    assert figures(tmp_path) == {
        "modules": 4,
        "lines": 1 + 23 + 7 + 60,
        "functions named by one word, %": 75,  # told, inner, _start; not parse_reply
        "classes with a namesake in their room, %": 50.0,  # Call of Call and Reply
        "functions, classes, modules: banned words": 1,  # told
        "docstrings opening with a relative, %": 50,  # Call and parse_reply of four
        "short modules with one importer, %": 25.0,  # calls
    }


def test_code_of_others_is_not_counted(tmp_path: Path) -> None:
    write_room(tmp_path, {})
    before = figures(tmp_path)

    write_room(tmp_path, {"page/vendor/library.py": "told = 1\n"})

    assert figures(tmp_path) == before


def test_the_command_prints_each_figure_beside_its_aim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_room(tmp_path, {"calls.py": CALLS})

    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--strict"]) == 1

    first = capsys.readouterr().out.splitlines()[0]
    assert " ".join(first.split()) == "modules 2 (at most 400)"


def test_a_folder_without_rooms_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "name the root of a checkout" in capsys.readouterr().err
