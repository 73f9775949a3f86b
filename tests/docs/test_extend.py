"""docs/extend.md against the code: the files that it names are there, and they are all."""

import re
from collections.abc import Iterator

import pytest

from beckon_agent.dialects.registry import DIALECTS
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "extend.md").read_text()
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+)`")
TEXTS = {".py", ".yaml", ".yml", ".json", ".md", ".js", ".toml", ".txt", ".html"}
FOLDER = "agent/beckon_agent/dialects"


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def product_files() -> Iterator[tuple[str, str]]:
    """Yield the texts of the product with their paths, without libraries, tests and built files."""
    rooms = [room for room in ROOT.iterdir() if room.is_dir() and not room.name.startswith(".")]
    for room in rooms:
        if room.name in {"tests", "bench", "dist"}:
            continue
        for path in room.rglob("*"):
            place = path.relative_to(ROOT)
            if path.suffix in TEXTS and not {"node_modules", "vendor"} & set(place.parts):
                yield str(place), path.read_text(errors="replace")


def test_every_file_is_there() -> None:
    files = [file for file in FILE.findall(PAGE) if "NAME" not in file]

    assert len(files) > 15
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("name", ["qwen3_coder", "chatglm3_observation"])  # words of no other meaning
def test_a_dialect_is_named_in_no_other_files_of_the_product(name: str) -> None:
    listed = {file for file in FILE.findall(section("A model dialect")) if not file.startswith("tests/")}
    found = {file for file, text in product_files() if re.search(rf"\b{name}\b", text)}

    assert name in DIALECTS
    own = {file for file in found if file.startswith(f"{FOLDER}/") and file != f"{FOLDER}/registry.py"}
    named_otherwise = {f"{FOLDER}/registry.py"}  # it imports the dialect, by the name of its constant
    assert len(own) == 1
    assert found - own == listed - named_otherwise - {f"{FOLDER}/NAME.py"}


def test_a_run_event_has_two_files() -> None:
    rows = [row for row in section("A run event").splitlines() if row.startswith("| `")]

    assert [FILE.findall(row)[0] for row in rows] == [
        "agent/beckon_agent/core/run_events.py",
        "agent/beckon_agent/run/loop.py",
    ]
