"""A platform whose parts can be killed, with its events in memory or in a nats-server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from beckon_cli.local.ports import free_ports
from tests.agent.event_platform import declared
from tests.broker.broker_process import broker, delivery, trigger, write_manifests
from tests.e2e.crash.parts import Part
from tests.e2e.local_platform import ROOT, clean_environment, port_range
from tests.faults.outside import Effects, make_tools
from tests.nats_server import NatsServer
from tests.shim.support import KEY

MEMORY, JETSTREAM = "memory", "JetStream"
NATS = "nats-server"
VICTIMS = ("ingress", "dispatcher", "shim", "agent", NATS)
CALL_SECONDS = 30.0


class Victim(Protocol):
    """What can be killed and started again."""

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        ...

    async def kill(self) -> None:
        """End it with SIGKILL."""
        ...


class NatsPart:
    """A nats-server as a part."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server

    async def start(self) -> None:
        """Start it with the streams that it has stored."""
        await asyncio.to_thread(self._server.start)

    async def kill(self) -> None:
        """End it with SIGKILL."""
        await asyncio.to_thread(self._server.kill)


@dataclass(frozen=True, slots=True)
class Outside:
    """What is never killed."""

    effects: Effects
    tools: tuple[str, ...]
    model: str


@dataclass(slots=True)
class Site:
    """A platform: its log, the agent's address, and what can be killed in it, by name.

    One process of the broker is ingress and dispatcher where the events are in memory.
    """

    log: str
    agent: str
    victims: dict[str, Victim] = field(default_factory=dict)


@asynccontextmanager
async def running_outside(folder: Path, host: str = "127.0.0.1") -> AsyncIterator[Outside]:
    """Run tools and model to the end of the block."""
    file = folder / "effects.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.faults.outside",
        str(file),
        host,
        env=clean_environment({}),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        *tools, model = (await process.stdout.readline()).decode().split()
        yield Outside(Effects(file), tuple(tools), model)
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def running_site(log: str, folder: Path, outside: Outside) -> AsyncIterator[Site]:
    """Run a platform to the end of the block."""
    found = free_ports("127.0.0.1", port_range())
    ports = {name: next(found) for name in ("ingress", "dispatcher", "shim", "replies", "agent")}
    _write_manifests(folder, outside, ports["replies"])
    async with AsyncExitStack() as stack:
        server = None
        if log == JETSTREAM:
            server = NatsServer(folder / "nats").start()
            stack.callback(server.stop)
        site = Site(log, f"http://127.0.0.1:{ports['agent']}")
        for name, part in _parts(folder, ports, outside, server):
            site.victims[name] = part
            stack.push_async_callback(part.kill)
        await asyncio.gather(*(part.start() for part in site.victims.values()))
        if server is not None:
            site.victims[NATS] = NatsPart(server)
        else:
            site.victims["dispatcher"] = site.victims["ingress"]
        yield site


def _write_manifests(folder: Path, outside: Outside, replies: int) -> None:
    manifests = folder / "manifests"
    manifests.mkdir(parents=True)
    shim = f"http://127.0.0.1:{replies}"
    write_manifests(
        manifests,
        *(
            manifest
            for each, url in zip(make_tools(outside.effects), outside.tools, strict=True)
            for manifest in declared(each, url)
        ),
        broker(delivery=delivery(retry=5, sink=f"{shim}/dead-letters", backoffDelay="PT0.2S")),
        trigger("replies", f"{shim}/replies", filter={"attributes": {"replyid": ""}}),
    )


def _parts(
    folder: Path, ports: Mapping[str, int], outside: Outside, server: NatsServer | None
) -> Iterator[tuple[str, Part]]:
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}

    def part(name: str, module: str, **settings: str) -> tuple[str, Part]:
        common = {"BECKON_PORT": str(ports[name]), "BECKON_MANIFESTS": str(folder / "manifests")}
        return name, Part(module, urls[name], folder / f"{name}.log", **common, **settings)

    inbox = f"{urls['replies']}/replies"
    if server is None:
        yield part("ingress", "beckon_broker", BECKON_BROKER_REPLY_INBOX=inbox)
    else:
        for role in ("ingress", "dispatcher"):
            yield part(
                role,
                "beckon_broker",
                BECKON_BROKER_ROLES=role,
                BECKON_BROKER_REPLY_INBOX=inbox,
                BECKON_NATS_URL=server.url,
            )
    yield part(
        "shim",
        "beckon_shim",
        BECKON_SHIM_REPLY_PORT=str(ports["replies"]),
        BECKON_SHIM_BROKER_URL=urls["ingress"] + "/{namespace}/{name}",
        BECKON_SHIM_KEYS=KEY,
        BECKON_SHIM_LATE_REPLY_SINK=f"{urls['agent']}/late-replies",
    )
    yield part(
        "agent",
        "beckon_agent",
        OPENAI_BASE_URL=f"{outside.model}/v1",
        OPENAI_API_KEY="any",
        BECKON_MODEL="m",
        BECKON_DIALECT="native",
        BECKON_STORE=f"sqlite:///{folder / 'store.db'}",
        BECKON_CALL_TIMEOUT=str(CALL_SECONDS),
        BECKON_SHIM_URL=urls["shim"],
        BECKON_SHIM_KEYS=KEY,
    )
