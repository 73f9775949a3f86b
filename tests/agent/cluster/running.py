"""An agent service as in a cluster, in a test's loop: the small API server, its Agents, and its faces."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx

from beckon_agent.agents.configured import ConfiguredAgent
from beckon_agent.agents.kubernetes import Cluster, Periods
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.app import build_app
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from tests.agent.many_agents import ManyAgents
from tests.agent.running_agent import open_door
from tests.agent.scripted_model import KEY
from tests.patience import PATIENCE, eventually
from tests.serving import served
from tests.sources.api_server import ApiServer

OWN_PROMPT = "You are the service's own."


@dataclass(slots=True)
class RunningCluster(ManyAgents):
    """An agent service that serves the Agents of an API server."""

    server: ApiServer
    service: Service
    cluster: Cluster

    async def status(self, name: str, /, namespace: str = "default", **conditions: str) -> dict[str, Any]:
        """Wait until the conditions of an Agent have these reasons, and return its status."""
        found: dict[str, Any] = {}

        async def as_wanted() -> bool:
            found.clear()
            found.update(self.server.status(name, namespace))
            reasons = {one["type"]: one["reason"] for one in found.get("conditions", [])}
            return bool(reasons) and conditions.items() <= reasons.items()

        await eventually(as_wanted)
        return found


@asynccontextmanager
async def running_cluster(
    server: ApiServer,
    folder: Path,
    model: str,
    *namespaces: str | None,
    key: str = KEY,
    periods: Periods | None = None,
    shim: str = "http://127.0.0.1:9",
    with_events: bool = False,
) -> AsyncIterator[RunningCluster]:
    """Serve; `model` is the base URL of the service's own model server."""
    api = server.client()
    agent = Agent("beckon", "default", OWN_PROMPT, Limits(steps=3, seconds=20, call_timeout=5))
    metrics = Metrics()
    async with api, aiohttp.ClientSession() as session:
        own = ConfiguredAgent(agent, ModelSpec(model, "m" if model else "", "native", key))
        cluster = Cluster(
            api,
            own,
            namespaces or ("default", "team-a"),
            periods or Periods(keys=0.1, answering=0.05),
            with_events=with_events,
        )
        metrics.follow_connection(lambda: cluster.is_connected, lambda: cluster.age)
        service = Service(cluster, ToolCaller(Dispatcher(session, shim), cluster), metrics, max_runs=16)
        app = build_app(service, open_door, max_request_bytes=200_000)
        try:
            async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
                yield RunningCluster(http, server, service, cluster)
        finally:
            await cluster.close()
