"""The processes that are measured: started, watched through /proc, and ended."""

import asyncio
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import cast


class Watched:
    """One process that is measured."""

    def __init__(self, pid: int) -> None:
        self._proc = Path("/proc") / str(pid)

    def pin(self, cores: set[int]) -> None:
        """Let the process, every thread of it, run on these cores alone."""
        for thread in (self._proc / "task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def cpu_seconds(self) -> float:
        """Return the CPU time that all threads used so far, user and system."""
        fields = (self._proc / "stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_megabytes(self) -> float:
        """Return the resident memory."""
        pages = int((self._proc / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Child(Watched):
    """A process of this benchmark."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(process.pid)
        self._process = process

    async def first_line(self, seconds: float = 20) -> str:
        """Return the first line that the process prints."""
        output = cast(asyncio.StreamReader, self._process.stdout)
        return (await asyncio.wait_for(output.readline(), seconds)).decode().strip()

    async def stop(self) -> None:
        """End the process: politely first."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start(
    module: str, *arguments: str, environment: dict[str, str] | None = None, python: str = sys.executable
) -> Child:
    """Start `python -m module`; it ends when this process does.

    It may write bytecode: an installed service has some, and one that compiles at every start is larger.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = await asyncio.create_subprocess_exec(
        python,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**inherited, "BECKON_LOG_LEVEL": "error", **(environment or {})},
    )
    return Child(process)


async def listening(port: int, seconds: float = 20) -> None:
    """Wait until a port answers, at most so many seconds."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def free_port() -> int:
    """Return a port that no one has right now."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def raise_file_limit() -> int:
    """Allow as many open files as the system lets us; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
