"""The agent's HTTP application: its APIs, limits and error responses.

There is one shape for each kind of error.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from beckon_agent.api import explain, feed, late_replies, models, operations, page, replays, tools
from beckon_agent.api.a2a.push import PushSender
from beckon_agent.api.a2a.server import A2aFace, A2aSettings, mount_a2a
from beckon_agent.api.agui import routes as agui
from beckon_agent.api.chat import routes as chat
from beckon_agent.api.chat import stored as stored_chats
from beckon_agent.api.chat.request import HandedCalls
from beckon_agent.api.chat.routes import ChatRuns
from beckon_agent.api.events import routes as events
from beckon_agent.api.events.owed_answers import AnswerSender
from beckon_agent.api.events.request import EventRules
from beckon_agent.api.http.errors import (
    STORE_UNAVAILABLE,
    ApiError,
    problem_response,
    refuse_request,
)
from beckon_agent.api.http.middleware import (
    BodyLimit,
    HeadRequests,
    RequestIds,
    allowed_methods,
    answer_pages,
)
from beckon_agent.api.http.openapi import describe_app
from beckon_agent.api.http.streaming import ClientGone, StreamPace
from beckon_agent.api.late_replies import LateReplies, LateReplySink
from beckon_agent.api.mcp.server import McpSettings, mount_mcp
from beckon_agent.api.mcp.stored_calls import StoredCalls
from beckon_agent.api.operations import StoreHealth
from beckon_agent.api.responses import routes as responses
from beckon_agent.api.runs import inputs
from beckon_agent.api.runs import routes as runs
from beckon_agent.core.context import owner_of, request_id
from beckon_agent.durable.engine import RunEngine
from beckon_agent.service import Service
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.store.feed import Feed
from beckon_agent.telemetry.spans import NOT_BY_FASTAPI, TracedRequests
from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_runtime.logs import point_to_log
from beckon_runtime.problem import ProblemError

logger = logging.getLogger(__name__)

_SHOWN_PATH = 200  # characters


@dataclass(frozen=True, slots=True)
class RunStorage:
    """The parts for storing runs. The routes for stored runs exist only with it.

    `public_url` is the address of the service for clients, empty for that of each request. `stored_events` is
    the number of events that MCP clients may read; with 0 there is no feed. `namespace` is the
    service's own. Without `push` no client is notified of its tasks, and without `answers` no answer is sent
    after the end of a run.
    """

    store: Store
    engine: RunEngine
    rules: EventRules = field(default_factory=EventRules)
    reply_keys: ReplyKeys = field(default_factory=ReplyKeys)
    store_chats: bool = False
    public_url: str = ""
    stored_events: int = 0
    push: PushSender | None = None
    answers: AnswerSender | None = None
    namespace: str = "default"


AuthWrapper = Callable[[ASGIApp], ASGIApp]
"""Wraps an application in authentication: `api.access.AuthMiddleware` with its settings."""


def build_app(
    service: Service,
    door: AuthWrapper,
    *,
    max_request_bytes: int,
    pace: StreamPace | None = None,
    mcp: McpSettings | None = None,
    storage: RunStorage | None = None,
) -> ASGIApp:
    """Return the application.

    While it serves, it keeps the catalogue up to date and continues stored runs.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work) for work in _permanent_work(service, storage)]
        try:
            async with face.serve_sessions():
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    app = FastAPI(
        title="Beckon agent", lifespan=lifespan, docs_url=None, redoc_url=None, telemetry=NOT_BY_FASTAPI
    )
    stored = None if storage is None else ChatRuns(storage.engine, storage.store_chats)
    routers = [chat.make_router(service, pace or StreamPace(), _memory_of(storage), stored)]
    routers += _base_routes(service, pace or StreamPace(), storage)
    routers += () if storage is None else _stored_routes(service, pace or StreamPace(), storage)
    for router in routers:
        app.router.routes.extend(router.routes)  # `include_router` would build each of them twice
    mcp = mcp or McpSettings(max_request_bytes=max_request_bytes)
    mcp = replace(mcp, calls=_stored_calls(storage), feed=_feed_of(storage))
    face = mount_mcp(app, service, mcp)
    if storage is not None:
        _mount_tasks(app, service, storage, (pace or StreamPace()).stalled)
    app.router.routes.extend(page.make_routes())
    app.add_middleware(HeadRequests, routes=app.router.routes)
    app.add_middleware(BodyLimit, limit=max_request_bytes)
    _add_error_handlers(app)
    describe_app(app)
    answering = answer_pages(door(app), mcp.origins.origins)
    return TracedRequests(
        RequestIds(answering), service.metrics.count_request
    )  # outside of all that may fail


