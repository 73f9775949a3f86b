"""A model server for tests of many agents: it has keys and models, and answers with what it was sent."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.agent.scripted_model import EVENT_STREAM, ReceivedRequest, Script, chunk, sse


@dataclass
class ModelServer:
    """OpenAI-compatible: `keys` are those it takes, none meaning any; `script` goes before its usual answer.

    The usual answer is JSON: the model, the system prompt, and the names of the tools it was offered.
    """

    url: str = ""
    keys: set[str] = field(default_factory=set)
    models: list[str] = field(default_factory=lambda: ["m", "other"])
    script: list[Script] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    """The authorization headers of the requests for the models."""

    has_list: bool = True

    async def list_models(self, request: web.Request) -> web.Response:
        """Answer GET /v1/models."""
        self.listed.append(request.headers.get("authorization", ""))
        if not self._takes(request):
            return _denied(request)
        if not self.has_list:
            return web.json_response({"error": {"message": "no such path"}}, status=404)
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})

    async def get_model(self, request: web.Request) -> web.Response:
        """Answer GET /v1/models/{name}: this server has no models but those it lists, and `hidden`."""
        found = request.match_info["name"] == "hidden"
        return web.json_response({"id": "hidden"} if found else {}, status=200 if found else 404)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer POST /v1/chat/completions."""
        headers = {
            **request.headers,
            "x-peer": str(request.transport and request.transport.get_extra_info("peername")),
        }
        sent = ReceivedRequest(
            request.path, {name.lower(): value for name, value in headers.items()}, await request.json()
        )
        self.requests.append(sent)
        if not self._takes(request):
            return _denied(request)
        if self.script:
            step = self.script.pop(0)
            reply = step(sent) if callable(step) else step
            if reply.holds is not None:
                await reply.holds.wait()
            return web.Response(
                body=b"".join(reply.pieces), status=reply.status, content_type=reply.content_type
            )
        body = sse(chunk({"content": json.dumps(self._shown(sent.body))}), chunk(finish="stop"))
        return web.Response(body=body, content_type=EVENT_STREAM)

    def _shown(self, body: dict[str, Any]) -> dict[str, Any]:
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        return {"model": body["model"], "system": body["messages"][0]["content"], "tools": tools}

    def _takes(self, request: web.Request) -> bool:
        return not self.keys or request.headers.get("authorization", "").removeprefix("Bearer ") in self.keys


def _denied(request: web.Request) -> web.Response:
    """Repeat the key, as real servers do: it must get no further."""
    message = f"Incorrect API key provided: {request.headers.get('authorization', '')}"
    return web.json_response({"error": {"message": message}}, status=401)


@asynccontextmanager
async def model_server(**settings: Any) -> AsyncIterator[ModelServer]:
    """Serve on a free port of loopback."""
    server = ModelServer(**settings)
    app = web.Application()
    app.add_routes(
        [
            web.get("/v1/models", server.list_models),
            web.get("/v1/models/{name}", server.get_model),
            web.post("/v1/chat/completions", server.chat),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
