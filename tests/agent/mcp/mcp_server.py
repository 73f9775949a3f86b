"""An agent's MCP face over HTTP in a test's loop, and the two kinds of clients that it has."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx
from fastapi import FastAPI
from mcp import Client
from starlette.types import ASGIApp

from beckon_agent.agents.folder import FolderSource
from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.api.http.middleware import BodyLimit, RequestIds
from beckon_agent.api.mcp.server import McpFace, McpSettings, mount_mcp
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_contract.knative.eventtypes import EventType
from tests.agent.conftest import CLOSED
from tests.agent.running_agent import Still
from tests.patience import PATIENCE
from tests.serving import served

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
BODY_LIMIT = 200_000
_META = "io.modelcontextprotocol"


@dataclass(slots=True)
class McpServer:
    """A face that serves; `catalogue` is what its agent offers now."""

    url: str
    service: Service
    face: McpFace
    catalogue: Still
    http: httpx.AsyncClient

    def client(self, mode: str, path: str = "/mcp", **more: Any) -> Client:
        """Return the SDK's client of one revision, or of either that the server knows (`auto`)."""
        chosen = "legacy" if mode == LEGACY else mode
        return Client(f"{self.url}{path}", mode=chosen, **more)

    async def legacy(self, method: str, path: str = "/mcp", **params: Any) -> dict[str, Any]:
        """Return the answer to a request of the revision 2025-11-25."""
        headers = {"accept": ACCEPT, "mcp-protocol-version": LEGACY}
        response = await self.http.post(path, json=request(method, params), headers=headers)
        assert response.status_code == 200, response.text
        (data,) = [line for line in response.text.splitlines() if line.startswith("data: ")]
        answer: dict[str, Any] = json.loads(data.removeprefix("data: "))
        return answer

    async def modern(self, method: str, path: str = "/mcp", **params: Any) -> httpx.Response:
        """Return the answer to a request of the revision 2026-07-28, however it came."""
        return await self.http.post(path, json=enveloped(method, params), headers=routing(method, params))


def request(method: str, params: Mapping[str, Any], request_id: int | str = 1) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params)}


def enveloped(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC request that says of itself what the revision 2026-07-28 wants to know."""
    meta = {f"{_META}/protocolVersion": MODERN, f"{_META}/clientCapabilities": {}, **params.get("_meta", {})}
    return request(method, {**params, "_meta": meta})


def routing(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that repeat what a gateway may want to know."""
    named = params.get("name") or params.get("taskId")
    name = {"mcp-name": named} if named else {}
    return {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": method, **name}


@asynccontextmanager
async def mcp_server(
    shim: str,
    folder: Path,
    settings: McpSettings | None = None,
    *,
    max_runs: int = 16,
    publish_prompt: bool = False,
    event_types: Sequence[EventType] = (),
    middleware: Callable[[ASGIApp], ASGIApp] = RequestIds,
) -> AsyncIterator[McpServer]:
    """Serve the tools of a folder, with `middleware` in front; no model gets a request."""
    agent = Agent(
        "beckon", "default", "You are a test.", Limits(call_timeout=10), publish_prompt=publish_prompt
    )
    catalogue = Still(FolderSource([folder], agent.source).current)
    async with ModelClient(CLOSED, "", "m") as client, aiohttp.ClientSession() as session:
        hosted = AgentHandle(
            agent.name, agent, DialectModel(client, "native"), catalogue, event_types=lambda: event_types
        )
        service = Service(
            registry=SingleAgent(hosted, asyncio.Event().wait),
            caller=ToolCaller(Dispatcher(session, shim)),
            metrics=Metrics(),
            max_runs=max_runs,
        )
        face: McpFace | None = None

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            assert face is not None
            async with face.serve_sessions():
                yield

        app = FastAPI(lifespan=lifespan)
        face = mount_mcp(app, service, settings or McpSettings())
        app.add_middleware(BodyLimit, limit=BODY_LIMIT)
        async with served(middleware(app)) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
            yield McpServer(url, service, face, catalogue, http)
