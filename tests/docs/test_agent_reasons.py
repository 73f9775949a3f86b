"""Every reason that an Agent's condition can give has a line in the page about it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "agents.md"
AGENTS = ROOT / "agent" / "beckon_agent" / "agents"

# The position of a reason among the arguments of what makes a condition.
_PLACE = {"Condition": 2, "Verdict": 1, "NoModel": 0, "NoSecret": 0}


def reasons() -> Iterator[str]:
    """Yield the reasons that are written down in the code."""
    for path in AGENTS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PLACE:
                for argument in node.args[_PLACE[node.func.id] :][:1]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value


def test_every_reason_is_documented_and_every_documented_one_exists() -> None:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    documented = {found for row in rows for found in re.findall(r"`([A-Z]\w+)`", row.split("|")[2])}

    assert {*reasons(), "InvalidSpec"} - {"Ready"} == documented
