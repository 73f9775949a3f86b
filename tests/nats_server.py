"""A real nats-server with JetStream; `python -m tests.nats_server` builds it and prints its path.

The program is one of those of `make cluster`, from the same cache. A server has a port of its own on loopback
and keeps its streams in a folder of the test, so that it can be killed and started again with both.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

from tests.cluster.machine import programs
from tests.cluster.machine.commands import ClusterError
from tests.cluster.machine.places import places
from tests.patience import PATIENCE, wait_until

NAME = "nats-server"
CURE = "nats-server is missing: make nats-server (needs Go, takes about a minute)"
READY = "Server is ready"
LISTENS = re.compile(r"Listening for client connections on 127\.0\.0\.1:(\d+)")


def program() -> Path:
    """Return the built program; skip the test where there is none, but not in CI."""
    found = programs.find_built(places(), NAME)
    if found is None and os.environ.get("CI"):
        pytest.fail(CURE)
    if found is None:
        pytest.skip(CURE)
    return found / NAME


class NatsServer:
    """A server that runs between `start` and `stop` or `kill`, each time with the same port and streams."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Take an empty folder for the streams and the log, and further options of the command line."""
        self._program = program()
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = -1

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the server, which runs."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it has written since the last start."""
        return (self._folder / "log").read_text(errors="replace")

    def start(self) -> Self:
        """Start it; returns when it accepts connections and its streams are restored."""
        assert self._process is None, "it runs already"
        self._folder.mkdir(exist_ok=True)
        address = ("--addr", "127.0.0.1", "--port", str(self.port))
        storage = ("--jetstream", "--store_dir", str(self._folder / "store"))
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, *address, *storage, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: READY in self.log or self._ended())
        listens = LISTENS.search(self.log)
        assert listens, f"nats-server ended: {self.log[-2000:]}"
        self.port = int(listens[1])
        return self

    def kill(self) -> None:
        """End it with SIGKILL; it keeps what it has acknowledged."""
        assert self._process is not None, "it does not run"
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    def pause(self) -> None:
        """Let it do nothing until `resume`; returns when each of its threads has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


def main() -> int:
    """Build the program unless the cache has it, and print its path; 2 with one line where that fails."""
    try:
        folder = programs.build(places(), NAME)
    except ClusterError as problem:
        sys.stderr.write(f"nats-server: {problem}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("nats-server: interrupted; `make nats-server` continues\n")
        return 130
    sys.stdout.write(f"{folder / NAME}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
