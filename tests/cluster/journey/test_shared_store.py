"""Replicas share a PostgreSQL: the run of a killed pod goes on in another one, its calls made once."""

import asyncio
import json
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
import httpx
import pytest

from tests.agent.store.postgres import Server, server
from tests.cluster.kube import Kube, until
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, Platform
from tests.cluster.pod_tool import PodTool, offered

pytestmark = pytest.mark.timeout(600)

NAME = "ponder"
PASSWORD = secrets.token_hex(16)
PARAMETERS = '{"topic": {"type": "string"}, "required": ["topic"]}'
# Counts what it really did, and takes long enough for its caller to be killed meanwhile.
SOURCE = """
import asyncio
from beckon_tools import tool

done = []


@tool(type="ponder")
async def ponder(topic: str) -> dict[str, object]:
    \"\"\"Ponder a topic for a while.\"\"\"
    done.append(topic)
    print("pondering", topic, flush=True)
    await asyncio.sleep(6)
    return {"topic": topic, "pondered": len(done)}
"""


@pytest.fixture(scope="module")
def database(kube: Kube) -> Iterator[str]:
    """The address of a database that pods can reach; on this machine, so the cluster must be as well."""
    if places().kubeconfig != kube.kubeconfig:
        pytest.skip("pods of somebody else's cluster do not reach a database on this machine")
    node = kube.get("nodes")["items"][0]["status"]["addresses"]
    address = next(one["address"] for one in node if one["type"] == "InternalIP")
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    with server(address, port) as running:
        asyncio.run(let_in(running))
        yield f"postgresql://pods:{PASSWORD}@{address}:{port}/runs"


async def let_in(running: Server) -> None:
    await running.copy("runs")
    connection = await asyncpg.connect(running.url("postgres"))
    try:
        await connection.execute(f"CREATE ROLE pods LOGIN PASSWORD '{PASSWORD}'")
        await connection.execute("ALTER DATABASE runs OWNER TO pods")
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def stored(platform: Platform, database: str) -> Iterator[Platform]:
    """The installed platform, its agents with a store that they share."""
    kube = platform.kube.within(NAMESPACE)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "runs"},
        "stringData": {"store": database},
    }
    kube.apply(json.dumps(secret))
    kube.run("set", "env", "deployment/beckon-agent", "--from=secret/runs", "--prefix=BECKON_")
    try:
        rolled_out(kube)
        platform.forward.close()  # it leads to a pod that has gone
        yield platform
    finally:
        kube.run("set", "env", "deployment/beckon-agent", "BECKON_STORE-")
        rolled_out(kube)
        platform.forward.close()
        kube.run("delete", "secret", "runs")


def rolled_out(kube: Kube) -> None:
    kube.run("rollout", "status", "deployment/beckon-agent", "--timeout=180s", timeout=200)
    # Pods that end are still behind the port-forward of a moment ago.
    until(lambda: len(agents(kube)) == 2, within=120, what="two agents and no more")


def agents(kube: Kube) -> list[str]:
    found = kube.get("pods", "--selector=app.kubernetes.io/component=agent")["items"]
    return [pod["metadata"]["name"] for pod in found]


@pytest.fixture
def pondering(stored: Platform) -> Iterator[Platform]:
    """A tool that takes its time, in one pod."""
    with offered(stored, PodTool(NAME, SOURCE, PARAMETERS)):
        yield stored


def test_a_run_whose_pod_is_killed_is_finished_by_another_one(pondering: Platform) -> None:
    kube = pondering.kube.within(NAMESPACE)
    asked = post(pondering, {"model": "beckon", "input": "Use ponder: topic is rivers", "background": True})
    until(lambda: called(kube), within=60, what="the call at the tool")
    began = time.monotonic()

    kube.run("delete", "pods", "--selector=app.kubernetes.io/component=agent", "--force", "--grace-period=0")

    rolled_out(kube)
    done = until(lambda: over(pondering, asked["id"]), within=120, what="the end of the run")
    assert done is not None
    sys.stdout.write(f"from the end of its pod to the answer: {time.monotonic() - began:.1f} s\n")
    assert done["status"] == "completed", done
    (call,) = [item for item in done["output"] if item["type"] == "mcp_call"]
    assert json.loads(call["output"]) == {"topic": "rivers", "pondered": 1}
    assert "rivers" in done["output"][-1]["content"][0]["text"]


def called(kube: Kube) -> bool:
    """Whether the tool has been called: its pod says so in its log."""
    return "pondering" in kube.within("default").attempt("logs", f"deployment/{NAME}", "--tail=5").stdout


def over(platform: Platform, response: str) -> dict[str, Any] | None:
    """Return a response once it is over; while pods are exchanged nobody may answer."""
    try:
        answer = httpx.get(f"{platform.url}/v1/responses/{response}", headers=platform.headers, timeout=10)
    except (httpx.HTTPError, AssertionError):
        return None
    found: dict[str, Any] = answer.json()
    return found if answer.status_code == 200 and found["status"] not in ("queued", "in_progress") else None


def post(platform: Platform, body: dict[str, object]) -> dict[str, Any]:
    answer = httpx.post(f"{platform.url}/v1/responses", json=body, headers=platform.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
