"""The demo model over HTTP: `/v1/chat/completions`, `/v1/models` and `/healthz`."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from beckon_agent.demo.conversation import read_conversation
from beckon_agent.demo.reply import reply
from beckon_agent.demo.requests import MODELS, BadRequest, read_request
from beckon_agent.demo.settings import Settings
from beckon_agent.demo.wire import Head, Json, chunks, completion, usage


def build_app(settings: Settings) -> FastAPI:
    """Return the application; errors have OpenAI's form."""
    app = FastAPI(title="Beckon's demo model", openapi_url=None)

    @app.exception_handler(BadRequest)
    async def refused(request: Request, error: BadRequest) -> JSONResponse:
        return JSONResponse(error.body, error.status)

    @app.exception_handler(404)
    async def no_such_path(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(BadRequest(f"there is no {request.url.path} here", status=404).body, 404)

    @app.exception_handler(405)
    async def no_such_method(request: Request, error: Exception) -> JSONResponse:
        message = f"{request.url.path} takes no {request.method}"
        return JSONResponse(BadRequest(message, status=405).body, 405)

    @app.get("/healthz")
    async def health() -> Json:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> Json:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "beckon-demo"} for name in MODELS]
        return {"object": "list", "data": listed}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        return _answer(await _body(request, settings.max_request_bytes), settings)

    return app


async def _body(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BadRequest(f"the request is larger than {limit} bytes", status=413)
        parts.append(part)
    return b"".join(parts)


def _answer(body: bytes, settings: Settings) -> Response:
    asked = read_request(body)
    conversation = read_conversation(asked.messages, asked.declarations)
    # The same request has the same answer and ids; a longer conversation has new ones.
    seed = hashlib.sha256(json.dumps(asked.messages, sort_keys=True).encode()).hexdigest()
    said = reply(conversation, asked.rules, seed)
    counted = usage([*asked.messages, *asked.declarations], said)
    head = Head(f"chatcmpl-{seed[:24]}", int(time.time()), asked.model)
    if not asked.stream:
        return JSONResponse(completion(head, said, counted))
    pieces = chunks(head, said, settings.chunk_characters, counted if asked.wants_usage else None)
    return StreamingResponse(_events(pieces, settings.chunk_seconds), media_type="text/event-stream")


async def _events(pieces: Iterator[Json], pause: float) -> AsyncIterator[str]:
    for piece in pieces:
        yield f"data: {json.dumps(piece, ensure_ascii=False)}\n\n"
        await asyncio.sleep(pause)
    yield "data: [DONE]\n\n"
