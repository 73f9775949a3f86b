"""OpenAI's model list: `GET /v1/models` names the agents."""

import time

from fastapi import APIRouter

from beckon_agent.faces.openai_errors import FaceError, openai_responses
from beckon_agent.runs import Agent
from beckon_agent.service import Service


def find_agent(service: Service, name: str) -> Agent:
    """Return the agent that a client calls a model; raise a 404 that names those there are."""
    agent = service.agents.get(name)
    if agent is None:
        known = ", ".join(sorted(service.agents))
        message = f"there is no agent {name[:80]!r}; set 'model' to one of: {known}"
        raise FaceError(404, message, code="model_not_found", param="model")
    return agent


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()
    created = int(time.time())

    def document(agent: Agent) -> dict[str, object]:
        return {"id": agent.name, "object": "model", "created": created, "owned_by": "beckon"}

    @routes.get("/v1/models")
    async def list_models() -> dict[str, object]:
        """List the agents, each a model in OpenAI's sense."""
        return {"object": "list", "data": [document(agent) for agent in service.agents.values()]}

    @routes.get(
        "/v1/models/{name}",
        responses=openai_responses(_404="There is no agent of this name.", default="Any other error."),
    )
    async def get_model(name: str) -> dict[str, object]:
        """Describe one agent."""
        return document(find_agent(service, name))

    return routes
