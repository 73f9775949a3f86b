"""One process of the local platform: started, kept alive, ended with all its children."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 10.0
_HEALTHY_SECONDS = 10.0
_WRONG_SETTINGS = 2
_EARLY_DEATHS = 3


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: name, command, environment and URL.

    `name` is for people; `environment` is added to the inherited variables and overrides them.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""


class Process:
    """Runs a program until it is stopped; restarts it with growing delays."""

    def __init__(self, program: Program, environment: Mapping[str, str]) -> None:
        self.program = program
        self._environment = {**environment, **program.environment}
        self._running: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.gave_up = False
        self.answered = False
        self._deaths = 0

    @property
    def pid(self) -> int | None:
        """The process id, `None` while nothing runs."""
        return self._running.pid if self._running and self._running.returncode is None else None

    async def start(self) -> None:
        """Start the program, and keep it running from now on."""
        if await self._spawn():
            self._keeper = asyncio.create_task(self._keep())

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
                await running.wait()
        except TimeoutError:
            logger.warning("%s did not stop within %g s and was ended", self.program.name, grace)
        self._signal(running, signal.SIGKILL)  # what it may have left behind in its group
        await running.wait()

    async def _keep(self) -> None:
        delay = _FIRST_DELAY
        while self._running is not None:
            begun = asyncio.get_running_loop().time()
            status = await self._running.wait()
            if asyncio.get_running_loop().time() - begun > _HEALTHY_SECONDS:
                delay, self._deaths = _FIRST_DELAY, 0
            self._deaths += 1
            if status == _WRONG_SETTINGS or (self._deaths >= _EARLY_DEATHS and not self.answered):
                self.gave_up = True  # it has said why itself
                return
            logger.warning("%s ended (%s); starting it again", self.program.name, _how(status))
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)
            if not await self._spawn():
                return

    async def _spawn(self) -> bool:
        """Start the program; return False if it cannot be started."""
        try:
            self._running = await asyncio.create_subprocess_exec(
                *self.program.command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us alone; we end the children in their order
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        except OSError as error:
            logger.warning(
                "%s: cannot run %s: %s", self.program.name, self.program.command[0], error.strerror
            )
            self.gave_up = True
            return False
        return True

    def _signal(self, running: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)


def _die_with_parent() -> None:
    """Ask the kernel to end this process when its parent is killed and cannot do it."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"
