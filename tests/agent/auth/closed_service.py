"""An agent service with several agents that is closed: API keys in a file, and tokens of an issuer."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp

from beckon_agent.agents.folder import FolderSource
from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.a2a.push import PushSender, allow_push, push_session
from beckon_agent.api.a2a.server import write_notification
from beckon_agent.api.access import AuthMiddleware
from beckon_agent.app import RunStorage, build_app
from beckon_agent.auth.authentication import Authenticator, make_authenticator
from beckon_agent.auth.authorization import PermittedAgents
from beckon_agent.auth.options import AccessOptions, OidcOptions
from beckon_agent.auth.quotas import LimitedCaller, Quotas
from beckon_agent.core.run_types import Agent
from beckon_agent.core.run_types import Limits as RunLimits
from beckon_agent.durable.engine import RunEngine
from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_contract.fields import Fields, ReportProblem
from beckon_contract.resources.agent_terms import Terms, read_terms
from beckon_runtime.egress import AllowedHost
from tests.agent.auth.counters import CountersInMemory
from tests.agent.auth.issuer import AUDIENCE, Issuer
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import QUICK, Still
from tests.agent.scripted_model import KEY, ScriptedModel, scripted_model
from tests.patience import PATIENCE
from tests.serving import served

STORED_EVENTS = 500


def terms(**spec: Any) -> Terms:
    """Return terms as an Agent's spec says them."""
    report = ReportProblem()
    read = read_terms(Fields(spec, "spec", report))
    assert report.problems == []
    return read


class Several:
    """A registry of several agents, the first of which is the default one."""

    complete = True

    def __init__(self, agents: Sequence[AgentHandle]) -> None:
        self._agents = agents

    @property
    def default(self) -> str:
        return self._agents[0].name

    @property
    def tools(self) -> int:
        return len(self._agents[0].catalogue.current.tools)

    def find(self, name: str) -> AgentHandle | None:
        return next((agent for agent in self._agents if agent.name == name), None)

    def hosted(self) -> Sequence[AgentHandle]:
        return self._agents

    async def watch(self) -> None:
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class ClosedService:
    """The service, and a client that sends no credential of its own."""

    http: httpx.AsyncClient
    model: ScriptedModel
    registry: PermittedAgents
    service: Service
    store: Store
    app: FastAPI

    async def chat(self, agent: str, credential: str | None, **body: Any) -> httpx.Response:
        """Ask an agent a question."""
        request = {"model": agent, "messages": [{"role": "user", "content": "go"}], **body}
        return await self.http.post("/v1/chat/completions", json=request, headers=bearing(credential))

    async def models(self, credential: str | None) -> list[str]:
        """Return the agents that are listed."""
        response = await self.http.get("/v1/models", headers=bearing(credential))
        assert response.status_code == 200, response.text
        return [entry["id"] for entry in response.json()["data"]]

    async def tools(self, agent: str, credential: str | None) -> list[str]:
        """Return the tools that are listed."""
        response = await self.http.get("/tools", params={"agent": agent}, headers=bearing(credential))
        assert response.status_code == 200, response.text
        return [entry["name"] for entry in response.json()["tools"]]

    async def call(
        self, agent: str, tool: str, credential: str | None, **arguments: object
    ) -> httpx.Response:
        """Call a tool by hand."""
        return await self.http.post(
            f"/tools/{tool}", params={"agent": agent}, json=arguments, headers=bearing(credential)
        )


def bearing(credential: str | None) -> dict[str, str]:
    """Return the headers of a request with a credential."""
    return {} if credential is None else {"authorization": f"Bearer {credential}"}


def checking(issuer: Issuer | None, keys: Path | None, session: aiohttp.ClientSession) -> Authenticator:
    """Return what checks API keys of a file and tokens of an issuer."""
    oidc = None if issuer is None else OidcOptions(issuer=issuer.url, audiences=(AUDIENCE,))
    return make_authenticator(AccessOptions(host="0.0.0.0", keys_file=keys, oidc=oidc), session)


@asynccontextmanager
async def closed_service(
    platform: EventPlatform,
    agents: Mapping[str, Terms],
    checks: Authenticator,
    *,
    deny_by_default: bool = False,
    counters: CountersInMemory | None = None,
    max_request_bytes: int = 100_000,
    push_hosts: Sequence[AllowedHost] = (),
) -> AsyncIterator[ClosedService]:
    """Serve agents with these terms over the tools of the platform."""
    async with (
        scripted_model() as model,
        ModelClient(model.base_url, KEY, "m", patience=QUICK) as client,
        aiohttp.ClientSession() as session,
        push_session(allow_push(push_hosts)) as pushing,
    ):
        limits = RunLimits(call_timeout=10)
        made = [Agent(name, "default", "You are a test.", limits, shown) for name, shown in agents.items()]
        source = FolderSource([platform.folder], made[0].source)
        tools = Still(source.current, source)
        hosted = [
            AgentHandle(
                agent.name,
                agent,
                DialectModel(client, "native"),
                tools,
                event_types=lambda: source.event_types,
            )
            for agent in made
        ]
        registry = PermittedAgents(Several(hosted), deny_by_default=deny_by_default)
        store = await open_store("sqlite://")
        shared = Quotas(counters or store.counters)
        caller = LimitedCaller(Dispatcher(session, platform.shim), shared)
        service = Service(registry, caller, Metrics(), max_runs=64, limits=shared)
        allowed = allow_push(push_hosts)
        push = PushSender(store, pushing, allowed, write_notification) if push_hosts else None
        storage = RunStorage(store, RunEngine(store, service, "test"), stored_events=STORED_EVENTS, push=push)
        inner: list[ASGIApp] = []

        def check_access(app: ASGIApp) -> AuthMiddleware:
            inner.append(app)
            return AuthMiddleware(app, checks)

        app = build_app(service, check_access, max_request_bytes=max_request_bytes, storage=storage)
        assert isinstance(inner[0], FastAPI)
        async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
            yield ClosedService(http, model, registry, service, store, inner[0])
        await store.aclose()
