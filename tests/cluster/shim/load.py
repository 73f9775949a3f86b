"""Calls that go on while something happens to the shim, and what came of them."""

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from tests.cluster.kube import Kube, until

_PATIENCE = 60


@dataclass
class Load:
    """The calls: how many have ended so far, and what came of them once all have; times in seconds."""

    ended: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    longest: Mapping[str, float] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """How many calls got their own answer."""
        return self.outcomes.get("answered", 0)

    def failed(self) -> dict[str, int]:
        """Return how many calls ended otherwise, by how."""
        return {name: count for name, count in self.outcomes.items() if name != "answered"}

    def go_on(self, calls: int) -> None:
        """Wait until so many more calls have ended."""
        enough = self.ended + calls
        until(lambda: self.ended >= enough, within=_PATIENCE, what=f"the end of {calls} more calls")

    def follow(self, lines: IO[str]) -> None:
        """Read the reports of the caller, until it ends."""
        for line in lines:
            shown: int | dict[str, Any] = json.loads(line)
            if isinstance(shown, int):
                self.ended = shown
            else:
                self.outcomes, self.longest, self.samples = (
                    shown["outcomes"],
                    shown["longest"],
                    shown["samples"],
                )


@contextmanager
def load(kube: Kube, *, workers: int, wait: float, client: str) -> Iterator[Load]:
    """Call from so many sides, each call waiting at most `wait` seconds; `client` is plain or agent.

    The block begins when every worker has had an answer; at its end the calls in progress are waited for.
    """
    command = [
        *(str(kube.kubectl), "--namespace", kube.namespace, "exec", "-i", "deployment/caller", "--"),
        *("python", "/given/caller.py", kube.namespace, str(workers), str(wait), client),
    ]
    environment = dict(kube.environment())
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = Load()
        reader = threading.Thread(target=found.follow, args=[process.stdout])
        reader.start()
        try:
            until(lambda: found.ended >= workers, within=_PATIENCE, what="the first answers")
            yield found
            process.stdin.close()
            reader.join(_PATIENCE + wait)
            assert found.outcomes, "the caller did not tell what came of its calls"
        finally:
            process.kill()
            reader.join()
