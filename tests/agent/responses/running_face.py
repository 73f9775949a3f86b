"""The face in front of a real engine, store and agent, over HTTP, every answer held to the API's types."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.api.responses.routes import make_router
from beckon_agent.api.runs import routes
from beckon_agent.api.runs import routes as runs
from beckon_agent.app import _add_error_handlers
from beckon_agent.durable.base import Engine
from beckon_agent.durable.engine import EnginePace as Beat
from beckon_agent.durable.engine import RunEngine
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.callers import CallerByHeader
from tests.agent.running_agent import RunningAgent
from tests.patience import PATIENCE, eventually
from tests.serving import served

QUICK = Beat(hold=2, beat=0.2, look=0.05)
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunningFace:
    """The face under test."""

    agent: RunningAgent
    engine: RunEngine
    store: Store
    http: httpx.AsyncClient
    openai: AsyncOpenAI

    async def post(self, given: object = "go", **body: Any) -> httpx.Response:
        """Ask for a response, with OpenAI's items unless the body says otherwise."""
        body = {"include": ["mcp_call"], **body}
        return await self.http.post("/v1/responses", json={"model": "beckon", "input": given, **body})

    async def ask(self, given: object = "go", **body: Any) -> Event:
        """Return a whole response, which is valid."""
        return valid(await self.post(given, **body))

    async def get(self, response_id: str) -> Event:
        """Return a response that is stored."""
        return valid(await self.http.get(f"/v1/responses/{response_id}"))

    async def stream(self, given: object = "go", **body: Any) -> list[Event]:
        """Return all events of a response, which are valid."""
        return events_of(await self.post(given, stream=True, **body))

    async def join(self, response_id: str, **query: Any) -> list[Event]:
        """Return the events of a stored response."""
        return events_of(
            await self.http.get(f"/v1/responses/{response_id}", params={"stream": "true", **query})
        )

    async def until(self, response_id: str, *statuses: str) -> Event:
        """Return a response once it has one of these statuses."""

        async def has_one() -> bool:
            return (await self.get(response_id))["status"] in statuses

        await eventually(has_one)
        return await self.get(response_id)


def valid(answer: httpx.Response) -> Event:
    """Return the body of an answer that is a response by OpenAI's types, taken strictly."""
    assert answer.status_code == 200, answer.text
    Response.model_validate_json(answer.content, strict=True)
    document: Event = answer.json()
    return document


def events_of(answer: httpx.Response) -> list[Event]:
    """Return the events of a stream that is whole: each named, valid, and numbered without a gap."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = [block for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    assert blocks.pop() == "data: [DONE]"
    events = []
    for block in blocks:
        name, data = block.split("\n")
        _EVENT.validate_json(data.removeprefix("data: "), strict=True)
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    return events


def kinds(events: list[Event]) -> list[str]:
    """Return the types of events, each run of deltas as one."""
    found: list[str] = []
    for event in events:
        kind = event["type"].removeprefix("response.")
        if not (found and found[-1] == kind and kind.endswith(".delta")):
            found.append(kind)
    return found


def said(document: Mapping[str, Any]) -> str:
    """Return the text of a response."""
    parts = [part for item in document["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts)


def face_app(engine: Engine, store: Store, service: Service, pace: StreamPace) -> FastAPI:
    """Return the face as an application of its own."""
    app = FastAPI()
    responses = make_router(engine, store, service, pace)
    stored_runs = runs.make_router(store, pace)
    approvals = routes.make_approvals_router(store, engine)
    for router in (responses, stored_runs, approvals):
        app.router.routes.extend(router.routes)
    _add_error_handlers(app)
    app.add_middleware(CallerByHeader)
    return app


@asynccontextmanager
async def running_face(
    agent: RunningAgent, folder: Path, pace: StreamPace | None = None
) -> AsyncIterator[RunningFace]:
    """Serve the face in front of an agent."""
    store = await open_store(f"sqlite:///{folder / 'store.db'}")
    engine = RunEngine(store, agent.service, f"test-{secrets.token_hex(4)}", QUICK)
    serving = asyncio.create_task(engine.serve())
    try:
        app = face_app(engine, store, agent.service, pace or StreamPace())
        async with (
            served(app) as url,
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
            AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-any", max_retries=0) as openai,
        ):
            yield RunningFace(agent, engine, store, http, openai)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await store.aclose()
