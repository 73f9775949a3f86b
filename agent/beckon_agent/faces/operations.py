"""For those who run the service: `/healthz`, `/readyz`, `/metrics`."""

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, PlainTextResponse, Response

from beckon_agent.faces.described import INTEGER, answer, listed, maybe, obj, word
from beckon_agent.roster import Hosted
from beckon_agent.service import Service

_STATE = obj(
    status=word("ready", "starting", "draining"),
    model=maybe(word()),
    tools=INTEGER,
    agents=listed(word()),
)


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    alive = answer("The process lives.", obj(status=word("ok"), service=word()))

    @routes.get("/healthz", operation_id="healthz", responses=alive)
    async def healthz() -> dict[str, str]:
        """Answer that the process lives, and which service it is."""
        return {"status": "ok", "service": "beckon-agent"}

    @routes.get(
        "/readyz",
        response_model=None,
        operation_id="readyz",
        responses={
            **answer("Requests are welcome.", _STATE),
            503: {
                "description": "The agent is shutting down, or has not read its tools yet.",
                "content": {"application/json": {"schema": _STATE}},
            },
        },
    )
    async def readyz() -> Response:
        """Answer whether requests are welcome, and what the agent works with."""
        roster = service.roster
        default = roster.find(roster.default)
        status = _status(service)
        state = {
            "status": status,
            "model": default.model.name if isinstance(default, Hosted) else None,
            "tools": roster.tools,
            "agents": [hosted.name for hosted in roster.hosted()],
        }
        return JSONResponse(state, 200 if status == "ready" else 503)

    @routes.get("/metrics", operation_id="metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return the numbers for Prometheus."""
        text = service.metrics.text(tools=service.roster.tools, running=service.running)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return routes


def _status(service: Service) -> str:
    if service.draining:
        return "draining"
    return "ready" if service.roster.complete else "starting"
