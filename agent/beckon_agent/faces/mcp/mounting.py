"""Putting the face into the agent's application."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from beckon_agent.faces.mcp.face import SESSION_HEADER, McpFace, McpSettings
from beckon_agent.service import Service

_THIS_MACHINE = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


def mount(app: FastAPI, service: Service, settings: McpSettings) -> McpFace:
    """Serve MCP at `/mcp` and `/mcp/{agent}`; the face's `serving` belongs into the lifespan of the app."""
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
