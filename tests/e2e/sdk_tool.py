"""A platform with tools of the SDK's, their manifests as `beckon_tools manifest` prints them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.patience import wait_until


@contextmanager
def platform_with(work: Path, source: str, *functions: str) -> Iterator[LocalPlatform]:
    """Run one in the folder `work`, a tool for each function of `source`; each report is sent."""
    (work / "source.py").write_text(source)
    for function in functions:
        command = (
            "-m",
            "beckon_tools",
            "manifest",
            f"source:{function}",
            "--output",
            f"manifests/{function}",
        )
        environment = clean_environment({})
        subprocess.run([sys.executable, *command], cwd=work, env=environment, check=True, timeout=50)
    running = LocalPlatform(work / "manifests", work, {"BECKON_TOOLS_PROGRESS_SECONDS": "0"})
    try:
        running.wait_until_ready()
        wait_until(lambda: len(running.tool_names()) == len(functions))
        yield running
    finally:
        running.stop()
