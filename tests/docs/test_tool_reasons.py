"""Every reason that a Tool's condition can give has a line in the page about it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operate.md"
CONDITIONS = sorted((ROOT / "operator" / "beckon_operator" / "conditions").glob("*.py"))
DIAGNOSTICS = ROOT / "contract" / "beckon_contract" / "catalogue" / "diagnostics.py"

# The position of a reason among the arguments of what makes a condition.
_PLACE = {"Condition": 2, "_not_routed": 0, "NoRoute": 0}


def reasons(path: Path) -> set[str]:
    """Return the reasons that a module writes down itself."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PLACE:
            place = _PLACE[node.func.id]
            argument = node.args[place] if len(node.args) > place else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                found.add(argument.value)
    return found


@pytest.mark.parametrize("path", [*CONDITIONS, DIAGNOSTICS], ids=lambda path: path.stem)
def test_every_reason_is_documented(path: Path) -> None:
    documented = set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.read_text(encoding="utf-8")))

    assert reasons(path) <= documented


def test_the_search_for_reasons_finds_them() -> None:
    found = set[str]().union(*(reasons(path) for path in [*CONDITIONS, DIAGNOSTICS]))

    assert {"ServiceNotReady", "NoReplyTrigger", "TriggerOverrides", "FilterMismatch"} <= found
