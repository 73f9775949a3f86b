"""Running `beckon` as its user does, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def beckon(
    *words: str, cwd: Path | None = None, settings: Mapping[str, str] | None = None, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run `beckon` to its end, with no setting but those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BECKON_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "beckon_cli", *words],
        env={**kept, **(settings or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
