"""The agent as a process of its own: settings, signals, and a stop that loses no answer."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.agent.running_agent import eventually, user
from tests.agent.scripted_model import KEY, Reply, ScriptedModel, chunk, scripted_model, sse
from tests.e2e.local_platform import clean_environment


@dataclass
class AgentProcess:
    """A process, where it serves, and its client."""

    process: asyncio.subprocess.Process
    http: httpx.AsyncClient
    model: ScriptedModel

    async def ended(self) -> tuple[int, str]:
        """Return how the process ended, and all that it said."""
        _, said = await asyncio.wait_for(self.process.communicate(), 20)
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


@asynccontextmanager
async def serving(folder: Path, *script: Reply, **settings: str) -> AsyncIterator[AgentProcess]:
    """Run an agent on a free port."""
    with_port = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    port = 15_000 + int(with_port) * 400 + os.getpid() % 400
    async with scripted_model(*script) as model:
        process = await start(
            BECKON_PORT=str(port),
            BECKON_MANIFESTS=str(folder),
            BECKON_MODEL="m",
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY=KEY,
            **settings,
        )
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:

            async def answers() -> bool:
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.ConnectError:
                    return process.returncode is not None

            await eventually(answers, 20)
            try:
                yield AgentProcess(process, http, model)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.communicate()


def talking(until: asyncio.Event) -> Reply:
    """Return an answer that goes on until an event."""
    begun, end = (
        sse(chunk({"content": "Well, so"}), done=False),
        sse(chunk({"content": " it is."}), chunk(finish="stop")),
    )
    return Reply([begun, end], holds=until)


async def test_sigterm_lets_an_answer_come_to_its_end_and_exits_with_zero(tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with serving(tmp_path, talking(hold)) as agent:
        request = {"model": "beckon", "messages": [user("go")], "stream": True}
        asking = asyncio.create_task(agent.http.post("/v1/chat/completions", json=request))

        async def was_asked() -> bool:
            return bool(agent.model.asked)

        await eventually(was_asked)
        agent.process.send_signal(signal.SIGTERM)

        async def drains() -> bool:
            return (await agent.http.get("/readyz")).status_code == 503

        await eventually(drains)
        refused = await agent.http.post("/v1/chat/completions", json=request)
        hold.set()

        assert "it is." in (await asking).text
        assert refused.status_code == 503
        status, said = await agent.ended()
    assert status == 0, said
    assert "Traceback" not in said
    assert KEY not in said


async def test_what_runs_longer_than_the_drain_is_cut_off(tmp_path: Path) -> None:
    async with serving(tmp_path, talking(asyncio.Event()), BECKON_DRAIN_SECONDS="0") as agent:
        request = {"model": "beckon", "messages": [user("go")]}
        asking = asyncio.create_task(agent.http.post("/v1/chat/completions", json=request))

        async def was_asked() -> bool:
            return bool(agent.model.asked)

        await eventually(was_asked)
        agent.process.send_signal(signal.SIGINT)
        status, _ = await agent.ended()
        await asyncio.gather(asking, return_exceptions=True)

    assert status == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"BECKON_PORT": "many"}, "BECKON_PORT"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": f"{KEY}é"}, "OPENAI_API_KEY"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "BECKON_DIALECT": "klingon"}, "BECKON_DIALECT"),
        ({"BECKON_HOST": "203.0.113.1", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "BECKON_PORT"),
    ],
)
async def test_a_setting_that_cannot_be_is_one_clear_line(settings: dict[str, str], said: str) -> None:
    process = await start(**{"BECKON_PORT": "0", **settings})
    _, told = await asyncio.wait_for(process.communicate(), 20)
    lines = [line for line in told.decode().splitlines() if "beckon_agent: " in line]

    assert process.returncode == 2
    assert len(lines) == 1
    assert said in lines[0]
    assert KEY not in told.decode()
    assert "Traceback" not in told.decode()
