"""One process of the local platform: started, kept alive, ended with all its children."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from beckon_cli.local.forking import can_fork, fork_module
from beckon_cli.local.ports import answers

logger = logging.getLogger(__name__)

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 10.0
_HEALTHY_SECONDS = 10.0
_WRONG_SETTINGS = 2
_EARLY_DEATHS = 3
_FIRST_RETRY, _LONGEST_RETRY = 0.02, 0.5  # seconds
_PROGRESS_SECONDS = 0.1  # of CPU time; a server that waits uses less in a minute
_SESSION, _TICKS = 3, slice(11, 15)  # in /proc/PID/stat, counted from the state


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: name, command, environment and URLs.

    `name` is for people; `environment` is added to the inherited variables and overrides them. `urls` are
    those of its servers. `module` is the module of ours that the command runs, if its first process may be
    forked from this one. The program inherits the open `files`, and `log` is the file of its messages, empty
    for standard error.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    urls: Sequence[str] = ()
    module: str = ""
    files: Sequence[int] = ()
    log: str = ""


class _Child(Protocol):
    """A process started by this one; `wait` returns its status, negative for a signal."""

    @property
    def pid(self) -> int: ...

    def wait(self) -> int: ...


class Process:
    """Runs a program until it is stopped; restarts it with growing delays."""

    def __init__(
        self, program: Program, environment: Mapping[str, str], attempts: int = _EARLY_DEATHS
    ) -> None:
        """Give up if the program ends `attempts` times before it answers."""
        self.program = program
        self._attempts = attempts
        self.ending = ""
        "How the program last ended, such as `status 1`."
        self._environment = {**environment, **program.environment}
        self._running: _Child | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.gave_up = False
        self.answered = False
        self._deaths = 0

    def start(self) -> None:
        """Start the program, and keep it running from now on.

        A module of ours is forked, if that is safe: it need not import anything again.
        """
        if self.program.module and can_fork():
            self._running = fork_module(self.program.module, self._environment)
        else:
            self._spawn()
        if self._running is not None:
            self._keeper = asyncio.create_task(self._keep(self._running))

    async def stop(self, grace: float) -> None:
        """End the program: SIGTERM first, SIGKILL after `grace` seconds."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        running = self._running
        if running is None:
            return
        self._signal(running, signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await _wait(running)
        except TimeoutError:
            logger.warning("%s did not stop within %g s and was ended", self.program.name, grace)
        self._signal(running, signal.SIGKILL)  # what it may have left behind in its group
        await _wait(running)

    def cpu_seconds(self) -> float:
        """Return the CPU time that the program and its children have used.

        It is 0 for an ended program, and on systems without `/proc`.
        """
        if self._running is None:
            return 0.0
        ticks = sum(_session_ticks(self._running.pid))
        return ticks / os.sysconf("SC_CLK_TCK")

    async def wait_until_settled(self) -> None:
        """Wait until each server of the program answers, or until the program is given up."""
        pause = _FIRST_RETRY
        while not self.gave_up:
            if all([await answers(url) for url in self.program.urls]):
                self.answered = True
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.1, _LONGEST_RETRY)

    async def _keep(self, running: _Child) -> None:
        delay = _FIRST_DELAY
        while True:
            started = asyncio.get_running_loop().time()
            status = await _wait(running)
            if asyncio.get_running_loop().time() - started > _HEALTHY_SECONDS:
                delay, self._deaths = _FIRST_DELAY, 0
            self._deaths += 1
            self.ending = _how(status)
            if status == _WRONG_SETTINGS or (self._deaths >= self._attempts and not self.answered):
                self.gave_up = True  # it has said why itself
                return
            logger.warning("%s ended (%s); starting it again", self.program.name, self.ending)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)
            again = self._spawn()
            if again is None:
                return
            running = again

    def _spawn(self) -> _Child | None:
        """Start the program's command; return `None` if it cannot be started."""
        try:
            self._running = subprocess.Popen(  # noqa: S603  # the user's own manifests name the commands
                self.program.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=self.program.files,
                start_new_session=True,  # Ctrl-C is for us alone; we end the children in their order
                preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # takes no lock
            )
        except OSError as error:
            self.ending = f"cannot run {self.program.command[0]}: {error.strerror}"
            logger.warning("%s: %s", self.program.name, self.ending)
            self.gave_up = True
            return None
        return self._running

    def _signal(self, running: _Child, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)


async def _wait(child: _Child) -> int:
    """Wait for the end of a process without a thread, where the system can; return its status."""
    if not hasattr(os, "pidfd_open"):
        return await asyncio.to_thread(child.wait)
    try:
        descriptor = os.pidfd_open(child.pid)
    except ProcessLookupError:  # it has ended, and its status has been read
        return child.wait()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return child.wait()


def _session_ticks(session: int) -> Iterator[int]:
    """Yield the clock ticks of each process of a session, those of its ended children included."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = file.read_text("ascii", "replace").rpartition(")")[2].split()
            if int(fields[_SESSION]) == session:
                yield sum(map(int, fields[_TICKS]))


class Progress:
    """The progress of a start: CPU time that a program uses before it answers.

    Time is counted by checks, one a second, so that a machine too busy to run them counts as progress, too.
    """

    def __init__(self, process: Process, limit: int) -> None:
        self.process = process
        self.limit = limit
        "The seconds without progress after which the start counts as stalled."
        self._used = process.cpu_seconds()
        self._idle = 0

    @property
    def stalled(self) -> bool:
        """True if the program has used no CPU time in the last `limit` checks."""
        return self._idle >= self.limit

    def check(self) -> None:
        """Compare the CPU time with that of the last check."""
        used = self.process.cpu_seconds()
        if abs(used - self._used) >= _PROGRESS_SECONDS:
            self._used, self._idle = used, 0
        else:
            self._idle += 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent is killed and cannot do it."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"
