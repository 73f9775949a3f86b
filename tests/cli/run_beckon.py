"""Running `beckon` as its user does, in a process of its own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.command_server import run_module


def beckon(
    *words: str,
    cwd: Path | None = None,
    settings: Mapping[str, str] | None = None,
    seconds: float = 60,
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `beckon` to its end, with no setting but those given."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("BECKON_", "OPENAI_"))
    }
    return run_module(
        "beckon_cli", *words, env={**inherited, **(settings or {})}, cwd=cwd, given=given, timeout=seconds
    )
