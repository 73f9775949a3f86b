"""The local platform: starts its processes, follows the manifests, ends everything."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from beckon_cli.errors import CommandError
from beckon_cli.local import plan
from beckon_cli.local.forking import can_fork, import_services
from beckon_cli.local.ports import answers, free_ports, is_free
from beckon_cli.local.process import Process, Program
from beckon_cli.local.services import ServiceName, WantedService, wanted
from beckon_cli.settings import Settings, child_environment
from beckon_contract.kubernetes_objects import DEFAULT_NAMESPACE
from beckon_contract.resources.agent_resource import is_agent
from beckon_sources.folder_watch import ticks
from beckon_sources.folders import ManifestFolders

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0
_TOOL_SECONDS = 8.0
_STOP_SECONDS = 5.0
_RETRY_SECONDS = 0.02

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
        self._tool_ports: dict[ServiceName, int] = {}
        self._core: list[Process] = []
        self._tools: dict[tuple[ServiceName, ...], Process] = {}

    @property
    def tools(self) -> dict[str, str]:
        """The URL of each running tool, by the name of its Service."""
        return {str(name): url for name, url in sorted(self._tool_urls().items())}

    @property
    def agents(self) -> list[str]:
        """The agents' names in requests, the service's own agent first."""
        said = self._environment.get
        own = said("BECKON_AGENT_NAMESPACE") or DEFAULT_NAMESPACE, said("BECKON_AGENT_NAME") or "beckon"
        written = {(one.namespace, one.name) for one in self._folder.resources if is_agent(one)} - {own}
        return [own[1], *sorted(name if place == own[0] else f"{place}/{name}" for place, name in written)]

    def start(self) -> None:
        """Start every process, the tools first: they start while this process imports the services.

        Raises `CommandError` if the port is taken.
        """
        if not is_free(self.settings.host, self.settings.port):
            raise CommandError(
                f"port {self.settings.port} on {self.settings.host} is taken; "
                f"choose another: beckon up --port {self.settings.port + 100}, or BECKON_PORT",
                status=2,
            )
        self._folder.refresh()
        self.addresses = plan.addresses(self.settings, self._ports)
        self._start_tools(self._needs())
        programs = plan.core_programs(self.settings, self.addresses, self._state, self._environment)
        if can_fork():
            import_services(program.module for program in programs)
        for program in programs:
            process = Process(program, self._environment)
            self._core.append(process)
            process.start()

    async def wait_until_ready(self) -> None:
        """Wait until everything answers.

        Raises `CommandError` if a core part does not answer. A tool that does not answer is logged only: one
        broken tool does not stop the platform.
        """
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
        before = self._tool_urls()
        await self._reconcile()
        after = self._tool_urls()
        for name in sorted(after.keys() - before.keys()):
            logger.info("started %s at %s", name, after[name])
        for name in sorted(before.keys() - after.keys()):
            logger.info("ended %s", name)

    async def stop(self) -> None:
        """End every process, the agent first.

        So no new calls are made while the other processes end.
        """
        for agent in self._core[-1:]:
            await agent.stop(_STOP_SECONDS)
        others = [*self._core[:-1], *self._tools.values()]
        await asyncio.gather(*(process.stop(_STOP_SECONDS) for process in others))
        shutil.rmtree(self._state, ignore_errors=True)

    async def _reconcile(self) -> None:
        needs = self._needs()
        programs = self._tool_programs(needs)
        for names, process in list(self._tools.items()):
            if names not in programs or programs[names] != process.program or process.gave_up:
                await self._tools.pop(names).stop(_STOP_SECONDS)
                self._reported.difference_update(names)
                for name in names if process.gave_up else ():
                    self._tool_ports.pop(name, None)
        self._start_tools(needs)

    def _needs(self) -> WantedService:
        needs = wanted(self._folder.resources, self.addresses.agent)
        self._report_missing(needs.missing())
        return needs

    def _start_tools(self, needs: WantedService) -> None:
        """Start the processes of the tools that do not run, and write where all of them are."""
        for names, program in self._tool_programs(needs).items():
            if names not in self._tools:
                self._tools[names] = Process(program, plan.for_tools(self._environment))
                self._tools[names].start()
        self._write_generated(needs)

    def _tool_programs(self, needs: WantedService) -> dict[tuple[ServiceName, ...], Program]:
        tools = [local for local in needs.services.values() if local.command]
        for local in tools:
            if local.service not in self._tool_ports:
                self._tool_ports[local.service] = next(self._ports)
        where = {"BECKON_MANIFESTS": plan.folders(self.settings, self._state)}
        environment = {**self._environment, **where}
        return plan.tool_programs(tools, self._tool_ports, self.addresses.broker, environment)

    def _tool_urls(self) -> dict[ServiceName, str]:
        """Return the URL of each Service whose process runs."""
        return {
            name: url
            for names, process in self._tools.items()
            if not process.gave_up
            for name, url in zip(names, process.program.urls, strict=True)
        }

    def _report_missing(self, missing: Mapping[ServiceName, str]) -> None:
        """Log each Service without a server here once, with the remedy."""
        for name, cure in missing.items():
            if self._missing.get(name) != cure:
                logger.warning("nothing serves %s here: %s", name, cure)
        self._missing = dict(missing)

    def _write_generated(self, needs: WantedService) -> None:
        addresses = {name: local.url for name, local in needs.services.items() if local.url}
        addresses.update(self._tool_urls())
        text = plan.manifests(
            addresses=addresses,
            brokers=needs.brokers,
            broker_url=self.addresses.broker,
            reply_url=self.addresses.replies,
            reply_attribute=self._environment.get("BECKON_REPLY_ATTRIBUTE", "replyid"),
        )
        draft = self._state / "generated.draft"
        draft.write_text(text, encoding="utf-8")
        draft.replace(self._state / "generated.yaml")

    async def _silent_after(self, seconds: float, processes: Sequence[Process]) -> str:
        """Wait for all processes to answer or give up, up to `seconds`.

        Returns the names of those that did neither, separated by commas.
        """
        waiting = {asyncio.create_task(self._wait_until_settled(one)): one.program.name for one in processes}
        try:
            async with asyncio.timeout(seconds):
                while waiting:
                    self._report(f"waiting for {', '.join(waiting.values())}")
                    settled, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in settled:
                        del waiting[task]
                        task.result()
        except TimeoutError:
            return ", ".join(waiting.values())
        finally:
            for task in waiting:
                task.cancel()
        return ""

    async def _wait_until_settled(self, process: Process) -> None:
        """Wait until each server of a process answers, or until a tool gave up.

        A broken tool does not stop the platform. Raises `CommandError` for a core process that gave up.
        """
        while not process.gave_up:
            if all([await answers(url) for url in process.program.urls]):
                process.answered = True
                return
            await asyncio.sleep(_RETRY_SECONDS)
        if process in self._core:
            raise CommandError(f"{process.program.name} did not start; its message stands above")

    def _drop_failed_tools(self) -> None:
        """Remove the addresses of failed tools.

        They are started again when a manifest changes.
        """
        gave_up = [names for names, process in self._tools.items() if process.gave_up]
        failed = {name for names in gave_up for name in names} - self._reported
        for name in sorted(failed):
            logger.warning("%s does not start; its message stands above", name)
        if failed:
            self._reported |= failed
            self._write_generated(wanted(self._folder.resources, self.addresses.agent))
