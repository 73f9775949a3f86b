"""The demo model over HTTP: `/v1/chat/completions`, `/v1/models` and `/healthz`."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from beckon_demo.conversation import read_conversation
from beckon_demo.reply import reply
from beckon_demo.requests import MODELS, BadRequest, read_request
from beckon_demo.settings import Settings
from beckon_demo.wire import Head, Json, chunks, completion, usage


def build_app(settings: Settings) -> Starlette:
    """Return the application; errors have OpenAI's form."""

    async def complete(request: Request) -> Response:
        return _answer(await _body(request, settings.max_request_bytes), settings)

    app = Starlette(exception_handlers={BadRequest: _refused, 404: _no_such_path, 405: _no_such_method})
    app.add_route("/healthz", _health, methods=["GET"])
    app.add_route("/v1/models", _models, methods=["GET"])
    app.add_route("/v1/chat/completions", complete, methods=["POST"])
    return app


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _models(_: Request) -> JSONResponse:
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "beckon-demo"} for name in MODELS]
    return JSONResponse({"object": "list", "data": listed})


async def _refused(_: Request, error: Exception) -> JSONResponse:
    refusal = cast("BadRequest", error)
    return JSONResponse(refusal.body, refusal.status)


async def _no_such_path(request: Request, _: Exception) -> JSONResponse:
    return JSONResponse(BadRequest(f"there is no {request.url.path} here", status=404).body, 404)


async def _no_such_method(request: Request, _: Exception) -> JSONResponse:
    message = f"{request.url.path} takes no {request.method}"
    return JSONResponse(BadRequest(message, status=405).body, 405)


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
    request_ = read_request(body)
    conversation = read_conversation(request_.messages, request_.declarations)
    # The same request has the same answer and ids; a longer conversation has new ones.
    seed = hashlib.sha256(json.dumps(request_.messages, sort_keys=True).encode()).hexdigest()
    said = reply(conversation, request_.rules, seed)
    counted = usage([*request_.messages, *request_.declarations], said)
    head = Head(f"chatcmpl-{seed[:24]}", int(time.time()), request_.model)
    if not request_.stream:
        return JSONResponse(completion(head, said, counted))
    pieces = chunks(head, said, settings.chunk_characters, counted if request_.wants_usage else None)
    return StreamingResponse(_events(pieces, settings.chunk_seconds), media_type="text/event-stream")


async def _events(pieces: Iterator[Json], pause: float) -> AsyncIterator[str]:
    for piece in pieces:
        yield f"data: {json.dumps(piece, ensure_ascii=False)}\n\n"
        await asyncio.sleep(pause)
    yield "data: [DONE]\n\n"
