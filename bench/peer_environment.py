"""An environment of peers, made once from a pinned list, outside the checkout.

It stays under `$XDG_CACHE_HOME/beckon-bench`, or `~/.cache` where that is unset; a changed list makes a
new one. Its bytecode is written when it is made.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class NoEnvironment(Exception):
    """The environment cannot be made; the message says why."""


class PeerEnvironment:
    """The packages of a list, in a folder of their own."""

    def __init__(self, requirements: Path) -> None:
        self._list = requirements
        text = requirements.read_text()
        self.versions = dict(line.partition(" ")[0].split("==") for line in text.splitlines())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        key = hashlib.sha256(f"{sys.version_info[:2]}\n{text}".encode()).hexdigest()[:12]
        self.folder = cache / "beckon-bench" / f"peers-{key}"
        self._mark = self.folder / "whole"

    @property
    def python(self) -> Path:
        """The interpreter that imports the peers."""
        return self.folder / "bin" / "python"

    def is_made(self) -> bool:
        """Return True if the environment is there, and whole."""
        return self._mark.exists()

    def make(self) -> None:
        """Make the environment; raise `NoEnvironment` if that fails."""
        shutil.rmtree(self.folder, ignore_errors=True)
        uv, python = _find_uv(), str(self.python)
        _run([uv, "venv", "--quiet", "--no-config", "--python", sys.executable, str(self.folder)])
        _run(
            [
                uv,
                "pip",
                "sync",
                "--quiet",
                "--no-config",
                "--compile-bytecode",
                "--python",
                python,
                str(self._list),
            ]
        )
        self._mark.touch()


def _find_uv() -> str:
    own = ROOT / ".uv" / "bin" / "uv"
    found = str(own) if own.exists() else shutil.which("uv")
    if found is None:
        raise NoEnvironment("there is no uv; run 'make setup' first")
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoEnvironment(done.stderr.strip() or f"{command[0]} failed")
