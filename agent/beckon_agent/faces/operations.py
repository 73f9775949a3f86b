"""For those who run the service: `/healthz`, `/readyz`, `/metrics`."""

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, PlainTextResponse, Response

from beckon_agent.service import Service


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answer that the process lives, and which service it is."""
        return {"status": "ok", "service": "beckon-agent"}

    @routes.get(
        "/readyz", response_model=None, responses={503: {"description": "The agent is shutting down."}}
    )
    async def readyz() -> Response:
        """Answer whether requests are welcome, and what the agent works with."""
        state = {
            "status": "draining" if service.draining else "ready",
            "model": service.model.name,
            "tools": len(service.catalogue.current.tools),
            "agents": list(service.agents),
        }
        return JSONResponse(state, 503 if service.draining else 200)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return the numbers for Prometheus."""
        text = service.metrics.text(tools=len(service.catalogue.current.tools), running=service.running)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return routes
