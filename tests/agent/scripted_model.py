"""A small OpenAI-compatible server that answers with the bytes a test gives it.

Real HTTP on loopback: `async with scripted_model(reply, …) as model:` serves the
replies one after another at `model.base_url` and keeps what was asked in `model.asked`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from beckon_agent.core.model_types import ModelRequest, Turn
from beckon_agent.core.run_events import StreamItem
from beckon_agent.model.capabilities import Profile
from beckon_agent.model.client import ModelClient
from beckon_agent.model.transport import Patience
from tests.serving import served

EVENT_STREAM = "text/event-stream"
KEY = "sk-a-key-that-no-one-may-see"
QUESTION = ModelRequest([{"role": "user", "content": "hi"}])


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came; the header `x-peer` names the connection's other end."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What to answer: `pieces` are sent one by one, each in its own HTTP chunk."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_off: bool = False
    """Whether the connection is cut after the last piece, in the middle of the body."""

    holds: asyncio.Event | None = None
    """Waits for this event before the last piece."""


Script = Reply | Callable[[ReceivedRequest], Reply]


@dataclass
class ScriptedModel:
    """The server side of a test. The last reply is not repeated: one too many is a 418."""

    base_url: str
    script: list[Script]
    requests: list[ReceivedRequest] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a caller has gone before its answer was whole."""

    def add(self, *replies: Script) -> None:
        """Append to the script."""
        self.script.extend(replies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: the ASGI application."""
        request = Request(scope, receive)
        headers = {**request.headers, "x-peer": str(scope.get("client"))}
        sent = ReceivedRequest(request.url.path, headers, json.loads(await request.body() or b"{}"))
        self.requests.append(sent)
        step = self.script.pop(0) if self.script else Reply((b"the script has no reply left",), status=418)
        reply = step(sent) if callable(step) else step
        hanging_up = asyncio.ensure_future(self._watch(receive))
        try:
            await _send(reply, send, hanging_up)
        finally:
            hanging_up.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.hung_up.set()


async def _send(reply: Reply, send: Send, hanging_up: Awaitable[None]) -> None:
    headers = {"content-type": reply.content_type, **reply.headers}
    raw = [(name.encode(), value.encode()) for name, value in headers.items() if value]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    for position, piece in enumerate(reply.pieces):
        if reply.holds and position == len(reply.pieces) - 1:
            held = asyncio.ensure_future(reply.holds.wait())
            await asyncio.wait([held, asyncio.ensure_future(hanging_up)], return_when=asyncio.FIRST_COMPLETED)
            held.cancel()
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    if not reply.breaks_off:
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def scripted_model(*script: Script) -> AsyncIterator[ScriptedModel]:
    """Serve a script on a free port of loopback."""
    model = ScriptedModel("", list(script))
    async with served(model, lifespan="off") as url:
        model.base_url = f"{url}/v1"
        yield model


def sse(*payloads: object, done: bool = True) -> bytes:
    """Return payloads as server-sent events; strings and bytes go out as they are."""
    lines = [
        payload.encode() if isinstance(payload, str) else b"data: " + json.dumps(payload).encode()
        for payload in payloads
    ]
    return b"\n\n".join([*lines, b"data: [DONE]"] if done else lines) + b"\n\n"


def chunk(
    delta: Mapping[str, object] | None = None, finish: str | None = None, **more: object
) -> dict[str, object]:
    """Return one `chat.completion.chunk`."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def calls(*entries: Mapping[str, object]) -> dict[str, object]:
    """Return a chunk with these fragments of tool calls."""
    return chunk({"tool_calls": [dict(entry) for entry in entries]})


def fragment(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: object = ""
) -> dict[str, object]:
    """Return one entry of `delta.tool_calls`, without what is `None`."""
    function = {"name": name, "arguments": arguments}
    entry: dict[str, object] = {
        "function": {key: value for key, value in function.items() if value is not None}
    }
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry |= {"id": call_id, "type": "function"}
    return entry


def streamed(*payloads: object, done: bool = True) -> Reply:
    """Return a reply that streams these payloads, one event in each HTTP chunk."""
    events = [sse(payload, done=False) for payload in payloads]
    return Reply([*events, b"data: [DONE]\n\n"] if done else events)


def says(*words: str) -> Reply:
    """Return a reply that streams a text, a word at a time."""
    return streamed(*(chunk({"content": word}) for word in words), chunk(finish="stop"))


def asks_for(*entries: tuple[str, Mapping[str, object]]) -> Reply:
    """Return a reply that calls tools: names and arguments."""
    fragments = (
        fragment(index, f"call_{index}", name, json.dumps(arguments))
        for index, (name, arguments) in enumerate(entries)
    )
    return streamed(*map(calls, fragments), chunk(finish="tool_calls"))


def answers(body: object, status: int = 200, **headers: str) -> Reply:
    """Return a reply of one JSON body."""
    return Reply([json.dumps(body).encode()], status, "application/json", headers)


def refuses(status: int, message: str, **headers: str) -> Reply:
    """Return an error as OpenAI words it."""
    return answers(
        {"error": {"message": message, "type": "x", "param": None, "code": None}}, status, **headers
    )


def declaration(name: str, *required: str) -> dict[str, Any]:
    """Return a tool declaration with these required string parameters."""
    properties = {parameter: {"type": "string"} for parameter in required}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


async def items_of(client: ModelClient, request: ModelRequest | None = None) -> list[StreamItem]:
    """Return all that a client yields for a request, by default a plain question."""
    return [item async for item in client.stream(request or QUESTION)]


async def items_after(
    *script: Script, request: ModelRequest | None = None, profile: Profile | None = None
) -> list[StreamItem]:
    """Return all that a client yields where the server follows this script."""
    async with scripted_model(*script) as model:
        patience = Patience(attempts=1)
        async with ModelClient(model.base_url, KEY, "m", profile or Profile(), patience=patience) as client:
            return await items_of(client, request)


async def turn_after(
    *script: Script, request: ModelRequest | None = None, profile: Profile | None = None
) -> Turn:
    """Return the turn that a client makes of this script."""
    last = (await items_after(*script, request=request, profile=profile))[-1]
    assert isinstance(last, Turn)
    return last
