"""An agent that answers events over real HTTP, with a scripted model behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
import httpx
import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_agent.agents.folder import FolderSource
from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.api.events.request import EventRules
from beckon_agent.api.events.routes import make_router
from beckon_agent.api.http.errors import problem_response
from beckon_agent.api.http.middleware import BodyLimit
from beckon_agent.api.http.streaming import ClientGone
from beckon_agent.core.records import StoredRun
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary, to_structured
from beckon_runtime.problem import ProblemError
from tests.agent.events.memory_engine import MemoryEngine
from tests.agent.running_agent import QUICK, Still
from tests.agent.scripted_model import (
    KEY,
    ReceivedRequest,
    Reply,
    Script,
    ScriptedModel,
    says,
    scripted_model,
)
from tests.patience import PATIENCE
from tests.serving import served

MakeEngine = Callable[[Service], AbstractAsyncContextManager[Engine]]
CLOSED = "http://127.0.0.1:9"
SOURCE = "/beckon/agents/default/researcher"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a test may choose of the agent."""

    limits: Limits = field(default_factory=lambda: Limits(call_timeout=10))
    rules: EventRules = field(default_factory=EventRules)
    max_runs: int = 16
    max_bytes: int = 100_000
    engine: MakeEngine = MemoryEngine
    shim: str = CLOSED
    folder: Path | None = None


@dataclass(slots=True)
class AnsweringAgent:
    """The agent `researcher`, at `url`.

    `asks` are the runs that began, `deliveries` the paths of all requests.
    """

    url: str
    model: ScriptedModel
    http: httpx.AsyncClient
    asks: list[Ask]
    deliveries: list[str]

    @property
    def requests(self) -> list[ReceivedRequest]:
        return self.model.requests

    async def send(
        self,
        event: CloudEvent,
        to: str = "/events",
        *,
        structured: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """POST an event, as a Broker would."""
        written, body = to_structured(event) if structured else to_binary(event)
        return await self.http.post(to, content=body, headers={**dict(written), **(headers or {})})

    async def reply(self, event: CloudEvent, *, structured: bool = False) -> CloudEvent:
        """POST an event and return the reply to it."""
        response = await self.send(event, structured=structured)
        assert response.status_code == 200, response.text
        return from_http(response.headers.raw, response.content)


def asking(question: str = "Why?", name: str = "e1", **extensions: str | int) -> CloudEvent:
    """Return the call of an agent that asks something and waits for the answer."""
    return event({"question": question}, name).extended(correlationid="token-1", **extensions)


def event(data: object, name: str = "e1", **extensions: str | int) -> CloudEvent:
    """Return an event with JSON data, for which no one waits."""
    written = orjson.dumps(data)
    return CloudEvent(name, "/front", "ask.researcher", written, "application/json", extensions=extensions)


def held() -> tuple[Reply, asyncio.Event]:
    """Return an answer that does not end before the event is set."""
    gate = asyncio.Event()
    return replace(says("At", " last."), holds=gate), gate


def problem(response: httpx.Response, status: int) -> str:
    """Return the detail of a problem document that may become a dead letter."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert len(response.content) <= 512
    detail: str = response.json()["detail"]
    return detail


@asynccontextmanager
async def answering_agent(*script: Script, setup: Setup | None = None) -> AsyncIterator[AnsweringAgent]:
    """Serve the agent until the end of the block; its model follows the script."""
    chosen = setup or Setup()
    async with (
        scripted_model(*script) as model,
        ModelClient(model.base_url, KEY, "m", patience=QUICK) as client,
        aiohttp.ClientSession() as session,
    ):
        agent = Agent("researcher", "default", "You are a test.", chosen.limits)
        tools = FolderSource([chosen.folder], agent.source).current if chosen.folder else Catalogue({})
        hosted = AgentHandle(agent.name, agent, DialectModel(client, "native"), Still(tools))
        registry = SingleAgent(hosted, asyncio.Event().wait)
        service = Service(registry, ToolCaller(Dispatcher(session, chosen.shim)), Metrics(), chosen.max_runs)
        asks: list[Ask] = []
        deliveries: list[str] = []
        async with chosen.engine(service) as engine:
            app = _noted(_app(service, _Noting(engine, asks), chosen), deliveries)
            async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
                yield AnsweringAgent(url, model, http, asks, deliveries)


class _Noting:
    """An engine that notes what it starts."""

    def __init__(self, engine: Engine, asks: list[Ask]) -> None:
        self._asks = asks
        self._start = engine.start
        self.follow, self.get = engine.follow, engine.get
        self.cancel, self.delete, self.decide_call = engine.cancel, engine.delete, engine.decide_call
        self.answer_input = engine.answer_input

    async def start(self, ask: Ask) -> StoredRun:
        run = await self._start(ask)
        self._asks.append(ask)
        return run


def _noted(app: ASGIApp, paths: list[str]) -> ASGIApp:
    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            paths.append(scope["path"])
        await app(scope, receive, send)

    return noting


def _app(service: Service, engine: Engine, chosen: Setup) -> FastAPI:
    app = FastAPI()
    app.router.routes.extend(make_router(service, engine, chosen.rules).routes)
    app.add_middleware(BodyLimit, limit=chosen.max_bytes)

    @app.exception_handler(ProblemError)
    async def problem_error(_: Request, error: ProblemError) -> Response:
        return problem_response(error.problem)

    @app.exception_handler(ClientGone)
    async def client_gone(_: Request, __: ClientGone) -> Response:
        return Response(status_code=499)

    return app
