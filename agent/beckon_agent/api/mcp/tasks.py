"""Tasks of MCP clients: tool calls as stored runs.

The extension `io.modelcontextprotocol/tasks` of revision 2026-07-28 (SEP-2663). A task is a run with one call
and no model, and its id is the run's. So it survives its process, and every replica with the same store
answers for it.
"""

import secrets
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.call import RequestedCall
from beckon_agent.api.mcp.results import output_schema, to_call_result
from beckon_agent.api.mcp.task_documents import TaskRuns, is_slow, task_members
from beckon_agent.core.context import current_principal
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.records import NewRun, StoredCall, StoredRun
from beckon_agent.core.run_events import CallFinished
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask
from beckon_agent.tool_calls.validation import prepare_calls
from beckon_contract.resources.tools import Tool

EXTENSION = "io.modelcontextprotocol/tasks"
FACE = "mcp"
"""What runs of this face are stored under."""

_SHOWN_ID = 80  # characters

Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(max_length=200)


def declares_tasks(context: Context) -> bool:
    """Return True if the client of a request takes tasks."""
    capabilities = context.session.client_capabilities
    declared = capabilities is not None and EXTENSION in (capabilities.extensions or {})
    return declared and context.protocol_version in MODERN_PROTOCOL_VERSIONS


class TaskMethods:
    """The methods of the extension, and the creation of tasks."""

    def __init__(self, runs: TaskRuns) -> None:
        self._runs = runs

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods, and announce the extension to clients of 2026-07-28."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get_task)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel_task)

    async def create_task(self, context: Context, wanted: RequestedCall) -> dict[str, object] | None:
        """Create a task for a call, if its client takes one and its tool may be slow.

        Returns the members of a `CreateTaskResult` once the task is stored, else `None`. Raises the errors
        of `Engine.start`.
        """
        if not declares_tasks(context) or not is_slow(wanted.name, wanted.hosted):
            return None
        requested = ToolCall("requested", wanted.name, wanted.arguments)
        prepared = prepare_calls([requested], wanted.hosted.catalogue.current.tools)[0]
        if not isinstance(prepared.action, Tool):  # it is refused at once
            return None
        new = NewRun(
            id=f"task_{secrets.token_hex(16)}",
            owner=current_principal().id,
            agent=wanted.hosted.name,
            face=FACE,
            input=[{"role": "user", "content": f"{wanted.name} {wanted.arguments}"}],
            background=True,
        )
        run = await self._runs.engine.start(Ask(new, wanted.hosted, Options(requested_call=requested)))
        return {"resultType": "task", **task_members(run, None, self._runs.keep_seconds)}

    async def _get_task(self, context: Context, params: TaskParams) -> HandlerResult:
        run = await self._find_task(context, params)
        return {"resultType": "complete", **await self._describe_task(run)}

    async def _cancel_task(self, context: Context, params: TaskParams) -> HandlerResult:
        run = await self._find_task(context, params)
        await self._runs.engine.cancel(run.id)
        return {"resultType": "complete"}

    async def _find_task(self, context: Context, params: TaskParams) -> StoredRun:
        """Return the run of a task of the current principal; raise `MCPError` for any other id."""
        _check_request(context, params)
        run = await self._runs.store.runs.get(params.task_id)
        hosted = notifications.current.get().hosted
        if run is None or not _is_task_of(run, hosted):
            message = f"there is no task {params.task_id[:_SHOWN_ID]!r}: it never was, or its time has ended"
            raise MCPError(types.INVALID_PARAMS, message)
        return run

    async def _describe_task(self, run: StoredRun) -> dict[str, object]:
        """Return the members of a `DetailedTask`."""
        calls = (await self._runs.store.runs.load_past(run.id)).calls
        call = calls[0] if calls else None
        members = task_members(run, call, self._runs.keep_seconds)
        if members["status"] == "completed" and call is not None:
            members["result"] = _to_result(call)
        elif members["status"] == "failed":
            members["error"] = {"code": types.INTERNAL_ERROR, "message": members["statusMessage"]}
        return members


def _check_request(context: Context, params: TaskParams) -> None:
    """Raise `MCPError` for a client without the extension, or with a header of another task."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
    if not declares_tasks(context):
        message = f"{context.method} needs the client capability {EXTENSION}; declare it in this request"
        required: dict[str, object] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, required)
    headers: Mapping[str, str] = getattr(context.request, "headers", {})
    if decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
        message = f"the header {MCP_NAME_HEADER!r} must be the value of params.taskId"
        raise MCPError(types.HEADER_MISMATCH, message)


def _is_task_of(run: StoredRun, hosted: AgentHandle) -> bool:
    """Return True if a run is a task of this agent and of the current principal."""
    return run.face == FACE and run.agent == hosted.name and run.owner == current_principal().id


def _to_result(call: StoredCall) -> dict[str, object]:
    """Return the members of the result of a task's call."""
    finished = CallFinished(call.id, call.name, call.result, call.failed, call.seconds or 0.0, call.tokens)
    tool = notifications.current.get().hosted.catalogue.current.tools.get(call.name)
    return to_call_result(finished, any_json=True, schema=output_schema(tool, any_json=True))
