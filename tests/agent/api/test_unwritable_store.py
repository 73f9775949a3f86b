"""An agent whose store cannot be written is not ready, says why, and does what needs no store."""

import os
import resource
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx

from tests.agent.agent_process import AgentProcess, serving
from tests.agent.running_agent import user
from tests.agent.scripted_model import says
from tests.agent.store.postgres import server
from tests.agent.store.test_health import locked
from tests.patience import eventually


def let_files_grow_to(agent: AgentProcess, size: int) -> None:
    """Let a running process write files up to a size alone, as on a disk that is full."""
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def chat(agent: AgentProcess, *, store: bool) -> httpx.Response:
    body = {"model": "beckon", "messages": [user("go")], "store": store}
    return await agent.http.post("/v1/chat/completions", json=body)


async def unready(agent: AgentProcess) -> dict[str, str]:
    """Wait until the agent is not ready because of its store, and return its state."""

    async def is_unready() -> bool:
        return (await agent.http.get("/readyz")).status_code == 503

    await eventually(is_unready)
    state: dict[str, str] = (await agent.http.get("/readyz")).json()
    assert state["status"] == "store_unavailable"
    assert "not stored are answered" in state["detail"]
    return state


async def ready(agent: AgentProcess) -> None:
    """Wait until the agent is ready."""

    async def is_ready() -> bool:
        return (await agent.http.get("/readyz")).status_code == 200

    await eventually(is_ready)


async def test_a_full_disk_is_reported_and_chats_that_are_not_stored_go_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with serving(tmp_path, *[says("hello")] * 3, BECKON_STORE=f"sqlite:///{path}") as agent:
        with closing(sqlite3.connect(path)) as other:  # so that the log is empty, and has to grow
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let_files_grow_to(agent, 1)
        state = await unready(agent)
        unstored = await chat(agent, store=False)
        refused = [
            await chat(agent, store=True),
            await agent.http.post("/v1/responses", json={"model": "beckon", "input": "go"}),
            await agent.http.post("/v1/conversations", json={}),
        ]
        let_files_grow_to(agent, resource.RLIM_INFINITY)
        await ready(agent)
        stored = await chat(agent, store=True)

    assert "disk may be full" in state["detail"]
    assert str(path) not in str(state)
    assert (unstored.status_code, stored.status_code) == (200, 200)
    for answer in refused:
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) >= 1
        assert "not stored" in answer.json()["error"]["message"]


async def test_a_locked_store_is_reported_and_unstored_chats_go_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with serving(tmp_path, *[says("hello")] * 2, BECKON_STORE=url) as agent:
        async with locked(url):
            state = await unready(agent)
            unstored = await chat(agent, store=False)
        await ready(agent)
        stored = await chat(agent, store=True)

    assert "may be locked" in state["detail"]
    assert (unstored.status_code, stored.status_code) == (200, 200)


async def test_an_unreachable_store_is_reported_and_unstored_chats_go_on(tmp_path: Path) -> None:
    with server() as running:
        url = await running.copy("unreachable")
        async with serving(tmp_path, *[says("hello")] * 2, BECKON_STORE=url) as agent:
            stored = await chat(agent, store=True)
            postmaster = int((running.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
            os.kill(postmaster, signal.SIGQUIT)  # as `pg_ctl stop -m immediate`
            state = await unready(agent)
            unstored = await chat(agent, store=False)
            refused = await chat(agent, store=True)

    assert "cannot be reached" in state["detail"]
    assert (stored.status_code, unstored.status_code, refused.status_code) == (200, 200, 503)
