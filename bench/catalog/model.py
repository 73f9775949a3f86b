"""A model server that answers every request with `ok`, and notes which tools it was sent."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

_ANSWER = orjson.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
)
_MODELS = orjson.dumps({"object": "list", "data": [{"id": "bench", "object": "model"}]})


class ModelServer:
    """The ASGI application, and what it was sent last; `requests` counts what came."""

    def __init__(self) -> None:
        self.requests = 0
        self.declared = 0
        self._expected: list[tuple[str, bool, asyncio.Future[float]]] = []

    def expect(self, name: str, *, present: bool) -> asyncio.Future[float]:
        """Return the moment (of `time.perf_counter`) when a request first has the tool, or not any more."""
        seen: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._expected.append((name, present, seen))
        return seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        body = await Request(scope, receive).body()
        came = time.perf_counter()
        if scope["method"] == "POST":
            self._note(orjson.loads(body), came)
        answer = _ANSWER if scope["method"] == "POST" else _MODELS
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _note(self, request: dict[str, Any], came: float) -> None:
        names = {tool["function"]["name"] for tool in request.get("tools") or ()}
        self.requests += 1
        self.declared = len(names)
        for expected in list(self._expected):
            name, present, seen = expected
            if (name in names) == present:
                self._expected.remove(expected)
                if not seen.done():
                    seen.set_result(came)


@asynccontextmanager
async def model_server(host: str) -> AsyncIterator[tuple[ModelServer, str]]:
    """Serve on a free port of this machine's address; gives the server and its URL."""
    model = ModelServer()
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind((host, 0))
    config = uvicorn.Config(model, lifespan="off", log_config=None, access_log=False, timeout_keep_alive=120)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield model, f"http://{host}:{bound.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        await serving
