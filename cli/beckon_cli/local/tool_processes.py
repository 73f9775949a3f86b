"""The processes of the tools that have a command here: started, offered, restarted, ended."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from beckon_cli.local import plan
from beckon_cli.local.code_files import CodeFiles
from beckon_cli.local.process import Process, Program
from beckon_cli.local.services import LocalService, ServiceName, shared_server

logger = logging.getLogger(__name__)

_STOP_SECONDS = 5.0
_Names = tuple[ServiceName, ...]


class ToolProcesses:
    """The processes of the tools, each for one Service or for several that ship.

    `changed` is called when `urls` has changed, and `outboxes` is the beginning of the paths of their
    outboxes. With `watch`, a tool is restarted when its code changes.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        ports: Iterator[int],
        changed: Callable[[], None],
        *,
        outboxes: str,
        watch: bool,
    ) -> None:
        self.ready = False
        "False during the start of the platform, which prints the tools itself."
        self._environment = environment
        self._free_ports = ports
        self._changed = changed
        self._outboxes = outboxes
        self._watch = watch
        self._wanted: Sequence[LocalService] = ()
        self._broker = ""
        self._ports: dict[ServiceName, int] = {}
        self._processes: dict[_Names, Process] = {}
        self._offers: dict[_Names, asyncio.Task[None]] = {}
        self._code: dict[_Names, CodeFiles] = {}
        self._offered: set[ServiceName] = set()
        self._failed: set[ServiceName] = set()

    @property
    def urls(self) -> dict[ServiceName, str]:
        """The URL of each offered Service: its process has answered, and is kept running."""
        return {
            name: url
            for names, process in self._processes.items()
            if not process.gave_up
            for name, url in zip(names, process.program.urls, strict=True)
            if name in self._offered
        }

    @property
    def starting(self) -> dict[asyncio.Task[None], Process]:
        """The process of each task that waits for its first answer, those that have ended included."""
        return {task: self._processes[names] for names, task in self._offers.items()}

    def start(self, tools: Sequence[LocalService], broker: str) -> None:
        """Start these tools, with `broker` as the URL of the broker service."""
        self._wanted, self._broker = tools, broker
        self._start_missing(self._programs())

    async def reconcile(self, tools: Sequence[LocalService]) -> None:
        """Start, replace and end processes so that these tools run."""
        self._wanted = tools
        programs = self._programs()
        for names, process in list(self._processes.items()):
            program = programs.get(names)
            if program == process.program and not process.gave_up:
                continue
            if program is not None and not process.gave_up:
                logger.info("restarting %s: its manifest has changed", program.name)
            await self._end(names)
        served = {name for names in programs for name in names}
        for name in sorted(self._offered - served):
            logger.info("ended %s", name)
        self._offered &= served
        self._start_missing(self._programs())

    async def restart_changed(self) -> None:
        """Restart the tools whose code has changed; each has one attempt, until the next change."""
        for names, code in list(self._code.items()):
            changed = await asyncio.to_thread(code.read_changes)
            if not changed:
                continue
            process = self._processes[names]
            logger.info("restarting %s: %s changed", process.program.name, _list_files(changed))
            await self._end(names)
            self._start_missing(self._programs(), attempts=1)

    def drop_failed(self) -> None:
        """Withdraw the tools whose process does not start, until their manifest or code changes."""
        gave_up = {
            name: process.program.name
            for names, process in self._processes.items()
            if process.gave_up
            for name in names
        }
        failed = gave_up.keys() - self._failed
        for name in sorted(failed):
            logger.warning("%s does not start; read its message above", name)
        if failed:
            self._failed |= failed
            self._offered -= failed
            self._changed()

    async def stop(self) -> None:
        """End all processes."""
        for offer in self._offers.values():
            offer.cancel()
        await asyncio.gather(*(process.stop(_STOP_SECONDS) for process in self._processes.values()))

    def _programs(self) -> dict[_Names, Program]:
        for local in self._wanted:
            if local.service not in self._ports:
                self._ports[local.service] = next(self._free_ports)
        return plan.tool_programs(self._wanted, self._ports, self._broker, self._environment, self._outboxes)

    def _start_missing(self, programs: Mapping[_Names, Program], attempts: int = 3) -> None:
        for names, program in programs.items():
            if names in self._processes:
                continue
            environment = plan.for_tools(self._environment)
            if self._watch and not shared_server(tuple(program.command)) and len(names) == 1:
                self._code[names] = CodeFiles(program.command, environment)
            process = Process(program, environment, attempts)
            self._processes[names] = process
            process.start()
            self._offers[names] = asyncio.create_task(self._offer(names, process))
        self._changed()

    async def _offer(self, names: _Names, process: Process) -> None:
        """Offer a tool once its process answers: before, its calls would fail."""
        await process.wait_until_settled()
        if not process.answered:
            return
        urls = dict(zip(names, process.program.urls, strict=True))
        for name in sorted(urls.keys() - self._offered):
            logger.log(logging.INFO if self.ready else logging.DEBUG, "started %s at %s", name, urls[name])
        self._offered.update(names)
        self._changed()

    async def _end(self, names: _Names) -> None:
        process = self._processes.pop(names)
        self._code.pop(names, None)
        self._offers.pop(names).cancel()
        await process.stop(_STOP_SECONDS)
        self._failed.difference_update(names)
        for name in names if process.gave_up else ():
            self._ports.pop(name, None)


def _list_files(paths: Sequence[Path]) -> str:
    """Return the names of the first files, and the number of the others."""
    names = ", ".join(path.name for path in paths[:3])
    return names if len(paths) <= 3 else f"{names} and {len(paths) - 3} others"