def _permanent_work(
    service: Service, storage: RunStorage | None
) -> Iterator[Coroutine[object, object, None]]:
    """Yield what goes on as long as the service runs."""
    yield _run_or_exit(service.registry.watch(), "agents and tools")
    if storage is not None:
        yield _run_or_exit(storage.engine.serve(), "stored runs")
        if storage.push is not None:
            yield _run_or_exit(storage.push.send_until_cancelled(), "push notifications")
        if storage.answers is not None:
            yield _run_or_exit(storage.answers.send_until_cancelled(), "owed answers")


def _mount_tasks(app: FastAPI, service: Service, storage: RunStorage, stalled: float) -> None:
    """Serve A2A over the stored runs."""
    hosts = None if storage.push is None else storage.push.allowed
    settings = A2aSettings(storage.public_url, stalled, hosts)
    mount_a2a(app, A2aFace(service, storage.engine, storage.store, settings))


def _base_routes(service: Service, pace: StreamPace, storage: RunStorage | None) -> Iterator[APIRouter]:
    """Yield the routes independent of stored runs."""
    for room in (models, explain):
        yield room.make_router(service)
    yield tools.make_router(service, pace)
    yield operations.make_router(service, None if storage is None else StoreHealth(storage.store.counters))


def _stored_routes(service: Service, pace: StreamPace, storage: RunStorage) -> Iterator[APIRouter]:
    """Yield the routes of stored runs."""
    store, engine, rules = storage.store, storage.engine, storage.rules
    yield stored_chats.make_router(store, ChatRuns(engine))
    yield responses.make_router(engine, store, service, pace)
    yield agui.make_router(service, engine, store, pace)
    yield events.make_router(service, engine, rules)
    yield runs.make_router(store, pace)
    yield runs.make_approvals_router(store, engine)
    yield inputs.make_inputs_router(store, engine)
    yield replays.make_router(store, service, pace)
    if storage.stored_events:
        yield feed.make_router(feed.LimitedFeed(store.feed, storage.stored_events), storage.namespace)
    late = LateReplies(store, service.registry, engine.look_for_runs)
    count, attribute = service.metrics.late_reply, rules.reply_attribute
    yield late_replies.make_router(LateReplySink(late, storage.reply_keys, count, attribute))


def _stored_calls(storage: RunStorage | None) -> StoredCalls | None:
    if storage is None:
        return None
    return StoredCalls(storage.engine, storage.store, storage.engine.keep_seconds)


def _feed_of(storage: RunStorage | None) -> Feed | None:
    return storage.store.feed if storage is not None and storage.stored_events else None


def _memory_of(storage: RunStorage | None) -> chat.MemoryOf | None:
    """Return the factory of `HandedCalls`, `None` without storage.

    It stores the runs with a call handed to their client.
    """
    if storage is None:
        return None
    return lambda request, hosted: HandedCalls(storage.store, owner_of(request), hosted.name)


async def _run_or_exit(work: Coroutine[object, object, None], what: str) -> None:
    """Run a permanent task; stop the process if it fails, for a restart."""
    try:
        await work
    except Exception:
        logger.exception("%s cannot be kept up to date any more; stopping", what)
        signal.raise_signal(signal.SIGTERM)


async def _store_unavailable(request: Request, error: Exception) -> Response:
    logger.warning("request %s: the store does not answer: %s", request_id(), error)
    return refuse_request(request.url.path, 503, STORE_UNAVAILABLE)


def _add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(StoreUnavailable, _store_unavailable)

    @app.exception_handler(ApiError)
    async def face_error(_: Request, error: ApiError) -> Response:
        return error.to_response()

    @app.exception_handler(ProblemError)
    async def problem_error(_: Request, error: ProblemError) -> Response:
        return problem_response(error.problem)

    @app.exception_handler(ClientGone)
    async def client_gone(_: Request, __: ClientGone) -> Response:
        return Response(status_code=499)  # as nginx counts it; the client is gone

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        message, field = _first_problem(request, error)
        return refuse_request(request.url.path, 400, message, field)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        path = request.url.path
        answer = refuse_request(
            path, error.status_code, f"{request.method} {path[:_SHOWN_PATH]}: {error.detail}"
        )
        answer.headers.update(error.headers or {})
        if error.status_code == 405:
            answer.headers["allow"] = allowed_methods(app.router.routes, request.scope)
        return answer

    @app.exception_handler(Exception)
    async def unexpected_error(request: Request, _: Exception) -> Response:
        message = f"an unexpected error; {point_to_log('agent', request_id())}"
        return refuse_request(request.url.path, 500, message)


def _first_problem(request: Request, error: RequestValidationError) -> tuple[str, str | None]:
    """Return a sentence about the first error, and its field."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}", None
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    detail = str(first["msg"]).removeprefix("Value error, ")
    if field:
        return f"{field}: {detail}", field
    content_type = request.headers.get("content-type", "")
    if "json" not in content_type.lower():
        # Only JSON is taken: a web page may send any other type to a service on this machine unasked.
        return "send the body as JSON, with the header 'content-type: application/json'", None
    return f"the body must be a JSON object: {detail}", None
