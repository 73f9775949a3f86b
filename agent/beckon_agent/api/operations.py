"""The routes for operators: `/healthz`, `/readyz`, `/metrics`, and the write check behind `/readyz`.

The check makes a real write to the store, with a time limit. Its result is reused for a moment.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Literal, NotRequired

from fastapi import APIRouter, FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import Answers, JsonResponse, describe_answer, describe_operation
from beckon_agent.core.context import Principal, current_principal
from beckon_agent.service import Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.counters import Counters
from beckon_runtime.logs import point_to_log
from beckon_runtime.problem import Problem, ProblemError

logger = logging.getLogger(__name__)

_FRESH = 2.0  # seconds for which an answer is good, and is given again
_PATIENCE = 2.0  # seconds; a probe of Kubernetes waits for three
_PLACE_SECONDS = 60.0  # what is written goes with the next write, or with a purge


class StoreHealth:
    """Tries a write of a row of its own.

    Reading would not do: a full disk, a lock and a standby of PostgreSQL all let a reader in.
    """

    def __init__(self, counters: Counters, *, fresh: float = _FRESH, patience: float = _PATIENCE) -> None:
        self._counters = counters
        self._fresh = fresh
        self._patience = patience
        self._key = f"health|{secrets.token_hex(8)}"  # one a process: replicas do not wait for each other
        self._checking = asyncio.Lock()
        self._checked_at: float | None = None
        self._writable = True

    async def is_writable(self) -> bool:
        """Return True if a write succeeds in time. A result from a moment ago is returned again."""
        async with self._checking:
            if self._checked_at is None or time.monotonic() - self._checked_at > self._fresh:
                problem = await self._find_problem()
                if problem:
                    logger.warning("the store cannot be written: %s", problem)
                elif not self._writable:
                    logger.info("the store can be written again")
                self._writable, self._checked_at = not problem, time.monotonic()
            return self._writable

    async def _find_problem(self) -> str:
        """Try a write; return the reason of a failure, else ""."""
        try:
            async with asyncio.timeout(self._patience):
                await self._counters.take_place(self._key, "probe", limit=1, seconds=_PLACE_SECONDS)
        except StoreUnavailable as error:
            return str(error)
        except TimeoutError:
            return f"no answer within {self._patience:g} s: it is locked, or cannot be reached"
        return ""


Status = Literal["ready", "starting", "draining", "store_unavailable"]


class Liveness(TypedDict):
    """The answer of `/healthz`."""

    status: Literal["ok"]
    service: str


class Readiness(TypedDict):
    """The answer of `/readyz`; `detail` says what is wrong with the store."""

    status: Status
    model: str | None
    tools: int
    agents: list[str]
    detail: NotRequired[str]


_UNSTORED = (
    "the store cannot be written: its disk may be full, it may be locked, or the database cannot be reached; "
    f"{point_to_log('agent', 'the store cannot be written')}. Chat completions that are not stored are "
    "answered; whatever is stored gets 503 until the store can be written again"
)
_READY: Answers = {
    **describe_answer("Requests are welcome."),
    503: {
        "description": "The agent shuts down, has not read its tools yet, or cannot write its store.",
        "content": {"application/json": {}},
    },
}
_NO_METRICS = (
    "the metrics name agents and tools; the operator of the service lets callers see them with "
    "BECKON_METRICS_USERS, or serves them at a port of their own with BECKON_METRICS_PORT"
)


def make_router(service: Service, store: StoreHealth | None = None) -> APIRouter:
    """Return the routes for operators. Without `store`, `/readyz` checks no store."""
    routes = APIRouter()

    @routes.get("/healthz", **describe_operation("healthz", describe_answer("The process lives.")))
    async def answer_health() -> JsonResponse[Liveness]:
        """Answer that the process lives, and which service it is."""
        return JsonResponse({"status": "ok", "service": "beckon-agent"})

    @routes.get("/readyz", **describe_operation("readyz", _READY))
    async def answer_readiness() -> JsonResponse[Readiness]:
        """Answer whether requests are welcome, and what the agent works with."""
        registry = service.registry
        default = registry.find(registry.default)
        status = _read_status(service)
        if status == "ready" and store is not None and not await store.is_writable():
            status = "store_unavailable"
        state: Readiness = {
            "status": status,
            "model": default.model.name if isinstance(default, AgentHandle) else None,
            "tools": registry.tools,
            "agents": [hosted.name for hosted in registry.hosted()],
        }
        if status == "store_unavailable":
            state["detail"] = _UNSTORED
        return JsonResponse(state, 200 if status == "ready" else 503)

    if (may_read := service.metrics.may_read) is not None:
        _add_metrics(routes, service, may_read)
    return routes


def metrics_app(service: Service) -> FastAPI:
    """Return an application with `/metrics` alone. It is for a port guarded by the network."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/metrics")
    async def answer_metrics() -> Response:
        return _metrics_response(service)

    return app


def _add_metrics(routes: APIRouter, service: Service, may_read: Callable[[Principal], bool]) -> None:
    refused = problem_responses(_403="The operator lets the caller see no metrics.")

    @routes.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, responses=refused)
    async def answer_metrics() -> Response:
        """Return the numbers for Prometheus."""
        if not may_read(current_principal()):
            raise ProblemError(Problem(403, "forbidden", "Forbidden", _NO_METRICS))
        return _metrics_response(service)


def _metrics_response(service: Service) -> Response:
    text = service.metrics.to_text(tools=service.registry.tools, running=service.running)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _read_status(service: Service) -> Status:
    if service.draining:
        return "draining"
    return "ready" if service.registry.complete else "starting"
