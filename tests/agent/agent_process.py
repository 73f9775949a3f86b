"""The agent as a process of its own, with a scripted model."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.agent.scripted_model import KEY, Script, ScriptedModel, scripted_model
from tests.command_server import ModuleProcess, run_module
from tests.e2e.local_platform import START_SECONDS, clean_environment, port_range
from tests.patience import PATIENCE, eventually


@dataclass
class AgentProcess:
    """A process, where it serves, and its client."""

    process: ModuleProcess
    http: httpx.AsyncClient
    model: ScriptedModel

    def kill(self) -> None:
        """End it without letting it do anything."""
        self.process.send_signal(signal.SIGKILL)

    async def ended(self) -> tuple[int, str]:
        """Return how the process ended, and all that it said."""
        status = await asyncio.to_thread(self.process.wait, PATIENCE)
        return status, self.process.errors()


async def start(**settings: str) -> asyncio.subprocess.Process:
    """Start an agent with an interpreter of its own."""
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
        chosen = {
            "BECKON_PORT": str(port),
            "BECKON_MANIFESTS": str(folder),
            "BECKON_MODEL": "m",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": KEY,
            **settings,
        }
        process = await asyncio.to_thread(ModuleProcess, "beckon_agent", env=clean_environment(chosen))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as http:

            async def answers() -> bool:
                if process.poll() is not None:
                    raise AssertionError(f"the agent ended with {process.returncode}: {process.errors()}")
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.ConnectError:
                    return False

            await eventually(answers, START_SECONDS)
            agent = AgentProcess(process, http, model)
            try:
                yield agent
            finally:
                agent.kill()
                await agent.ended()
