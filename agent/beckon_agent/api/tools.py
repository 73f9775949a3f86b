"""The catalogue: `GET /tools`, and a manual call, `POST /tools/{name}`.

A client that accepts an event stream gets the tool's reports during a call.
"""

import json
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.requests import Request
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import JsonResponse, describe_answer, describe_operation, link_to
from beckon_agent.api.http.streaming import (
    KEEP_ALIVE,
    EventStream,
    PacedStream,
    StreamPace,
    cancel_on_hang_up,
    event_bytes,
)
from beckon_agent.api.models import known_agents, not_served
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.caller import InputNeeded, refuse_input
from beckon_agent.tool_calls.progress import ProgressReport, with_reports
from beckon_contract.resources.tools import Refusal, Skipped, Tool, declare
from beckon_runtime.problem import Problem, ProblemError


class ToolDocument(TypedDict):
    """A tool: what is sent to a model, and what decides how it is called."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None
    declaration: dict[str, Any]
    event_type: str
    namespace: str
    type: str
    broker: str
    triggers: list[str]
    parameters_from: str
    requires_approval: bool
    read_only: bool
    destructive: bool | None
    idempotent: bool


class ToolList(TypedDict):
    """The tools of an agent, and the EventTypes without a tool."""

    tools: list[ToolDocument]
    refused: Sequence[Refusal]
    skipped: Sequence[Skipped]


class ToolResult(TypedDict):
    """The result of a call, as its tool gave it."""

    result: Any
    seconds: float


class ProgressDocument(TypedDict):
    """A tool's progress report."""

    progress: float
    total: float | None
    message: str


async def _answer_or_stream(
    call: Coroutine[object, object, CallFinished], request: Request, pace: StreamPace
) -> JsonResponse[ToolResult] | EventStream:
    """Return the result of a call, or a stream with its reports.

    It is a stream if the client accepts one and the tool reports its progress, from the first report on.
    The events of the stream are `progress`, and at the end `result` or `problem`. Raises `ProblemError` for a
    failed call.
    """
    if "text/event-stream" not in request.headers.get("accept", ""):
        return JsonResponse(_to_result(await cancel_on_hang_up(request.receive, call)))
    stream = PacedStream(with_reports(call))
    try:
        first = await cancel_on_hang_up(request.receive, stream.take_item())
    except BaseException:
        await stream.close()
        raise
    if isinstance(first, ProgressReport):
        return EventStream(_call_stream(first, stream, pace.keep_alive), pace.stalled)
    await stream.close()
    if first is None:
        raise RuntimeError("a call ended without an outcome")
    return JsonResponse(_to_result(first))


async def _call_stream(
    first: ProgressReport, stream: PacedStream[ProgressReport | CallFinished], keep_alive: float
) -> AsyncGenerator[bytes]:
    try:
        yield _call_event(first)
        async for items in stream.yield_batches(keep_alive):
            yield b"".join(map(_call_event, items)) or KEEP_ALIVE
    finally:
        await stream.close()


def _call_event(item: ProgressReport | CallFinished) -> bytes:
    if isinstance(item, ProgressReport):
        return event_bytes("progress", _report_document(item))
    try:
        return event_bytes("result", _to_result(item))
    except ProblemError as error:
        return event_bytes("problem", error.problem.document())


def _report_document(report: ProgressReport) -> ProgressDocument:
    """Return a report as JSON."""
    return {"progress": report.done, "total": report.total, "message": report.message}


AgentName = Annotated[str | None, Query(description="The agent whose tools are meant, as in GET /v1/models.")]

_STATUS = {
    "unknown_tool": 404,
    "invalid_arguments": 422,
    "denied": 403,
    "timeout": 504,
    "outcome_unknown": 504,
}
_RESPONSES = {
    **describe_answer(
        "The tool's result, and how many seconds it took; or, in a stream, `progress` as often as the tool "
        "reports it, and at the end `result` or `problem`."
    ),
    **problem_responses(
        _400="The body is no JSON object.",
        _403="The tool wants a person's approval.",
        _404="There is no tool, or no agent, of this name.",
        _422="The arguments do not fit the tool's parameters; `problems` says why.",
        _429="A limit has no room; Retry-After says when it will.",
        _502="The tool failed, or the call could not be delivered; `reason` says which.",
        _503="No call can be made now.",
        _504="No answer came in time.",
        default="Any other error, in the same shape.",
    ),
}

