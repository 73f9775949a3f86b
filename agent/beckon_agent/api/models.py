"""OpenAI's model list: `GET /v1/models` names the agents."""

import time
from typing import Literal

from fastapi import APIRouter
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.http.errors import ApiError, openai_responses
from beckon_agent.api.http.openapi import JsonResponse, describe_answer, describe_operation, link_to
from beckon_agent.service import Service

_SHOWN_AGENTS = 20
_LINK = link_to("retrieveModel", name="$response.body#/data/0/id")


class ModelDocument(TypedDict):
    """An agent as a model of OpenAI's."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    """All agents."""

    object: Literal["list"]
    data: list[ModelDocument]


def find_agent(service: Service, name: str) -> AgentHandle:
    """Return the agent named as a model by a client.

    Raises `ApiError`: a 404 with the names of the known agents, or a 503 if it cannot take requests now.
    """
    match service.registry.find(name):
        case AgentHandle() as agent:
            return agent
        case UnavailableAgent() as agent:
            raise ApiError(503, not_served(agent), code="agent_not_ready", param="model")
    if not service.registry.complete:
        raise ApiError(503, "the agents are not all known yet; retry shortly", code="overloaded")
    message = f"there is no agent {name[:80]!r}; set 'model' to one of: {known_agents(service)}"
    raise ApiError(404, message, code="model_not_found", param="model")


def known_agents(service: Service) -> str:
    """Return the names of the agents taking requests, for a message."""
    names = sorted(hosted.name for hosted in service.registry.hosted())
    more = len(names) - _SHOWN_AGENTS
    return ", ".join(names[:_SHOWN_AGENTS]) + (f" and {more} more" if more > 0 else "")


def not_served(agent: UnavailableAgent) -> str:
    """Return the message for an agent unable to take requests."""
    return f"the agent {agent.name!r} takes no requests now ({agent.reason}): {agent.message}"


def make_router(service: Service) -> APIRouter:
    """Return the routes of the model list."""
    routes = APIRouter()
    created = int(time.time())

    def to_document(hosted: AgentHandle) -> ModelDocument:
        return {"id": hosted.name, "object": "model", "created": created, "owned_by": "beckon"}

    listed = describe_answer("The agents.", retrieve=_LINK), openai_responses(default="Any error.")

    @routes.get("/v1/models", **describe_operation("listModels", *listed))
    async def list_models() -> JsonResponse[ModelList]:
        """List the agents, each a model in OpenAI's sense."""
        agents = service.registry.hosted()
        return JsonResponse({"object": "list", "data": [to_document(hosted) for hosted in agents]})

    errors = openai_responses(
        _404="There is no agent of this name.",
        _503="The agent cannot take requests; the message says why.",
        default="Any other error.",
    )

    @routes.get(
        "/v1/models/{name:path}",  # an agent of another namespace is namespace/name
        **describe_operation("retrieveModel", describe_answer("The agent."), errors),
    )
    async def get_model(name: str) -> JsonResponse[ModelDocument]:
        """Describe one agent."""
        return JsonResponse(to_document(find_agent(service, name)))

    return routes
