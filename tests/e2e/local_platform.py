"""The real local platform: `beckon up` in a process of its own."""

import atexit
import contextlib
import functools
import itertools
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.command_server import ModuleProcess
from tests.patience import PATIENCE, wait_until

ROOT = Path(__file__).resolve().parents[2]
SERVICES = tuple(f"beckon_{name}.__main__" for name in ("agent", "broker", "demo", "shim"))
"""What `beckon up` forks; its start without their imports is half as long."""
START_SECONDS = 90
STOP_SECONDS = 30
_OURS = ("BECKON_", "OPENAI_", "OTEL_")
_numbers = itertools.count()
_FIRST, _BLOCKS, _RANGES, _STEP, _PORTS = 11_000, 16, 22, 60, 50
"""Blocks of ranges of ports, below those that the kernel gives to clients; each process takes one block."""


def port_range() -> int:
    """Return the first of fifty ports that no other test uses, of this run or of another."""
    block = _take_block().getsockname()[1]
    for number in _numbers:
        port: int = block + (1 + number % (_RANGES - 1)) * _STEP
        if all(map(_is_free, range(port, port + _PORTS))):
            return port
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@functools.cache
def _take_block() -> socket.socket:
    """Listen at the first port of a free block as long as this process lives.

    A port that is only probed may be taken by a test of another run before its own process listens.
    """
    for number in range(_BLOCKS):
        with contextlib.suppress(OSError):
            listener = socket.create_server(("127.0.0.1", _FIRST + number * _RANGES * _STEP))
            atexit.register(listener.close)
            return listener
    raise AssertionError(f"no free ports: {_BLOCKS} processes of tests run on this machine")


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without any setting of Beckon's, and with these."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **settings}


class LocalPlatform:
    """A platform that runs; its output is written in a file."""

    def __init__(
        self,
        folder: Path,
        work: Path,
        settings: Mapping[str, str],
        port: int = 0,
        flags: Sequence[str] = (),
        *,
        command: Sequence[str | Path] = (),
    ) -> None:
        self.folder = folder
        self.port = port or port_range()
        self.url = f"http://127.0.0.1:{self.port}"
        self.shim_url = f"http://127.0.0.1:{self.port + 2}"
        self.output = work / "output.txt"
        environment = clean_environment(
            {"BECKON_PORT": str(self.port), "BECKON_MANIFESTS": str(folder), **settings}
        )
        self.process: ModuleProcess | subprocess.Popen[bytes]
        output = self.output.open("w+b")
        if not command:
            up = ("beckon_cli", "up", *flags)
            self.process = ModuleProcess(*up, env=environment, cwd=work, output=output, imported=SERVICES)
            return
        with output:
            self.process = subprocess.Popen(
                [*command, *flags],
                env=environment,
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self) -> None:
        """Wait until it has said that it runs."""
        wait_until(lambda: "Ctrl-C stops" in self.text() or self._raise_if_ended(), START_SECONDS)

    def stop(self) -> int:
        """Interrupt it as Ctrl-C does, and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End it without letting it do anything."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def text(self) -> str:
        """Return all that it has printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[int]:
        """Return the ids of its processes, its own not among them."""
        return children_of(self.process.pid)

    def tool_pid(self, name: str) -> int:
        """Return the process that serves a tool of this name; 0 while none does."""
        for pid in self.children():
            if name.encode() in read_process_file(f"/proc/{pid}/cmdline").split(b"\0"):
                return pid
        return 0

    def pid_of(self, module: str) -> int:
        """Return the process that runs a module of ours; 0 while none does."""
        for pid in self.children():
            if read_process_file(f"/proc/{pid}/cmdline").split(b"\0")[2:3] == [module.encode()]:
                return pid
        return 0

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools as the agent lists them."""
        tools: list[dict[str, Any]] = httpx.get(f"{self.url}/tools", timeout=PATIENCE).json()["tools"]
        return tools

    def tool_names(self) -> set[str]:
        """Return the names of the tools that the model sees."""
        return {tool["name"] for tool in self.tools()}

    def _raise_if_ended(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"beckon up ended with {self.process.returncode}: {self.text()}")
        return False


def read_process_file(path: str | Path) -> bytes:
    """Return what a file of a process below /proc holds; nothing if the process has ended."""
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # the second: it ended between opening and reading
        return b""


def read_thread_files(pid: int, name: str) -> list[bytes]:
    """Return what the files of this name hold, one for each thread of a process; none if it has ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [read_process_file(thread / name) for thread in threads]


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and not yet waited for."""
    return [int(child) for children in read_thread_files(pid, "children") for child in children.split()]


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    return [one for child in children_of(pid) for one in (child, *descendants(child))]


def is_running(pid: int) -> bool:
    """Whether any thread of a process runs: its sockets close when the last one ends, not the first."""
    stats = read_thread_files(pid, "stat")
    return any(stat and b") Z " not in stat and b") X " not in stat for stat in stats)
