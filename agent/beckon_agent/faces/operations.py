"""For those who run the service: `/healthz`, `/readyz`, `/metrics`."""

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, PlainTextResponse, Response

from beckon_agent.roster import Hosted
from beckon_agent.service import Service


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answer that the process lives, and which service it is."""
        return {"status": "ok", "service": "beckon-agent"}

    @routes.get(
        "/readyz",
        response_model=None,
        responses={503: {"description": "The agent is shutting down, or has not read its tools yet."}},
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

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return the numbers for Prometheus."""
        text = service.metrics.text(tools=service.roster.tools, running=service.running)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return routes


def _status(service: Service) -> str:
    if service.draining:
        return "draining"
    return "ready" if service.roster.complete else "starting"
