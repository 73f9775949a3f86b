"""The broker and the shim in processes of their own, with the settings of Beckon's local platform."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from beckon_cli.local.ports import free_ports
from tests.agent.event_platform import declared
from tests.broker.broker_process import broker, delivery, trigger, write_manifests
from tests.e2e.crash.agents import SECONDS
from tests.e2e.crash.tools import mark
from tests.e2e.local_platform import ROOT, clean_environment, port_range
from tests.patience import PATIENCE, eventually
from tests.shim.support import KEY


class Part:
    """A program that can be killed, and started again where it was."""

    def __init__(self, module: str, url: str, log: Path, **settings: str) -> None:
        self.url = url
        self._module = module
        self._log = log
        self._environment = clean_environment(settings)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                env=self._environment,
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        process = self._process
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as http:

            async def answers() -> bool:
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.TransportError:
                    assert process.returncode is None, self._log.read_text()
                    return False

            await eventually(answers, SECONDS)

    async def kill(self) -> None:
        """End it without letting it do anything; where it has ended, do nothing."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


@dataclass
class Parts:
    """A broker, the shim in front of it, and the manifests by which the agent knows the tool."""

    broker: Part
    shim: Part
    folder: Path
    sink: int
    """The port of the agent to which the shim hands late replies."""


async def no_call_waits(shim: str) -> bool:
    """Whether the shim at a URL holds no call."""
    async with httpx.AsyncClient(base_url=shim, timeout=PATIENCE) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    return [float(line.split()[1]) for line in lines if line.startswith("beckon_shim_waiting_calls ")] == [0]


@asynccontextmanager
async def parts(folder: Path, logs: Path, tool: str) -> AsyncIterator[Parts]:
    """Run broker and shim in front of the tool at an address."""
    free = free_ports("127.0.0.1", port_range())
    ports = [next(free) for _ in range(4)]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    sink = {"uri": f"{urls[2]}/dead-letters"}
    write_manifests(
        folder,
        *declared(mark, tool),
        broker(delivery=delivery(retry=1, deadLetterSink=sink)),
        trigger("replies", f"{urls[2]}/replies", filter={"attributes": {"replyid": ""}}),
    )
    running = Parts(
        Part(
            "beckon_broker",
            urls[0],
            logs / "broker.log",
            BECKON_PORT=str(ports[0]),
            BECKON_MANIFESTS=str(folder),
        ),
        Part(
            "beckon_shim",
            urls[1],
            logs / "shim.log",
            BECKON_PORT=str(ports[1]),
            BECKON_SHIM_REPLY_PORT=str(ports[2]),
            BECKON_SHIM_BROKER_URL=urls[0] + "/{namespace}/{name}",
            BECKON_SHIM_KEYS=KEY,
            BECKON_SHIM_LATE_REPLY_SINK=f"{urls[3]}/late-replies",
        ),
        folder,
        ports[3],
    )
    try:
        await asyncio.gather(running.broker.start(), running.shim.start())
        yield running
    finally:
        await asyncio.gather(running.broker.kill(), running.shim.kill())
