"""The agent service in a cluster as a process of its own: its settings, its start, its stop."""

import asyncio
import json
import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.agent.agent_process import run_to_end, start
from tests.agent.cluster_objects import agent, tool
from tests.agent.model_server import model_server
from tests.agent.running_agent import user
from tests.agent.scripted_model import KEY
from tests.e2e.local_platform import ROOT
from tests.patience import PATIENCE, eventually
from tests.sources.api_server import api_server


async def test_a_process_serves_the_agents_of_its_namespaces_and_stops_when_stopped(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with api_server() as server, model_server() as model:
        await server.put("tools", tool("a.tool"))
        await server.put("agents", agent("helper", systemPrompt="From a resource."))
        process = await start(
            BECKON_PORT=str(unused_tcp_port),
            BECKON_NAMESPACES="default, team-a",
            KUBECONFIG=str(server.kubeconfig(tmp_path)),
            OPENAI_BASE_URL=model.url,
            OPENAI_API_KEY=KEY,
        )
        url = f"http://127.0.0.1:{unused_tcp_port}"
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:

            async def ready() -> bool:
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.TransportError:
                    return process.returncode is not None

            try:
                await eventually(ready, 20)
                request = {"model": "helper", "messages": [user("go")]}
                answer = (await http.post("/v1/chat/completions", json=request)).json()
            finally:
                process.send_signal(signal.SIGTERM)
                _, said = await asyncio.wait_for(process.communicate(), PATIENCE)

    shown = json.loads(answer["choices"][0]["message"]["content"])
    assert shown == {"model": "m", "system": "From a resource.", "tools": ["a_tool"]}
    assert process.returncode == 0, said
    assert {path.split("/")[5] for path in server.lists} == {"default", "team-a"}
    assert KEY not in said.decode()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"BECKON_NAMESPACES": "default,Team_A"}, "BECKON_NAMESPACES: 'Team_A' is no namespace"),
        (
            {"BECKON_NAMESPACES": "team-a"},
            "the namespace 'default' that BECKON_AGENT_NAMESPACE names is not among",
        ),
        ({"BECKON_NAMESPACES": "*", "KUBECONFIG": "/nowhere"}, "cannot follow BECKON_NAMESPACES:"),
        ({"BECKON_NAMESPACES": "*"}, "run in a Pod, or set KUBECONFIG to a kubeconfig"),
    ],
    ids=["name", "own", "kubeconfig", "no-pod"],
)
async def test_a_wrong_setting_is_reported_in_one_line(settings: dict[str, str], said: str) -> None:
    ended = await run_to_end(BECKON_PORT="0", **settings)
    lines = ended.stderr.splitlines()

    assert ended.returncode == 2
    assert said in lines[-1]
    assert lines[-1].startswith("beckon_agent: ")
    assert "Traceback" not in ended.stderr


async def test_without_the_client_of_the_api_server_it_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['kubernetes'] = None")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    process = await start(BECKON_PORT="0", BECKON_NAMESPACES="default", KUBECONFIG="/any", PYTHONPATH=path)
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 2
    assert "a kubeconfig takes the Python package kubernetes, which `make setup` installs" in said.decode()
    assert "Traceback" not in said.decode()


async def test_a_model_that_cannot_be_used_is_reported_in_one_line(tmp_path: Path) -> None:
    async with api_server() as server:
        ended = await run_to_end(
            BECKON_PORT="0",
            BECKON_NAMESPACES="default",
            KUBECONFIG=str(server.kubeconfig(tmp_path)),
            OPENAI_BASE_URL="localhost:11434",
        )

    assert ended.returncode == 2
    assert "OPENAI_BASE_URL" in ended.stderr.splitlines()[-1]
