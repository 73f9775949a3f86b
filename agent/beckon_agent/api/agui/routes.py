"""The routes of AG-UI: `/ag-ui` for the default agent, `/agents/NAME/ag-ui` for any.

The protocol's package is imported with the first request (docs/decisions/0037-a-light-start.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Request

from beckon_agent.api.http.errors import EXPECTED, ApiError, problem_responses, to_problem
from beckon_agent.api.http.openapi import describe_answer, describe_operation
from beckon_agent.api.http.streaming import EventStream, StreamPace
from beckon_agent.api.tools import chosen_agent
from beckon_agent.core.context import owner_of
from beckon_agent.durable.base import Engine
from beckon_agent.service import Service
from beckon_agent.store.base import Store

if TYPE_CHECKING:
    from beckon_agent.api.agui.runs import AguiRuns


RunInput = Annotated[
    dict[str, Any],
    Body(
        description="A `RunAgentInput` of AG-UI 1.0.",
        json_schema_extra={
            "properties": {
                "threadId": {"type": "string", "minLength": 1, "maxLength": 200},
                "runId": {"type": "string", "minLength": 1, "maxLength": 200},
                "messages": {"type": "array", "items": {"type": "object"}, "maxItems": 10_000},
            },
            "required": ["threadId", "runId", "messages"],
        },
    ),
]
_RESPONSES = {
    **describe_answer("The run, as server-sent events of AG-UI."),
    **problem_responses(
        _400="The request is not valid; the answer names the field, the rule and the cure.",
        _404="There is no agent of this name.",
        _429="A quota is used up; Retry-After says when it has room again.",
        _503="No run can begin now; Retry-After says when to send it again.",
        default="Any other error, in the same shape.",
    ),
}


def make_router(service: Service, engine: Engine, store: Store, pace: StreamPace) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()

    @routes.post("/ag-ui", **describe_operation("runDefaultAgent", _RESPONSES))
    async def run_default_agent(body: RunInput, request: Request) -> EventStream:
        """Run the default agent for a client of AG-UI."""
        return await answer_run(None, body, request)

    @routes.post("/agents/{name}/ag-ui", **describe_operation("runAgent", _RESPONSES))
    async def run_agent(name: str, body: RunInput, request: Request) -> EventStream:
        """Run an agent for a client of AG-UI."""
        return await answer_run(name, body, request)

    async def answer_run(name: str | None, body: dict[str, Any], request: Request) -> EventStream:
        hosted = chosen_agent(service, name)
        runs = (await asyncio.to_thread(_load_runs))(engine, store, pace.keep_alive)
        try:
            chunks: AsyncGenerator[bytes] = await runs.begin_stream(hosted, body, owner_of(request))
        except (ApiError, *EXPECTED) as error:
            raise to_problem(error) from error
        return EventStream(chunks, pace.stalled)

    return routes


def _load_runs() -> type[AguiRuns]:
    from beckon_agent.api.agui.runs import AguiRuns  # noqa: PLC0415  # heavy, and not always needed

    return AguiRuns
