"""The page of settings says what the code says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "settings.md"


@pytest.fixture(scope="module")
def made() -> str:
    """The page as `make docs` makes it."""
    command = [sys.executable, str(ROOT / "docs" / "settings_page.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_settings_page_is_what_the_code_makes_it(made: str) -> None:
    assert PAGE.read_text(encoding="utf-8") == made, "run: make docs"


def test_every_setting_has_a_sentence(made: str) -> None:
    rows = [line for line in made.splitlines() if line.startswith("| `")]

    assert len(rows) > 80
    assert all(row.rstrip(" |").endswith((".", ")")) for row in rows)