_LISTED = {
    **describe_answer("The tools.", call=link_to("callTool", name="$response.body#/tools/0/name")),
    **problem_responses(
        _404="There is no agent of this name.",
        _503="The agent cannot take requests now.",
        default="Any other error, in the same shape.",
    ),
}


def make_router(service: Service, pace: StreamPace) -> APIRouter:
    """Return the routes of tools."""
    routes = APIRouter()

    @routes.get("/tools", **describe_operation("listTools", _LISTED))
    async def list_tools(agent: AgentName = None) -> JsonResponse[ToolList]:
        """List the tools as a model sees them, and what was refused or skipped, with the reason."""
        catalogue = chosen_agent(service, agent).catalogue.current
        return JsonResponse(
            {
                "tools": [tool_document(tool) for tool in catalogue.tools.values()],
                "refused": catalogue.refusals,
                "skipped": catalogue.skipped,
            }
        )

    @routes.post("/tools/{name}", **describe_operation("callTool", _RESPONSES))
    async def call_tool(
        name: str, arguments: Annotated[dict[str, Any], Body()], request: Request, agent: AgentName = None
    ) -> JsonResponse[ToolResult] | EventStream:
        """Call a tool through the Broker, without a model; its failure is a problem document.

        With `Accept: text/event-stream` the answer is a stream from the tool's first report of progress on.
        """
        # Not orjson, which has no word for some numbers that the parser of requests takes.
        text = json.dumps(arguments)
        try:
            call = _call_without_person(service, chosen_agent(service, agent), name, text)
            return await _answer_or_stream(call, request, pace)
        except (NoRoom, StoreUnavailable) as error:
            raise ProblemError(Problem(503, "overloaded", "Overloaded", str(error))) from error
        except LimitReached as error:
            wait = {"retry_after": error.retry_after}
            problem = Problem(429, "rate-limit-exceeded", "Rate limit exceeded", str(error), wait)
            raise ProblemError(problem) from error

    return routes


async def _call_without_person(
    service: Service, hosted: AgentHandle, name: str, arguments: str
) -> CallFinished:
    try:
        return await service.call_tool(hosted, name, arguments)
    except InputNeeded as needed:
        return refuse_input(ToolCall("by-hand", name, arguments), needed.request)


def _to_result(finished: CallFinished) -> ToolResult:
    """Return the result of a call; raise `ProblemError` if it failed."""
    if finished.failed:
        raise ProblemError(_to_problem(finished.result))
    return {"result": finished.result, "seconds": round(finished.seconds, 3)}


def chosen_agent(service: Service, name: str | None) -> AgentHandle:
    """Return the agent with a name, the default one without.

    Raises `ProblemError`: a 404 with the names of the known agents, or a 503 if it cannot take requests
    now.
    """
    match service.registry.find(name or service.registry.default):
        case AgentHandle() as agent:
            return agent
        case UnavailableAgent() as agent:
            raise ProblemError(Problem(503, "agent-not-ready", "Agent not ready", not_served(agent)))
    detail = f"there is no agent {(name or '')[:80]!r}; set 'agent' to one of: {known_agents(service)}"
    raise ProblemError(Problem(404, "unknown-agent", "Unknown agent", detail))


def tool_document(tool: Tool) -> ToolDocument:
    """Return a tool as JSON."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "returns": tool.returns,
        "declaration": declare(tool),
        "event_type": tool.event_type,
        "namespace": tool.namespace,
        "type": tool.type,
        "broker": tool.broker,
        "triggers": list(tool.routes),
        "parameters_from": tool.parameters_from,
        "requires_approval": tool.requires_approval,
        "read_only": tool.read_only,
        "destructive": tool.destructive,
        "idempotent": tool.idempotent,
    }


def _to_problem(result: object) -> Problem:
    error: Mapping[str, Any] = {}
    if isinstance(result, Mapping) and isinstance(result.get("error"), Mapping):
        error = result["error"]
    reason = str(error.get("reason", "tool_failed"))
    details = {key: value for key, value in error.items() if key != "message"}
    title = reason.replace("_", " ").capitalize()
    detail = str(error.get("message", "the tool failed"))
    limited = reason == "denied" and "retry_after" in details
    status = 429 if limited else _STATUS.get(reason, 502)
    return Problem(status, reason.replace("_", "-"), title, detail, details)
