"""The environments of the peers: one each, made once from a pinned list, outside the checkout.

They stay under `$XDG_CACHE_HOME/beckon-bench`, or `~/.cache` where that is unset; a changed list makes a
new one.
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
_LISTS = Path(__file__).parent / "peers"


class NoEnvironment(Exception):
    """An environment cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another agent: its module under `peers`, the distribution that it shows, and what runs it."""

    module: str
    distribution: str
    python: Path
    version: str = ""

    @property
    def title(self) -> str:
        """Its name in the tables."""
        return f"{self.distribution} {self.version}".strip()


BARE = Peer("bare", "a bare httpx loop", Path(sys.executable))
_LIBRARIES = {"pydantic_ai": "pydantic-ai-slim", "openai_agents": "openai-agents", "langchain": "langchain"}


def peers() -> list[Peer]:
    """Return the peers that have libraries, each with its environment made or not."""
    return [_peer(module, distribution) for module, distribution in _LIBRARIES.items()]


def is_made(peer: Peer) -> bool:
    """Whether the environment of a peer is there, and whole."""
    return _mark(peer).exists()


def make(peer: Peer) -> None:
    """Make the environment of a peer; raises `NoEnvironment`."""
    folder = peer.python.parents[1]
    shutil.rmtree(folder, ignore_errors=True)
    uv = _uv()
    _run([uv, "venv", "--quiet", "--no-config", "--python", sys.executable, str(folder)])
    _run([uv, "pip", "sync", "--quiet", "--no-config", "--python", str(peer.python), str(_list(peer.module))])
    _mark(peer).touch()


def _peer(module: str, distribution: str) -> Peer:
    pinned = _list(module).read_text()
    version = next(
        line.partition("==")[2].split()[0]
        for line in pinned.splitlines()
        if line.partition("==")[0].partition("[")[0] == distribution
    )
    key = hashlib.sha256(f"{sys.version_info[:2]}\n{pinned}".encode()).hexdigest()[:12]
    python = _cache() / f"{module}-{key}" / "bin" / "python"
    return Peer(module, distribution, python, version)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beckon-bench"


def _list(module: str) -> Path:
    return _LISTS / f"{module}.txt"


def _mark(peer: Peer) -> Path:
    return peer.python.parents[1] / "whole"


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
