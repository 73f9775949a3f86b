"""The service under test: its whole application over HTTP, and runs of it that have ended."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.app import RunStorage, build_app
from beckon_agent.durable.engine import EnginePace, RunEngine
from beckon_agent.store.base import Store
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.resources.tools import Tool
from tests.agent.callers import CallerByHeader
from tests.agent.running_agent import RunningAgent, Still
from tests.patience import PATIENCE, eventually
from tests.serving import served

QUICK = EnginePace(hold=2, beat=0.2, look=0.05)
Document = dict[str, Any]


@dataclass(slots=True)
class Replaying:
    """A service whose runs are stored; `agent.requests` are those to the model."""

    agent: RunningAgent
    engine: RunEngine
    store: Store
    http: httpx.AsyncClient
    url: str

    async def ask(self, given: object = "go", **body: Any) -> Document:
        """Return a response."""
        request = {"model": "beckon", "input": given, "include": ["mcp_call"], **body}
        answer = await self.http.post("/v1/responses", json=request)
        assert answer.status_code == 200, answer.text
        document: Document = answer.json()
        return document

    async def run(self, given: object = "go", **body: Any) -> str:
        """Return the id of a run that has ended."""
        run: str = (await self.ask(given, **body))["id"]
        return run

    async def approve(self, response: Document, *, approve: bool = True, **more: object) -> Document:
        """Answer the questions of a response; return the one that follows."""
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": approve, **more}
            for item in response["output"]
            if item["type"] == "mcp_approval_request"
        ]
        return await self.ask(answers, previous_response_id=response["id"])

    async def post(self, run: str, *, owner: str = "", **wish: Any) -> httpx.Response:
        """Ask for a replay."""
        return await self.http.post(f"/runs/{run}/replay", json=wish, headers={"x-owner": owner})

    async def replay(self, run: str, **wish: Any) -> tuple[list[Document], Document]:
        """Return the calls that a replay made for real, and its report."""
        answer = await self.post(run, **wish)
        assert answer.status_code == 200, answer.text
        *calls, (name, report) = events(answer.text)
        assert name == "report", report
        assert {name for name, _ in calls} <= {"call"}
        return [call for _, call in calls], report

    async def same(self, run: str) -> Document:
        """Return the report of a replay that differs in nothing, and that sent nothing to model or tools."""
        sent = len(self.agent.requests)
        calls, report = await self.replay(run)
        assert report["differences"] == [], report["differences"]
        assert report["same"]
        assert calls == []
        assert len(self.agent.requests) == sent
        return report

    def change(self, **members: Any) -> None:
        """Give the agent another prompt or other limits from now on."""
        found = self.agent.service.registry.find("beckon")
        assert isinstance(found, AgentHandle)
        changed = replace(found, agent=replace(found.agent, **members))
        self.agent.service.registry = SingleAgent(changed, asyncio.Event().wait)

    def change_tool(self, name: str, tool: Tool | None = None, **members: Any) -> None:
        """Change what is declared of a tool, or put another in its place."""
        still: Still = self.agent.catalogue
        tools = dict(still.current.tools)
        tools[name] = replace(tool or tools[name], name=name, **members)
        still.current = Catalogue(tools)

    def remove_tool(self, name: str) -> None:
        """Let a tool be gone."""
        still: Still = self.agent.catalogue
        still.current = Catalogue({key: tool for key, tool in still.current.tools.items() if key != name})

    def tool(self, name: str) -> Tool:
        """Return a tool as it is declared."""
        return self.agent.catalogue.current.tools[name]


def events(text: str) -> list[tuple[str, Document]]:
    """Return the events of a stream with their names."""
    found = []
    for block in text.split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@asynccontextmanager
async def replaying(agent: RunningAgent, store: Store) -> AsyncIterator[Replaying]:
    """Serve the whole application of an agent, with its runs stored."""
    engine = RunEngine(store, agent.service, f"test-{secrets.token_hex(4)}", QUICK)
    app = build_app(
        agent.service, CallerByHeader, max_request_bytes=200_000, storage=RunStorage(store, engine)
    )
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        yield Replaying(agent, engine, store, http, url)


async def ended(service: Replaying, run: str) -> None:
    """Wait until a run has ended."""

    async def has_ended() -> bool:
        stored = await service.store.runs.get(run)
        return stored is not None and stored.ended_at is not None

    await eventually(has_ended)
