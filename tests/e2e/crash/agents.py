"""Agents in processes of their own, as a client and an operator see them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.agent.responses.running_face import Event, events_of, valid
from tests.e2e.crash.dying import Death
from tests.e2e.local_platform import ROOT, clean_environment, is_running
from tests.patience import PATIENCE, eventually

SECONDS = 60
"""How long a test waits for a process: a machine may be busy with many others."""


@dataclass
class AgentProcess:
    """An agent that serves; `shown` are the events that it sent before it ended or was done."""

    pid: int
    http: httpx.AsyncClient
    shown: list[Event] = field(default_factory=list)

    async def ask(self, name: str) -> None:
        """Begin a run in the background, and take its events until its stream ends, however it ends."""
        request = {"input": name, "metadata": {"walk": name}, "background": True, "stream": True}
        request["include"] = ["mcp_call"]
        text = ""
        try:
            async with self.http.stream("POST", "/v1/responses", json=request) as answer:
                async for piece in answer.aiter_text():
                    *whole, text = (text + piece).split("\n\n")
                    self.shown += [event for block in whole if (event := _event(block))]
        except httpx.TransportError:
            return

    async def get(self, response_id: str) -> Event:
        """Return a response, which is valid."""
        return valid(await self.http.get(f"/v1/responses/{response_id}"))

    async def join(self, response_id: str, starting_after: int = -1) -> list[Event]:
        """Return the events of a response to its end, which are valid and numbered without a gap."""
        query: dict[str, str | int] = {"stream": "true", "starting_after": starting_after}
        return events_of(await self.http.get(f"/v1/responses/{response_id}", params=query))

    async def answers(self) -> bool:
        """Whether it serves."""
        try:
            return (await self.http.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it without letting it do anything."""
        os.kill(self.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait until it is dead."""
        await eventually(lambda: asyncio.sleep(0, not is_running(self.pid)), SECONDS)


def _event(block: str) -> Event | None:
    _, found, data = block.partition("data: ")
    event: Event | None = json.loads(data) if found and data != "[DONE]" else None
    return event


class Nursery:
    """Where agents come from."""

    def __init__(
        self, process: asyncio.subprocess.Process, folder: Path, settings: Mapping[str, str]
    ) -> None:
        self._process = process
        self._folder = folder
        self._settings = settings
        self._clients: list[httpx.AsyncClient] = []
        self._ordering = asyncio.Lock()

    async def agent(self, store: str, death: Death | None = None, **settings: str) -> AgentProcess:
        """Start an agent and wait until it answers."""
        log = self._folder / f"agent-{len(self._clients)}.log"
        settings = {**self._settings, "BECKON_PORT": "0", "BECKON_STORE": store, **settings}
        pid, port = await self._order(
            {
                "environment": clean_environment(settings),
                "log": str(log),
                "death": asdict(death) if death else None,
            }
        )
        agent = AgentProcess(pid, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE))
        self._clients.append(agent.http)

        async def answers() -> bool:
            assert is_running(pid), log.read_text()
            return await agent.answers()

        await eventually(answers, SECONDS)
        return agent

    async def _order(self, order: Mapping[str, Any]) -> tuple[int, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._ordering:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            pid, port = (await self._process.stdout.readline()).split()
        return int(pid), int(port)

    async def aclose(self) -> None:
        """End all agents."""
        self._process.kill()
        await self._process.communicate()
        for client in self._clients:
            await client.aclose()


@asynccontextmanager
async def nursery(folder: Path, **settings: str) -> AsyncIterator[Nursery]:
    """Start agents with these settings in common; they all end with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.e2e.crash.nursery",
        env=clean_environment({}),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = Nursery(process, folder, settings)
    try:
        yield running
    finally:
        await running.aclose()
