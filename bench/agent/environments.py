"""The environment of the peers, made once from a pinned list, outside the checkout.

It stays under `$XDG_CACHE_HOME/beckon-bench`, or `~/.cache` where that is unset; a changed list makes a
new one. All libraries are in it, and each peer's process imports its own.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIST = Path(__file__).parent / "peers" / "requirements.txt"


class NoEnvironment(Exception):
    """The environment cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another agent: its module under `peers`, its name in the tables, and what runs it."""

    module: str
    title: str
    python: Path


BARE = Peer("bare", "a bare httpx loop", Path(sys.executable))
_LIBRARIES = {"pydantic_ai": "pydantic-ai-slim", "openai_agents": "openai-agents", "langchain": "langchain"}


def peers() -> list[Peer]:
    """Return the peers that have libraries; their environment may be missing."""
    pinned = dict(line.partition(" ")[0].split("==") for line in _LIST.read_text().splitlines())
    python = _folder() / "bin" / "python"
    return [Peer(module, f"{name} {pinned[name]}", python) for module, name in _LIBRARIES.items()]


def is_made() -> bool:
    """Whether the environment is there, and whole."""
    return _mark().exists()


def make() -> None:
    """Make the environment; raises `NoEnvironment`."""
    shutil.rmtree(_folder(), ignore_errors=True)
    uv, python = _uv(), str(_folder() / "bin" / "python")
    _run([uv, "venv", "--quiet", "--no-config", "--python", sys.executable, str(_folder())])
    _run([uv, "pip", "sync", "--quiet", "--no-config", "--python", python, str(_LIST)])
    _mark().touch()


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256(f"{sys.version_info[:2]}\n{_LIST.read_text()}".encode()).hexdigest()[:12]
    return cache / "beckon-bench" / f"peers-{key}"


def _mark() -> Path:
    return _folder() / "whole"


def _uv() -> str:
    own = ROOT / ".uv" / "bin" / "uv"
    found = str(own) if own.exists() else shutil.which("uv")
    if found is None:
        raise NoEnvironment("there is no uv; run 'make setup' first")
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoEnvironment(done.stderr.strip() or f"{command[0]} failed")
