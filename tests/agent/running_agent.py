"""A real agent over HTTP in a test's loop, with a scripted model and an event platform behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import httpx
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from beckon_agent.agents.folder import FolderSource
from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.api.access import AuthMiddleware
from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.api.mcp.server import McpSettings
from beckon_agent.app import build_app
from beckon_agent.auth.authentication import Authenticator
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.model.client import ModelClient
from beckon_agent.model.transport import Patience
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_agent.tools.explain import Explanation
from beckon_agent.tools.select import FittingTools
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.resources.agent_resource import TextCalls
from beckon_runtime.origins import OriginPolicy
from tests.agent.scripted_model import KEY, ReceivedRequest, Script, ScriptedModel, scripted_model
from tests.patience import PATIENCE
from tests.serving import served

QUICK = Patience(attempts=1)


def open_door(app: ASGIApp) -> ASGIApp:
    """Admit every client of this machine, as a service on loopback without keys does."""
    return AuthMiddleware(app, Authenticator(anonymous=True))


@dataclass(frozen=True, slots=True)
class Setup:
    """What a test may choose of an agent."""

    limits: Limits = field(default_factory=lambda: Limits(call_timeout=10))
    pace: StreamPace = field(default_factory=StreamPace)
    dialect: str = "native"
    text_calls: TextCalls = "own"
    model: str = "m"
    max_runs: int = 16
    max_request_bytes: int = 200_000
    pinned: tuple[str, ...] = ()
    origins: OriginPolicy = field(default_factory=OriginPolicy)


class Still:
    """A catalogue as a folder says it at the start: most tests change nothing."""

    def __init__(self, current: Catalogue, source: FolderSource | None = None) -> None:
        self.current = current
        self._source = source

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what the folder that it was read from says."""
        return self._source.explain(namespace, event_type) if self._source else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole chat completion, however it came."""

    text: str
    reasoning: str
    finish_reason: str
    usage: dict[str, int] | None
    events: list[dict[str, Any]]

    @property
    def finished(self) -> list[dict[str, Any]]:
        """The calls that ended, in the order in which they did."""
        return [event for event in self.events if event["type"] == "call.finished"]

    @property
    def error(self) -> dict[str, Any]:
        """The error of the only call."""
        (event,) = self.finished
        assert event["failed"], event
        found: dict[str, Any] = event["result"]["error"]
        return found


@dataclass(slots=True)
class RunningAgent:
    """An agent that serves; `requests` are those to its model."""

    url: str
    service: Service
    catalogue: Still
    model: ScriptedModel
    http: httpx.AsyncClient

    @property
    def requests(self) -> list[ReceivedRequest]:
        return self.model.requests

    async def post(self, **body: Any) -> httpx.Response:
        """Ask a question, or whatever the body says instead."""
        request = {"model": "beckon", "messages": [user("go")], **body}
        return await self.http.post("/v1/chat/completions", json=request)

    async def ask(self, *messages: dict[str, Any], **body: Any) -> Answer:
        """Return the whole answer to a conversation, by default one question."""
        request = {"messages": list(messages) or [user("go")], "beckon": {"events": True}, **body}
        response = await self.post(**request)
        assert response.status_code == 200, response.text
        return whole(response.json())

    async def ask_streaming(self, *messages: dict[str, Any], **body: Any) -> Answer:
        """Return the same from a stream."""
        request = {"messages": list(messages) or [user("go")], "beckon": {"events": True}, **body}
        response = await self.post(stream=True, stream_options={"include_usage": True}, **request)
        assert response.status_code == 200, response.text
        return gathered(payloads(response.text))

    async def metric(self, name: str, **labels: str) -> float:
        """Return a number of the agent's, 0 where it is not there."""
        text = (await self.http.get("/metrics")).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"beckon_agent_{name}" and labels.items() <= sample.labels.items()
        )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def payloads(text: str) -> list[dict[str, Any]]:
    """Return the chunks of a stream that came to its end."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", text
    return [json.loads(line) for line in lines[:-1]]


def whole(document: dict[str, Any]) -> Answer:
    choice = document["choices"][0]
    message = choice["message"]
    events = document.get("beckon", {}).get("events", [])
    return Answer(
        message["content"],
        message.get("reasoning_content", ""),
        choice["finish_reason"],
        document["usage"],
        events,
    )


def gathered(chunks: list[dict[str, Any]]) -> Answer:
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    deltas = [choice["delta"] for choice in choices]
    (finish,) = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return Answer(
        "".join(delta.get("content", "") for delta in deltas),
        "".join(delta.get("reasoning_content", "") for delta in deltas),
        finish,
        chunks[-1]["usage"],
        [chunk["beckon"] for chunk in chunks if "beckon" in chunk],
    )


@asynccontextmanager
async def running_agent(
    shim: str, folder: Path, *script: Script, setup: Setup | None = None
) -> AsyncIterator[RunningAgent]:
    """Serve an agent over the manifests of a folder; its model follows the script."""
    chosen = setup or Setup()
    async with (
        scripted_model(*script) as model,
        ModelClient(model.base_url, KEY, chosen.model, patience=QUICK) as client,
        aiohttp.ClientSession() as session,
    ):
        agent = Agent("beckon", "default", "You are a test.", chosen.limits)
        source = FolderSource([folder], agent.source)
        catalogue = Still(source.current, source)
        service = Service(
            registry=SingleAgent(
                AgentHandle(
                    agent.name,
                    agent,
                    DialectModel(client, chosen.dialect, chosen.text_calls),
                    catalogue,
                    chooser=FittingTools(chosen.pinned),
                ),
                asyncio.Event().wait,
            ),
            caller=ToolCaller(Dispatcher(session, shim)),
            metrics=Metrics(),
            max_runs=chosen.max_runs,
        )
        app = build_app(
            service,
            open_door,
            max_request_bytes=chosen.max_request_bytes,
            pace=chosen.pace,
            mcp=McpSettings(chosen.origins, chosen.max_request_bytes),
        )
        async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
            yield RunningAgent(url, service, catalogue, model, http)
