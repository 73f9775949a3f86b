"""Pages that are made from definitions and descriptions say what those say."""

import subprocess
import sys

import pytest

from tests.docs.test_docs import DOCS


@pytest.mark.parametrize("page", ["resources", "api"])
def test_a_page_is_what_it_is_made_of(page: str) -> None:
    command = [sys.executable, str(DOCS / f"{page}_page.py")]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    assert (DOCS / f"{page}.md").read_text(encoding="utf-8") == made, "run: make docs"


def test_what_people_write_into_an_agent_is_told_field_by_field() -> None:
    agents = (DOCS / "resources.md").read_text("utf-8").partition("## Tool")[0]
    rows = [line for line in agents.splitlines() if line.startswith("| `spec.")]
    top = [row for row in rows if row.split("`")[1].count(".") == 1]

    assert len(rows) > 60
    assert [row for row in top if row.endswith("|  |")] == []
