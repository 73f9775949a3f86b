"""The page of settings says what the code says."""

from pathlib import Path

from beckon_cli.settings_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_settings_page_is_what_the_code_makes_it() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_setting_has_a_sentence() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]

    assert len(rows) > 50
    assert all(row.rstrip(" |").endswith((".", ")")) for row in rows)
