"""Where the walk takes place: broker, shim, tool, model, two databases, and a replica that stays on each."""

import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from beckon_agent.store.sql.open import open_store
from beckon_tools.app import app
from tests.agent.event_platform import described
from tests.agent.store.postgres import Server
from tests.broker.broker_process import service, write_manifests
from tests.e2e.crash.agents import AgentProcess, Nursery, nursery
from tests.e2e.crash.dying import Death
from tests.e2e.crash.gates import GATES
from tests.e2e.crash.parts import Parts, parts
from tests.e2e.crash.tools import counted, mark, model, plain
from tests.serving import served
from tests.shim.support import KEY

SQLITE, POSTGRESQL = "sqlite", "postgresql"
_numbers = itertools.count()


class Databases:
    """Makes databases that are ready for an agent."""

    def __init__(self, folder: Path, postgres: Server) -> None:
        self._folder = folder
        self._postgres = postgres
        self._ready = f"ready-{next(_numbers)}"

    async def prepare(self) -> None:
        """Make one of each kind; the others are copies, which is faster than to migrate them."""
        for url in (f"sqlite:///{self._folder / self._ready}", await self._postgres.copy(self._ready)):
            store = await open_store(url)
            await store.aclose()

    async def new(self, kind: str) -> str:
        """Return the address of a new database."""
        name = f"n{next(_numbers)}"
        if kind == POSTGRESQL:
            return await self._postgres.copy(name, self._ready)
        path = self._folder / f"{name}.db"
        shutil.copy(self._folder / self._ready, path)
        return f"sqlite:///{path}"


@dataclass
class Site:
    """All of it; `replicas` are the agents that stay, by the kind of their database, with its address."""

    parts: Parts
    tool: str
    model: str
    databases: Databases
    _nursery: Nursery
    replicas: dict[str, tuple[AgentProcess, str]] = field(default_factory=dict)

    async def agent(self, store: str, death: Death | None = None, **settings: str) -> AgentProcess:
        """Start an agent."""
        return await self._nursery.agent(store, death, **settings)


@asynccontextmanager
async def running_site(folder: Path, postgres: Server) -> AsyncIterator[Site]:
    """Run everything that outlives the agents, and one agent for each kind of database."""
    manifests, logs = folder / "manifests", folder / "logs"
    for each in (manifests, logs):
        each.mkdir()
    async with AsyncExitStack() as stack:
        stack.callback(GATES.open_all)
        tool = await stack.enter_async_context(served(counted(app(mark))))
        request = await stack.enter_async_context(served(model))
        without_sdk = await stack.enter_async_context(served(counted(plain)))
        parameters = json.dumps({name: {"type": "string"} for name in ("run", "place")})
        write_manifests(
            manifests,
            *described("crash.plain", "crash-plain", parameters=parameters),
            service("crash-plain", without_sdk),
            file="plain.json",
        )
        platform = await stack.enter_async_context(parts(manifests, logs, tool))
        running = await stack.enter_async_context(
            nursery(
                logs,
                OPENAI_BASE_URL=f"{request}/v1",
                OPENAI_API_KEY="any",
                BECKON_MODEL="m",
                BECKON_DIALECT="native",
                BECKON_MANIFESTS=str(manifests),
                BECKON_SHIM_URL=platform.shim.url,
                BECKON_SHIM_KEYS=KEY,
            )
        )
        databases = Databases(folder, postgres)
        await databases.prepare()
        site = Site(platform, tool, f"{request}/v1", databases, running)

        for kind in (SQLITE, POSTGRESQL):
            store = await databases.new(kind)
            port = platform.sink if kind == POSTGRESQL else 0
            site.replicas[kind] = await site.agent(store, BECKON_PORT=str(port)), store
        yield site
