"""The A2A server as an ASGI application around the SDK.

It finds the agent, loads the SDK with the first request, and refuses requests before it. The address of an
agent's interfaces is `/agents/NAME/a2a`, for JSON-RPC and for HTTP+JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.a2a.calls import CALL, A2aCall
from beckon_agent.api.http.errors import refuse_request
from beckon_agent.api.http.middleware import replay_body
from beckon_agent.api.http.streaming import ClientGone, cancel_on_hang_up
from beckon_agent.api.models import known_agents, not_served
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_contract import jsontext
from beckon_runtime.egress import AllowedHosts

if TYPE_CHECKING:
    from types import ModuleType

CARD = "/.well-known/agent-card.json"
"""The path of an agent card below the address of its agent: RFC 8615, and section 8.2 of the protocol."""

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class A2aSettings:
    """How the face is served.

    `public_url` is the address of the service for clients, empty for that of each request. A client may take
    nothing of its answer for `stalled` seconds. Clients may be notified at `push_hosts`.
    """

    public_url: str = ""
    stalled: float = 60.0
    push_hosts: AllowedHosts | None = None


class A2aFace:
    """Serves agent cards, and the interfaces of each agent."""

    def __init__(self, service: Service, engine: Engine, store: Store, settings: A2aSettings) -> None:
        self._service = service
        self._engine = engine
        self._store = store
        self._public_url = settings.public_url.rstrip("/")
        self._stalled = settings.stalled
        self._push_hosts = settings.push_hosts
        self._loading = asyncio.Lock()
        self._interfaces: ASGIApp | None = None

    async def serve_card(self, request: Request) -> Response:
        """Answer with the card of an agent."""
        call = self._find_call(request)
        if isinstance(call, Response):
            return call
        protocol = await asyncio.to_thread(_import_protocol)
        body: bytes = protocol.write_card(call, with_push=self._push_hosts is not None)
        return Response(body, media_type="application/json", headers={"cache-control": "no-cache"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request to an interface; its work ends when its client hangs up."""
        request = Request(scope, receive)
        call = self._find_call(request)
        if isinstance(call, Response):
            await call(scope, receive, send)
            return
        interfaces = await self._load_interfaces()
        path = "/" + request.path_params.get("path", "")
        inner = {**scope, CALL: call, "path": path, "root_path": "", "path_params": {}}
        with contextlib.suppress(ClientGone, ClientDisconnect, TimeoutError):
            body = await request.body()
            if body and (refused := _check_body(request, body)) is not None:
                await refused(scope, receive, send)
                return
            call.wanted_status = _read_status(request, body)
            answering = _limit_stalls(_mark_refusal(send, call), self._stalled)

            async def answer_request() -> None:
                await interfaces(inner, replay_body(body, receive), answering)

            await cancel_on_hang_up(receive, answer_request())

    def _find_call(self, request: Request) -> A2aCall | Response:
        registry = self._service.registry
        name = request.path_params.get("agent") or registry.default
        match registry.find(name):
            case AgentHandle() as agent:
                return A2aCall(agent, owner_of(request), self._base_url(request))
            case UnavailableAgent() as agent:
                return _refuse_request(request, 503, not_served(agent))
        if not registry.complete:
            message = "the agents are not all known yet; send the request again shortly"
            return _refuse_request(request, 503, message)
        known = known_agents(self._service)
        message = f"there is no agent {name[:80]!r}; write /agents/ and one of: {known}"
        return _refuse_request(request, 404, message)

    def _base_url(self, request: Request) -> str:
        if self._public_url:
            return self._public_url
        host = request.headers.get("host", "")
        return f"{request.url.scheme}://{host}" if _HOST.fullmatch(host) else ""

    async def _load_interfaces(self) -> ASGIApp:
        async with self._loading:
            if self._interfaces is None:
                protocol = await asyncio.to_thread(_import_protocol)
                self._interfaces = protocol.make_interfaces(
                    self._service, self._engine, self._store, self._push_hosts
                )
            return self._interfaces


_STATUSES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 415: "INVALID_ARGUMENT", 503: "UNAVAILABLE"}
_CODES = {400: -32700, 503: -32603}
_INVALID_REQUEST = -32600


def _check_body(request: Request, body: bytes) -> Response | None:
    """Return the refusal of a body that is not JSON."""
    if "json" not in request.headers.get("content-type", "").lower():
        # A web page may send any other type to a service on this machine without a preflight.
        message = "send the body as JSON, with the header 'content-type: application/json'"
        return _refuse_request(request, 415, message)
    try:
        jsontext.loads(body)
    except jsontext.NotJsonError as error:
        return _refuse_request(request, 400, f"the body is not JSON: {error}")
    return None


def _read_status(request: Request, body: bytes) -> str:
    """Return the filter by status of a request for tasks, in either binding; empty if there is none."""
    document = jsontext.loads(body) if body else {}
    params = document.get("params") if isinstance(document, dict) else None
    status = params.get("status") if isinstance(params, dict) else None
    return status if isinstance(status, str) else request.query_params.get("status", "")


def _refuse_request(request: Request, status: int, message: str) -> Response:
    """Return the answer to a request that the SDK does not see, in the shape of its binding."""
    path = request.url.path
    headers = {"retry-after": "1"} if status == 503 else None
    if path.endswith(CARD):
        return refuse_request(path, status, message)
    if path.endswith("/a2a"):
        error = {"code": _CODES.get(status, _INVALID_REQUEST), "message": message}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
    else:
        body = {"error": {"code": status, "status": _STATUSES[status], "message": message}}
    return JSONResponse(body, status, headers)


async def write_notification(store: Store, run: StoredRun) -> Mapping[str, Any]:
    """Return the notification of a task, as `push.WriteTask` says; the SDK is loaded with the first one."""
    protocol = await asyncio.to_thread(_import_protocol)
    written: Mapping[str, Any] = await protocol.write_notification(store, run)
    return written


def _import_protocol() -> ModuleType:
    from beckon_agent.api.a2a import protocol  # noqa: PLC0415  # heavy, and not always needed

    return protocol


def _mark_refusal(send: Send, call: A2aCall) -> Send:
    """Set the status of a refused call, which the SDK does not know."""

    async def send_marked(message: Message) -> None:
        if message["type"] == "http.response.start" and call.status is not None:
            message["status"] = call.status
            if call.retry_after is not None:
                message["headers"] = [
                    *message["headers"],
                    (b"retry-after", str(call.retry_after).encode()),
                ]
        await send(message)

    return send_marked


def _limit_stalls(send: Send, seconds: float) -> Send:
    """Raise `TimeoutError` for a client that is connected and reads nothing for so long."""

    async def send_in_time(message: Message) -> None:
        async with asyncio.timeout(seconds):
            await send(message)

    return send_in_time


def mount_a2a(app: FastAPI, face: A2aFace) -> None:
    """Serve the cards and the interfaces of all agents."""
    agent = "/agents/{agent:path}"  # an agent of another namespace is namespace/name
    for path in (CARD, agent + CARD):
        app.router.routes.append(Route(path, face.serve_card, include_in_schema=False))
    for path in (f"{agent}/a2a", f"{agent}/a2a/{{path:path}}"):
        app.router.routes.append(Route(path, face, include_in_schema=False))
