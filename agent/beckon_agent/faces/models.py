"""OpenAI's model list: `GET /v1/models` names the agents."""

import time

from fastapi import APIRouter

from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.service import Service


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()
    created = int(time.time())

    def document(name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": created, "owned_by": "beckon"}

    @routes.get("/v1/models")
    async def list_models() -> dict[str, object]:
        """List the agents, each a model in OpenAI's sense."""
        return {"object": "list", "data": [document(name) for name in service.agents]}

    @routes.get("/v1/models/{name}")
    async def get_model(name: str) -> dict[str, object]:
        """Describe one agent."""
        if name not in service.agents:
            raise FaceError(404, f"there is no agent {name[:80]!r}", code="model_not_found", param="model")
        return document(name)

    return routes
