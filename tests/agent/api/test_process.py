"""The agent as a process of its own: settings, signals, and a stop that loses no answer."""

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from tests.agent.agent_process import run_to_end, serving
from tests.agent.running_agent import user
from tests.agent.scripted_model import KEY, Reply, chunk, says, sse
from tests.certified import Certified
from tests.e2e.local_platform import port_range
from tests.patience import PATIENCE, eventually


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

        async def was_requested() -> bool:
            return bool(agent.model.requests)

        await eventually(was_requested)
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

        async def was_requested() -> bool:
            return bool(agent.model.requests)

        await eventually(was_requested)
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
    ended = await run_to_end(**{"BECKON_PORT": "0", **settings})
    lines = [line for line in ended.stderr.splitlines() if "beckon_agent: " in line]

    assert ended.returncode == 2
    assert len(lines) == 1
    assert said in lines[0]
    assert KEY not in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_https_is_served_beside_http_and_ends_with_it(tmp_path: Path) -> None:
    certified = Certified.issue(tmp_path)
    port = str(port_range())
    settings = {"BECKON_TLS_FOLDER": str(tmp_path), "BECKON_TLS_PORT": port}
    request = {"model": "beckon", "messages": [user("go")]}
    async with (
        serving(tmp_path / "none", says("Yes."), **settings) as agent,
        httpx.AsyncClient(
            base_url=f"https://localhost:{port}", verify=certified.trust, timeout=PATIENCE
        ) as secure,
    ):
        answer = await secure.post("/v1/chat/completions", json=request)
        card = (await secure.get("/.well-known/agent-card.json")).json()
        agent.process.send_signal(signal.SIGTERM)
        status, said = await agent.ended()

    assert answer.json()["choices"][0]["message"]["content"] == "Yes."
    assert card["supportedInterfaces"][0]["url"].startswith(f"https://localhost:{port}/")
    assert status == 0, said


async def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    ended = await run_to_end(
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",
        BECKON_TLS_FOLDER=str(tmp_path),
        BECKON_TLS_PORT=str(port_range()),
    )

    assert ended.returncode == 2
    assert ended.stderr.endswith(
        f"beckon_agent: BECKON_TLS_FOLDER: {tmp_path}/tls.crt: No such file or directory\n"
    )
