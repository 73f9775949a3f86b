"""The peers of the agent, and the interpreter of each.

All libraries are in one environment, and each peer's process imports its own.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.peer_environment import PeerEnvironment

ENVIRONMENT = PeerEnvironment(Path(__file__).parent / "peers" / "requirements.txt")


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
    return [
        Peer(module, f"{name} {ENVIRONMENT.versions[name]}", ENVIRONMENT.python)
        for module, name in _LIBRARIES.items()
    ]
