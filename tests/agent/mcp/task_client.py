"""A client of MCP's tasks extension, by plain HTTP."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.agent.mcp.mcp_server import ACCEPT, LEGACY, enveloped, routing
from tests.patience import eventually

TASKS = "io.modelcontextprotocol/tasks"
WITH_TASKS: Mapping[str, Any] = {"extensions": {TASKS: {}}}
WITH_FORMS: Mapping[str, Any] = {"elicitation": {}}
WITH_BOTH: Mapping[str, Any] = {**WITH_TASKS, **WITH_FORMS}
MISSING_FORMS: tuple[int, Mapping[str, Any]] = (
    -32021,
    {"requiredCapabilities": {"elicitation": {"form": {}}}},
)
"""Code and data of the error for a client that shows no forms."""

FORM_SESSION = {"accept": ACCEPT, "mcp-protocol-version": LEGACY, "mcp-session-id": f"{'a' * 32}-forms"}
"""The headers of a session of 2025-11-25 whose client shows forms."""


async def messages(stream: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of a stream."""
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@dataclass(slots=True)
class TaskClient:
    """Sends requests of the revision 2026-07-28 that declare `capabilities`."""

    http: httpx.AsyncClient
    capabilities: Mapping[str, Any] = field(default_factory=lambda: WITH_TASKS)
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=dict)

    async def post(self, method: str, **params: Any) -> httpx.Response:
        """Return the response to a request."""
        body, headers = self._request(method, params), {**routing(method, params), **self.headers}
        return await self.http.post(self.path, json=body, headers=headers)

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the whole answer to a request."""
        document: dict[str, Any] = (await self.post(method, **params)).json()
        return document

    @asynccontextmanager
    async def stream(self, method: str, **params: Any) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Send a request, and read the messages of its answer in the block."""
        body, headers = self._request(method, params), {**routing(method, params), **self.headers}
        async with self.http.stream("POST", self.path, json=body, headers=headers) as answer:
            yield messages(answer)

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        meta = {"io.modelcontextprotocol/clientCapabilities": self.capabilities}
        return enveloped(method, {**params, "_meta": meta})

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request."""
        answer = await self.send(method, **params)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def error(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the error of a request."""
        answer = await self.send(method, **params)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the result of a tool call: the tool's, or a task."""
        return await self.result("tools/call", name=name, arguments=dict(arguments or {}), **more)

    async def get(self, task: str) -> dict[str, Any]:
        """Return a task."""
        return await self.result("tasks/get", taskId=task)

    async def until(self, task: str, status: str) -> dict[str, Any]:
        """Return a task once it has this status."""
        document: dict[str, Any] = {}

        async def has_status() -> bool:
            document.update(await self.get(task))
            return bool(document["status"] == status)

        await eventually(has_status)
        return document
