"""The modules that ARCHITECTURE.md names on the path of a call exist."""

from tests.docs.blocks import ROOT, table

PAGE = ROOT / "ARCHITECTURE.md"


def modules() -> list[str]:
    return [row[1].strip("`") for row in table(PAGE, "where")]


def test_each_module_on_the_path_of_a_call_exists() -> None:
    assert len(modules()) > 30
    assert [module for module in modules() if not (ROOT / module).is_file()] == []
