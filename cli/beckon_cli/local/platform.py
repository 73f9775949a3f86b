"""The local platform: starts its processes, follows the manifests, ends everything."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from beckon_cli.errors import CommandError
from beckon_cli.local import nats, plan
from beckon_cli.local.forking import can_fork, import_services
from beckon_cli.local.manifest_report import ManifestReport
from beckon_cli.local.ports import free_ports, is_free, read_tool_count
from beckon_cli.local.process import Process, Progress
from beckon_cli.local.services import ADAPTER, WantedService, wanted
from beckon_cli.local.tool_processes import ToolProcesses
from beckon_cli.settings import Settings, child_environment
from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.knative.addresses import with_readiness
from beckon_contract.kubernetes_objects import DEFAULT_NAMESPACE, Resource, parse_manifests
from beckon_contract.resources.agent_resource import is_agent
from beckon_runtime.logs import QUIET_LOGGERS
from beckon_sources.folders import ManifestFolders, ticks

logger = logging.getLogger(__name__)

_STALLED_SECONDS, _STALLED_TOOL_SECONDS = 60, 8
_LONGEST_START_SECONDS, _LONGEST_TOOL_SECONDS = 600, 60
_CATALOGUE_SECONDS = 5.0
_STOP_SECONDS = 5.0
_CATALOGUE_PAUSE = 0.02

# What suits a laptop where no setting says otherwise: quiet services that end soon. A broker that died comes
# back at once, so its deliveries need not wait as long as in a cluster.
_HABITS = {
    "BECKON_BROKER_LEASE_SECONDS": "5",
    "BECKON_LOG_LEVEL": "warning",
    "BECKON_DRAIN_SECONDS": "2",
    **{f"BECKON_{service}_DRAIN_SECONDS": "2" for service in ("SHIM", "BROKER", "TOOLS")},
}

# This process reads the same manifests, and says once what is wrong with them.
_REPORTED_HERE = {QUIET_LOGGERS: "beckon_sources.folders,beckon_broker.source"}

Report = Callable[[str], None]


class Platform:
    """All processes of the local platform.

    `report` receives a line about the processes that are being waited for. With `watch`, tools are restarted
    when their code changes. With `durable`, a NATS server keeps the events, unless the settings name one.
    """

    def __init__(
        self, settings: Settings, report: Report, *, watch: bool = False, durable: bool = False
    ) -> None:
        self.settings = settings
        self._with_nats = durable and not settings.nats_url.get_secret_value()
        self.addresses = plan.Addresses("", "", "", "")
        self._report = report
        self._environment = {**_HABITS, **child_environment(), **_REPORTED_HERE}
        self._folder = ManifestFolders((settings.manifests,))
        self._state = Path(tempfile.mkdtemp(prefix="beckon-"))
        self._ports = free_ports("127.0.0.1", settings.port + 1)
        self._core: list[Process] = []
        self._nats: Process | None = None
        self._needs = WantedService({}, {})
        self._generated = ""
        environment = {**self._environment, "BECKON_MANIFESTS": plan.folders(settings, self._state)}
        self._findings = ManifestReport("/beckon/agents/{}/{}".format(*self._own_agent))
        outboxes = plan.outbox_prefix(environment, self._state)
        self._tools = ToolProcesses(
            environment, self._ports, self._write_generated, outboxes=outboxes, watch=watch
        )

    @property
    def tools(self) -> dict[str, str]:
        """The URL of each tool that has answered, by the name of its Service."""
        return {str(name): url for name, url in sorted(self._tools.urls.items())}

    @property
    def agents(self) -> list[str]:
        """The agents' names in requests, the service's own agent first."""
        own = self._own_agent
        written = {(one.namespace, one.name) for one in self._folder.resources if is_agent(one)} - {own}
        return [own[1], *sorted(name if place == own[0] else f"{place}/{name}" for place, name in written)]

    @property
    def _own_agent(self) -> tuple[str, str]:
        """The namespace and the name of the service's own agent."""
        setting = self._environment.get
        return setting("BECKON_AGENT_NAMESPACE") or DEFAULT_NAMESPACE, setting(
            "BECKON_AGENT_NAME"
        ) or "beckon"

    def start(self) -> None:
        """Start every process, the tools first: they start while this process imports the services.

        Raises `CommandError` if the port is taken, or if a NATS server is wanted and cannot be started.
        """
        if not is_free(self.settings.host, self.settings.port):
            raise CommandError(
                f"port {self.settings.port} on {self.settings.host} is taken; "
                f"choose another: beckon up --port {self.settings.port + 100}, or BECKON_PORT",
                status=2,
            )
        self._folder.refresh()
        self.addresses = plan.addresses(self.settings, self._ports, with_nats=self._with_nats)
        if self.addresses.nats:
            self._nats = Process(nats.server_program(self.addresses.nats, self._environment), {})
            self._nats.start()
        self._needs = wanted(self._folder.resources, self.addresses.agent)
        self._tools.start(self._needs.commands(), self.addresses.broker)
        programs = plan.core_programs(self.settings, self.addresses, self._state, self._environment)
        if can_fork():
            import_services(program.module for program in programs if program.module)
        for program in programs:
            process = Process(program, self._environment)
            self._core.append(process)
            process.start()

    async def wait_until_ready(self) -> None:
        """Wait until everything answers, as long as it makes progress.

        Raises `CommandError` if a core part does not answer. A tool that does not answer is logged only: one
        broken tool does not stop the platform.
        """
        await self._report_findings()
        core = [self._nats, *self._core] if self._nats else self._core
        answering = {asyncio.create_task(self._wait_for_core(one)): one for one in core}
        try:
            stalled = await self._wait_while_progress(answering, _STALLED_SECONDS, _LONGEST_START_SECONDS)
        finally:
            for task in answering:
                task.cancel()
        if stalled:
            raise CommandError("; ".join(map(_explain_stall, stalled)))
        tools = self._tools.starting
        for start in await self._wait_while_progress(tools, _STALLED_TOOL_SECONDS, _LONGEST_TOOL_SECONDS):
            name = start.process.program.name
            logger.warning("no answer yet from: %s; it is offered when it answers", name)
        self._tools.drop_failed()
        await self._wait_for_catalogue()
        self._tools.ready = True

    async def follow(self) -> None:
        """Start and end tools as the manifests change, until cancelled."""
        async with contextlib.aclosing(ticks([self.settings.manifests])) as changes:
            async for _ in changes:
                try:
                    if await asyncio.to_thread(self._folder.refresh):
                        self._needs = wanted(self._folder.resources, self.addresses.agent)
                        await self._report_findings()
                        await self._tools.reconcile(self._needs.commands())
                    self._tools.drop_failed()
                    await self._tools.restart_changed()
                except Exception:  # whatever one change does, the next one counts
                    logger.exception("a change of the manifests could not be followed")

    async def stop(self) -> None:
        """End every process, the agent first: no new calls are made while the other processes end.

        The NATS server is the last: the broker acknowledges to it what is over.
        """
        for agent in self._core[-1:]:
            await agent.stop(_STOP_SECONDS)
        others = (process.stop(_STOP_SECONDS) for process in self._core[:-1])
        await asyncio.gather(self._tools.stop(), *others)
        if self._nats:
            await self._nats.stop(_STOP_SECONDS)
        shutil.rmtree(self._state, ignore_errors=True)

    async def _report_findings(self) -> None:
        """Log what is new among the errors of the manifests."""
        for line in await asyncio.to_thread(self._findings.review, self._folder.resources, self._needs):
            logger.warning("%s", line)

    def _write_generated(self) -> None:
        needs = self._needs
        addresses = {name: local.url for name, local in needs.services.items() if local.url}
        addresses.update(self._tools.urls)
        self._generated = plan.manifests(
            addresses=addresses,
            # The adapter comes with the first tool that needs it, and may be read later than that tool.
            starting={ADAPTER, *(local.service for local in needs.commands())},
            brokers=needs.brokers,
            broker_url=self.addresses.broker,
            reply_url=self.addresses.replies,
            reply_attribute=self._environment.get("BECKON_REPLY_ATTRIBUTE", "replyid"),
        )
        draft = self._state / "generated.draft"
        draft.write_text(self._generated, encoding="utf-8")
        draft.replace(self._state / "generated.yaml")

    async def _wait_while_progress(
        self, waiting: Mapping[asyncio.Task[None], Process], stalled: int, longest: int
    ) -> list[Progress]:
        """Wait for these tasks, as long as the process of each makes progress.

        Returns those that do not answer and have used no CPU time for `stalled` seconds, or start for over
        `longest` seconds.
        """
        starts = {task: Progress(process, stalled) for task, process in waiting.items()}
        started = asyncio.get_running_loop().time()
        silent: list[Progress] = []
        while starts and asyncio.get_running_loop().time() - started < longest:
            self._report(f"waiting for {', '.join(start.process.program.name for start in starts.values())}")
            settled, _ = await asyncio.wait(starts, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            for task in settled:
                del starts[task]
                task.result()
            if not settled:
                for start in starts.values():
                    start.check()
                silent += [start for start in starts.values() if start.stalled]
                starts = {task: start for task, start in starts.items() if not start.stalled}
        return [*silent, *starts.values()]

    async def _wait_for_core(self, process: Process) -> None:
        await process.wait_until_settled()
        if not process.answered:
            log = f", or in {process.program.log}" if process.program.log else ""
            raise CommandError(
                f"the {process.program.name} did not start ({process.ending}); read its message above{log}"
            )

    async def _wait_for_catalogue(self) -> None:
        """Wait until the agent has read the addresses of the tools, so that it offers those that answer."""
        # Imported late: where nothing is forked, this process has not imported the agent.
        from beckon_agent.tools.catalogue import with_addresses  # noqa: PLC0415  # see above

        generated = [
            one for one in parse_manifests(self._generated, "generated") if isinstance(one, Resource)
        ]
        readable = with_readiness([*self._folder.resources, *generated])
        caller = "/beckon/agents/{}/{}".format(*self._own_agent)
        expected = len(with_addresses(build_catalogue(readable, caller), readable).tools)
        end = asyncio.get_running_loop().time() + _CATALOGUE_SECONDS
        while asyncio.get_running_loop().time() < end:
            if await read_tool_count(self.addresses.agent) == expected:
                return
            await asyncio.sleep(_CATALOGUE_PAUSE)


def _explain_stall(start: Progress) -> str:
    program = start.process.program
    if start.stalled:
        why = f"its process has used no CPU time for {start.limit} s"
    else:
        why = f"its process still starts after {_LONGEST_START_SECONDS} s"
    return (
        f"the {program.name} does not answer at {', '.join(program.urls)}: {why}; "
        "read its messages above; BECKON_LOG_LEVEL=info shows more of them"
    )
