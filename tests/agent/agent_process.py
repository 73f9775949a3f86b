"""The agent as a process of its own, with a scripted model."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.agent.scripted_model import KEY, Script, ScriptedModel, scripted_model
from tests.command_server import run_module
from tests.e2e.local_platform import START_SECONDS, clean_environment, port_range
from tests.patience import PATIENCE, eventually


@dataclass
class AgentProcess:
    """A process, where it serves, and its client."""

    process: asyncio.subprocess.Process
    http: httpx.AsyncClient
    model: ScriptedModel

    async def ended(self) -> tuple[int, str]:
        """Return how the process ended, and all that it said."""
        _, said = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        assert self.process.returncode is not None
        return self.process.returncode, said.decode()


async def start(**settings: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "beckon_agent",
        env=clean_environment(settings),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run_to_end(**settings: str) -> subprocess.CompletedProcess[str]:
    """Run an agent that ends by itself."""
    return await asyncio.to_thread(run_module, "beckon_agent", env=clean_environment(settings))


@asynccontextmanager
async def serving(folder: Path, *script: Script, **settings: str) -> AsyncIterator[AgentProcess]:
    """Run an agent on the port of its settings, or on a free one."""
    port = int(settings.pop("BECKON_PORT", "0")) or port_range()
    async with scripted_model(*script) as model:
        process = await start(
            BECKON_PORT=str(port),
            BECKON_MANIFESTS=str(folder),
            BECKON_MODEL="m",
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY=KEY,
            **settings,
        )
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as http:

            async def answers() -> bool:
                if process.returncode is not None:
                    _, said = await process.communicate()
                    raise AssertionError(f"the agent ended with {process.returncode}: {said.decode()}")
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.ConnectError:
                    return False

            await eventually(answers, START_SECONDS)
            try:
                yield AgentProcess(process, http, model)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.communicate()
