"""The MCP server as an ASGI application around the SDK.

It checks access, finds the agent, and serves requests that need no SDK. It reads a request's revision ahead
of the SDK, since the SDK must know it, refuses requests before JSON-RPC is read, and serves the stream of
changes for clients before 2026-07-28 (`GET /mcp`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.http.middleware import replay_body
from beckon_agent.api.http.streaming import KEEP_ALIVE, ClientGone, EventStream, StreamPace, cancel_on_hang_up
from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.agent_tool import with_agent_tool
from beckon_agent.api.mcp.event_feed import FeedTail
from beckon_agent.api.mcp.notifications import TOO_MANY, Cancellations, Changes, TooManyListeners
from beckon_agent.api.mcp.sessions import (
    SESSION_HEADER,
    LoggingSessions,
    RequestStream,
    methods_of_session,
    name_session,
    read_opening,
)
from beckon_agent.api.mcp.stored_calls import StoredCalls
from beckon_agent.api.models import known_agents, not_served
from beckon_agent.core.json_values import as_mapping
from beckon_agent.service import Service
from beckon_agent.store.feed import Feed
from beckon_runtime.origins import OriginPolicy

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603


def refuse_request(status: int, message: str) -> Response:
    """Return the HTTP answer for a refused request."""
    code = INTERNAL_ERROR if status >= 500 else INVALID_REQUEST
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    headers = {"retry-after": "1"} if status == 503 else None
    return Response(orjson.dumps(body), status, headers, "application/json")


_BEGUN = b": changes of the tools are reported here\n\n"
_CHANGED = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'


async def yield_frames(changes: Changes, agent: str, keep_alive: float) -> AsyncGenerator[bytes]:
    """Yield server-sent events until the service ends.

    The stream ends at once if there are too many listeners by now.
    """
    try:
        with changes.listen_to(agent) as listener:
            yield _BEGUN
            while not listener.ended:
                try:
                    async with asyncio.timeout(keep_alive):
                        changed = await listener.wait_for_change()
                except TimeoutError:
                    yield KEEP_ALIVE
                else:
                    yield _CHANGED if changed else b""
    except TooManyListeners:
        return


if TYPE_CHECKING:
    from types import ModuleType

    from beckon_agent.api.mcp.protocol import Handlers

_VERSION = "mcp-protocol-version"
_WITH_BATCHES = "2025-03-26"
_MOST_MESSAGES = 50
_STATELESS = "2026"  # revisions from then on have neither sessions nor a stream of their own


@dataclass(frozen=True, slots=True)
class McpSettings:
    """How the face is served; `report_every` are the seconds between two notes of progress.

    Without `calls`, every call ends with its request. With `agent_tool`, each agent is a tool of its address.
    With `feed`, clients read its events.
    """

    origins: OriginPolicy = field(default_factory=OriginPolicy)
    max_request_bytes: int = 4 * 1024 * 1024
    max_listeners: int = 1_000
    report_every: float = 5.0
    pace: StreamPace = field(default_factory=StreamPace)
    cancellations: Cancellations = field(default_factory=Cancellations)
    calls: StoredCalls | None = None
    agent_tool: bool = False
    feed: Feed | None = None


class McpFace:
    """Serves `/mcp` and `/mcp/{agent}`; `serve_sessions` must be entered for as long as it does."""

    def __init__(self, service: Service, settings: McpSettings) -> None:
        self._service = service
        self._settings = settings
        self._changes = Changes(service, settings.max_listeners)
        self._logging = LoggingSessions()
        self._tail: FeedTail | None = None
        if settings.feed is not None:
            self._tail = FeedTail(settings.feed, settings.max_listeners, lambda: service.draining)
        self._loading = asyncio.Lock()
        self._handlers: Handlers | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    @property
    def count_listeners(self) -> int:
        """The number of clients waiting for changes of the tools."""
        return len(self._changes)

    @contextlib.asynccontextmanager
    async def serve_sessions(self) -> AsyncIterator[None]:
        """Serve in this block; all streams end with it."""
        try:
            yield
        finally:
            await self._changes.stop_streams()
            if self._tail is not None:
                await self._tail.stop()
            self._stopping.set()
            if self._running is not None:
                await self._running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        # httptools keeps the white space behind a value, which is none of it (RFC 9110, section 5.5).
        trimmed = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        request = Request({**scope, "headers": trimmed}, receive)
        scope = request.scope
        admitted = self._admit_request(request)
        if isinstance(admitted, Response):
            await admitted(scope, receive, send)
            return
        session = request.headers.get(SESSION_HEADER)
        methods = methods_of_session(session or "")
        logged = session in self._logging
        notifications.current.set(
            notifications.RequestInfo(admitted, session, input_methods=methods, is_logged=logged)
        )
        stateless = request.headers.get(_VERSION, "") >= _STATELESS
        match request.method:
            case "GET" if not stateless:
                await self._listen_to_changes(request, admitted.name)(scope, receive, send)
            case "DELETE" if not stateless:  # a session has no state to be deleted
                await Response(status_code=405, headers={"allow": "GET, POST"})(scope, receive, send)
            case "POST" if not stateless:
                await self._answer_request(request, admitted, send)
            case _:
                handlers = await self._load_handlers()
                await handlers.streaming.handle_request(scope, receive, send)

    async def _answer_request(self, request: Request, hosted: AgentHandle, send: Send) -> None:
        """Answer a request before 2026-07-28; its call ends when its client hangs up."""
        handlers = await self._load_handlers()
        receive = request.receive
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        if request.headers.get(_VERSION, _WITH_BATCHES) == _WITH_BATCHES and body.lstrip()[:1] == b"[":
            with contextlib.suppress(ClientGone):
                answer = await cancel_on_hang_up(receive, _answer_batch(request, body, handlers))
                await answer(request.scope, receive, send)
            return
        opening = read_opening(body, hosted)
        if opening.answer is not None:
            problem = await handlers.take_answer(opening.answer)
            response = Response(status_code=202) if problem is None else refuse_request(400, problem)
            await response(request.scope, receive, send)
            return
        answering = name_session(send, opening.capabilities) if opening.begins else send
        replayed = replay_body(body, receive)
        info = notifications.current.get()
        may_request = opening.calls and info.input_methods and self._settings.calls is not None
        if opening.streams or may_request or (opening.calls and info.is_logged):
            stream = RequestStream(answering)
            if may_request:
                notifications.current.set(replace(info, send_request=stream.send_request))
            await handlers.streaming.handle_request(request.scope, replayed, stream)
            return
        with contextlib.suppress(ClientGone):
            await cancel_on_hang_up(
                receive, handlers.plain.handle_request(request.scope, replayed, answering)
            )

    def _admit_request(self, request: Request) -> AgentHandle | Response:
        """Return the requested agent, or the answer to a refused request."""
        # MCP wants it of every server, wherever it listens: 2025-11-25, transports, security warning.
        policy = replace(self._settings.origins, pages_checked=True)
        if (problem := policy.refuse(request.headers.raw)) is not None:
            return refuse_request(problem.status, problem.detail)
        registry = self._service.registry
        name = request.path_params.get("agent") or registry.default
        match registry.find(name):
            case AgentHandle() as agent:
                offered = self._settings.agent_tool and self._settings.calls is not None
                return with_agent_tool(agent) if offered else agent
            case UnavailableAgent() as agent:
                return refuse_request(503, not_served(agent))
        if not registry.complete:
            return refuse_request(503, "the agents are not all known yet; retry shortly")
        return refuse_request(
            404,
            f"there is no agent {name[:80]!r}; use /mcp, or /mcp/ and one of: {known_agents(self._service)}",
        )

    def _listen_to_changes(self, request: Request, agent: str) -> Response:
        accepted = request.headers.get("accept", "")
        if "text/event-stream" not in accepted and "*/*" not in accepted:
            return refuse_request(
                406, "send the header 'accept: text/event-stream'; a GET is answered with a stream"
            )
        if self._changes.is_full:
            return refuse_request(503, TOO_MANY)
        pace = self._settings.pace
        return EventStream(yield_frames(self._changes, agent, pace.keep_alive), pace.stalled)

    async def _load_handlers(self) -> Handlers:
        async with self._loading:
            if self._handlers is None:
                protocol = await asyncio.to_thread(_import_protocol)
                calling = protocol.McpCalls(
                    self._service, self._settings.report_every, self._settings.cancellations
                )
                events = None
                if self._settings.feed is not None:
                    events = protocol.EventMethods(self._service, self._settings.feed, self._tail)
                served = protocol.Protocol(
                    calling, self._changes, self._logging, self._settings.calls, events
                )
                handlers = protocol.Handlers(served, self._settings.max_request_bytes)
                is_open = asyncio.Event()
                self._running = asyncio.create_task(handlers.run_managers(is_open, self._stopping))
                await is_open.wait()
                self._handlers = handlers
            return self._handlers


async def _answer_batch(request: Request, body: bytes, handlers: Handlers) -> Response:
    """Return the answers to a batch, whose messages are handled as requests of their own.

    Only the revision 2025-03-26 has batches (basic, batching).
    """
    try:
        messages = json.loads(body)  # not orjson, which loses the digits of long integers
    except (ValueError, RecursionError):
        return refuse_request(400, "the batch is no JSON; send an array of messages")
    if not 0 < len(messages) <= _MOST_MESSAGES:
        return refuse_request(400, f"a batch has 1 to {_MOST_MESSAGES} messages, not {len(messages)}")
    if any(as_mapping(message).get("method") == "initialize" for message in messages):
        return refuse_request(400, "'initialize' cannot be part of a batch; send it by itself first")

    async def answer_message(message: object) -> bytes:
        answer = bytearray()

        async def gather_body(part: Message) -> None:
            answer.extend(part.get("body", b""))

        replayed = replay_body(json.dumps(message).encode(), request.receive)
        await handlers.plain.handle_request(request.scope, replayed, gather_body)
        return bytes(answer)

    answers = [answer for answer in await asyncio.gather(*map(answer_message, messages)) if answer]
    if not answers:
        return Response(status_code=202)
    return Response(b"[" + b",".join(answers) + b"]", media_type="application/json")


def _import_protocol() -> ModuleType:
    from beckon_agent.api.mcp import protocol  # noqa: PLC0415  # heavy, and not always needed

    return protocol


_THIS_MACHINE = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


def mount_mcp(app: FastAPI, service: Service, settings: McpSettings) -> McpFace:
    """Serve MCP at `/mcp` and `/mcp/{agent}`.

    Enter the returned object's `serve_sessions` in the lifespan of the app.
    """
    face = McpFace(service, settings)
    # For clients that are web pages; whether their requests are served decides `OriginPolicy`.
    answering = CORSMiddleware(
        face,
        allow_origins=sorted(settings.origins.origins),
        allow_origin_regex=_THIS_MACHINE,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=[SESSION_HEADER, "x-request-id"],
    )
    for path in ("/mcp", "/mcp/{agent:path}"):  # an agent of another namespace is namespace/name
        app.router.routes.append(Route(path, answering, include_in_schema=False))
    return face
