"""Pages that are made from definitions and descriptions say what those say."""

import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT
from tests.docs.test_docs import DOCS

TYPES = ROOT / "agent/types/api.d.ts"


@pytest.mark.parametrize("page", ["resources", "api"])
def test_a_page_is_what_it_is_made_of(page: str) -> None:
    assert (DOCS / f"{page}.md").read_text(encoding="utf-8") == _make(f"{page}_page.py"), "run: make docs"


def test_the_types_of_the_chat_page_are_those_of_the_api() -> None:
    assert TYPES.read_text(encoding="utf-8") == _make("page_types.py"), "run: make docs"


def test_the_tables_of_brokers_are_the_reports_of_the_probe() -> None:
    command = [sys.executable, str(DOCS / "brokers_page.py"), "--check"]
    page = (DOCS / "brokers.md").read_text("utf-8")

    assert subprocess.run(command, check=False, timeout=120).returncode == 0, "run: make docs"
    assert page.count("| calls one after the other |") == page.count("<!-- probes: ") > 0


def _make(script: str) -> str:
    command = [sys.executable, str(DOCS / script)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_what_people_write_into_an_agent_is_reported_field_by_field() -> None:
    agents = (DOCS / "resources.md").read_text("utf-8").partition("## Tool")[0]
    rows = [line for line in agents.splitlines() if line.startswith("| `spec.")]
    top = [row for row in rows if row.split("`")[1].count(".") == 1]

    assert len(rows) > 60
    assert [row for row in top if row.endswith("|  |")] == []
