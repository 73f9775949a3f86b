"""A platform with one tool of the SDK's, its manifests as `beckon_tools manifest` prints them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.patience import wait_until


@contextmanager
def platform_with(work: Path, source: str, function: str) -> Iterator[LocalPlatform]:
    """Run one in the folder `work`; the tool is called as its function, and each report of it is sent."""
    (work / "source.py").write_text(source)
    command = ("-m", "beckon_tools", "manifest", f"source:{function}", "--output", "manifests")
    subprocess.run([sys.executable, *command], cwd=work, env=clean_environment({}), check=True, timeout=50)
    running = LocalPlatform(work / "manifests", work, {"BECKON_TOOLS_PROGRESS_SECONDS": "0"})
    try:
        running.wait_until_ready()
        wait_until(lambda: len(running.tool_names()) == 1)
        yield running
    finally:
        running.stop()
