"""A PostgreSQL of this machine as the store of the installed agents, and their runs over HTTP."""

import asyncio
import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
import httpx
import pytest

from tests.agent.store.postgres import Server, server
from tests.cluster.kube import Kube, until
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, Platform

_DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'runs'"

PASSWORD = secrets.token_hex(16)


@dataclass(frozen=True)
class Database:
    """A database that pods reach at `url`."""

    server: Server
    url: str

    async def let_in(self) -> None:
        """Make it, with the account of the pods."""
        await self.server.copy("runs")
        account = f"CREATE ROLE pods LOGIN PASSWORD '{PASSWORD}'"
        await self._execute(account, "ALTER DATABASE runs OWNER TO pods")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let no agent reach it until the end of the block."""
        asyncio.run(self._execute("ALTER DATABASE runs ALLOW_CONNECTIONS false", _DISCONNECT))
        try:
            yield
        finally:
            asyncio.run(self._execute("ALTER DATABASE runs ALLOW_CONNECTIONS true"))

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.server.url("postgres"))
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


@pytest.fixture(scope="module")
def database(kube: Kube) -> Iterator[Database]:
    """A database on this machine, so the cluster must be here as well."""
    if places().kubeconfig != kube.kubeconfig:
        pytest.skip("pods of a cluster elsewhere do not reach a database on this machine")
    node = kube.list_objects("nodes")[0]["status"]["addresses"]
    address = next(one["address"] for one in node if one["type"] == "InternalIP")
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    with server(address, port) as running:
        found = Database(running, f"postgresql://pods:{PASSWORD}@{address}:{port}/runs")
        asyncio.run(found.let_in())
        yield found


@pytest.fixture(scope="module")
def stored(platform: Platform, database: Database) -> Iterator[Platform]:
    """The installed platform, its agents with a store that they share."""
    kube = platform.kube.within(NAMESPACE)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "runs"},
        "stringData": {"store": database.url},
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
    found = kube.list_objects("pods", "app.kubernetes.io/component=agent")
    return [pod["metadata"]["name"] for pod in found]


def over(platform: Platform, response: str) -> dict[str, Any] | None:
    """Return a response once it is over; while pods are exchanged no one may answer."""
    try:
        answer = httpx.get(f"{platform.url}/v1/responses/{response}", headers=platform.headers, timeout=10)
    except (httpx.HTTPError, AssertionError):
        return None
    found: dict[str, Any] = answer.json()
    return found if answer.status_code == 200 and found["status"] not in ("queued", "in_progress") else None


def post(platform: Platform, body: dict[str, object]) -> dict[str, Any]:
    body = {"include": ["mcp_call"], **body}
    answer = httpx.post(f"{platform.url}/v1/responses", json=body, headers=platform.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
