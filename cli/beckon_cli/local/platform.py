"""The local platform: starts its processes, follows the manifests, ends everything."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from beckon_cli.errors import CommandError
from beckon_cli.local import generated, plan
from beckon_cli.local.ports import free_ports, is_free
from beckon_cli.local.process import Process
from beckon_cli.local.services import LocalService, ServiceName, WantedService, wanted
from beckon_cli.settings import Settings, child_environment
from beckon_contract.agent_resources import is_agent
from beckon_contract.resources import DEFAULT_NAMESPACE
from beckon_sources.folder_watch import ticks
from beckon_sources.folders import ManifestFolders

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0
_TOOL_SECONDS = 8.0
_STOP_SECONDS = 5.0

# What suits a laptop where nobody says otherwise: quiet services that end soon.
_HABITS = {
    "BECKON_LOG_LEVEL": "warning",
    "BECKON_DRAIN_SECONDS": "2",
    **{f"BECKON_{service}_DRAIN_SECONDS": "2" for service in ("SHIM", "BROKER", "TOOLS")},
}

Report = Callable[[str], None]


class Platform:
    """All processes of the local platform.

    `report` receives a line about the processes that are being waited for.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        self.settings = settings
        self.addresses = plan.Addresses("", "", "", "")
        self._missing: dict[ServiceName, str] = {}
        self._reported: set[ServiceName] = set()
        self._report = report
        self._environment = {**_HABITS, **child_environment()}
        self._folder = ManifestFolders((settings.manifests,))
        self._state = Path(tempfile.mkdtemp(prefix="beckon-"))
        self._ports = free_ports("127.0.0.1", settings.port + 1)
        self._core: list[Process] = []
        self._tools: dict[ServiceName, Process] = {}

    @property
    def tools(self) -> dict[str, str]:
        """The URL of each running tool, by the name of its Service."""
        running = {name: process for name, process in self._tools.items() if not process.gave_up}
        return {str(name): process.program.url for name, process in sorted(running.items())}

    @property
    def agents(self) -> list[str]:
        """The agents' names in requests, the service's own agent first."""
        said = self._environment.get
        own = said("BECKON_AGENT_NAMESPACE") or DEFAULT_NAMESPACE, said("BECKON_AGENT_NAME") or "beckon"
        written = {(one.namespace, one.name) for one in self._folder.resources if is_agent(one)} - {own}
        return [own[1], *sorted(name if place == own[0] else f"{place}/{name}" for place, name in written)]

    async def start(self) -> None:
        """Start everything and wait until it answers.

        Raises `CommandError` if the port is taken or a core part does not answer. A tool that does not
        answer is logged only: one broken tool does not stop the platform.
        """
        if not is_free(self.settings.host, self.settings.port):
            raise CommandError(
                f"port {self.settings.port} on {self.settings.host} is taken; "
                f"choose another: beckon up --port {self.settings.port + 100}, or BECKON_PORT",
                status=2,
            )
        self._folder.refresh()
        self.addresses = plan.addresses(self.settings, self._ports)
        await self._reconcile()
        for program in plan.core_programs(self.settings, self.addresses, self._state, self._environment):
            process = Process(program, self._environment)
            self._core.append(process)
            await process.start()
        if silent := await self._silent_after(_START_SECONDS, self._core):
            raise CommandError(f"no answer within {_START_SECONDS:g} seconds from: {silent}")
        if silent := await self._silent_after(_TOOL_SECONDS, list(self._tools.values())):
            logger.warning("no answer yet from: %s", silent)
        self._drop_failed_tools()

    async def follow(self) -> None:
        """Start and end tools as the manifests change, until cancelled."""
        async with contextlib.aclosing(ticks([self.settings.manifests])) as changes:
            async for _ in changes:
                try:
                    if await asyncio.to_thread(self._folder.refresh):
                        await self._follow_once()
                    self._drop_failed_tools()
                except Exception:  # whatever one change does, the next one counts
                    logger.exception("a change of the manifests could not be followed")

    async def _follow_once(self) -> None:
        before = set(self._tools)
        await self._reconcile()
        for name in sorted(set(self._tools) - before):
            logger.info("started %s at %s", name, self._tools[name].program.url)
        for name in sorted(before - set(self._tools)):
            logger.info("ended %s", name)

    async def stop(self) -> None:
        """End every process, the agent first.

        So no new calls are made while the other processes end.
        """
        for process in reversed(self._core):
            await process.stop(_STOP_SECONDS)
        await asyncio.gather(*(process.stop(_STOP_SECONDS) for process in self._tools.values()))
        shutil.rmtree(self._state, ignore_errors=True)

    async def _reconcile(self) -> None:
        needs = wanted(self._folder.resources, self.addresses.agent)
        self._report_missing(needs.missing())
        for name, process in list(self._tools.items()):
            local = needs.services.get(name)
            if local is None or local.command != process.program.command or process.gave_up:
                await self._tools.pop(name).stop(_STOP_SECONDS)
                self._reported.discard(name)
        for local in needs.services.values():
            if local.command and local.service not in self._tools:
                await self._start_tool(local)
        self._write_generated(needs)

    async def _start_tool(self, local: LocalService) -> None:
        manifests = plan.folders(self.settings, self._state)
        allowed = self._environment.get("BECKON_ALLOWED_HOSTS", "")
        program = plan.tool_program(local, next(self._ports), self.addresses.broker, manifests, allowed)
        process = Process(program, plan.for_tools(self._environment))
        self._tools[local.service] = process
        await process.start()

    def _report_missing(self, missing: Mapping[ServiceName, str]) -> None:
        """Log each Service without a server here once, with the remedy."""
        for name, cure in missing.items():
            if self._missing.get(name) != cure:
                logger.warning("nothing serves %s here: %s", name, cure)
        self._missing = dict(missing)

    def _write_generated(self, needs: WantedService) -> None:
        addresses = {name: local.url for name, local in needs.services.items() if local.url}
        running = {name: process for name, process in self._tools.items() if not process.gave_up}
        addresses.update({name: process.program.url for name, process in running.items()})
        text = generated.manifests(
            addresses=addresses,
            brokers=needs.brokers,
            broker_url=self.addresses.broker,
            reply_url=self.addresses.replies,
            reply_attribute=self._environment.get("BECKON_SHIM_REPLY_ATTRIBUTE", "replyid"),
        )
        draft = self._state / "generated.draft"
        draft.write_text(text, encoding="utf-8")
        draft.replace(self._state / "generated.yaml")

    async def _silent_after(self, seconds: float, processes: Sequence[Process]) -> str:
        """Wait for all processes to answer or give up, up to `seconds`.

        Returns the names of those that did neither, separated by commas.
        """
        waiting = list(processes)
        async with httpx.AsyncClient(timeout=2.0) as client:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while waiting := [one for one in waiting if not await self._is_settled(client, one)]:
                        self._report("waiting for " + ", ".join(process.program.name for process in waiting))
                        await asyncio.sleep(0.05)
        return ", ".join(process.program.name for process in waiting)

    async def _is_settled(self, client: httpx.AsyncClient, process: Process) -> bool:
        """Return True if a process answers or a tool gave up.

        A broken tool does not stop the platform. Raises `CommandError` for a core process that gave up.
        """
        if not process.gave_up:
            process.answered = await _answers(client, process)
            return process.answered
        if process in self._core:
            raise CommandError(f"{process.program.name} did not start; its message stands above")
        return True

    def _drop_failed_tools(self) -> None:
        """Remove the addresses of failed tools.

        They are started again when a manifest changes.
        """
        failed = {name for name, process in self._tools.items() if process.gave_up} - self._reported
        for name in sorted(failed):
            logger.warning("%s does not start; its message stands above", name)
        if failed:
            self._reported |= failed
            self._write_generated(wanted(self._folder.resources, self.addresses.agent))


async def _answers(client: httpx.AsyncClient, process: Process) -> bool:
    try:
        response = await client.get(f"{process.program.url}/healthz")
    except httpx.HTTPError:
        return False
    return response.status_code < 500
