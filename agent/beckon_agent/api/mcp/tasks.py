"""Tasks of MCP clients: tool calls as stored runs.

The extension `io.modelcontextprotocol/tasks` of revision 2026-07-28 (SEP-2663). A task is a run with one call
and no model, and its id is the run's. So it survives its process, and every replica with the same store
answers for it.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.call import RequestedCall
from beckon_agent.api.mcp.input_requests import input_methods, open_requests, take_answers, takes_forms
from beckon_agent.api.mcp.results import output_schema, to_call_result
from beckon_agent.api.mcp.stored_calls import StoredCalls, is_slow, task_members
from beckon_agent.core.context import request_id
from beckon_agent.core.records import FINAL, StoredRun
from beckon_agent.core.run_events import CallFinished
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.validation import NeedsApproval
from beckon_contract.inputs import METHODS
from beckon_contract.resources.tools import Tool

EXTENSION = "io.modelcontextprotocol/tasks"
_SHOWN_ID = 80  # characters
_MOST_SUBSCRIBED = 20  # tasks of one stream: each is looked up in the store
_SHORTEST_LOOK, _LONGEST_LOOK = 0.5, 5.0  # seconds

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(max_length=200)


class TaskNotification(BaseModel):
    """The notification of a task's state."""

    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`. An answer is read only if there is a request for it."""

    input_responses: dict[str, Any]


def declares_tasks(context: Context) -> bool:
    """Return True if the client of a request takes tasks."""
    capabilities = context.session.client_capabilities
    declared = capabilities is not None and EXTENSION in (capabilities.extensions or {})
    return declared and context.protocol_version in MODERN_PROTOCOL_VERSIONS


class TaskMethods:
    """The methods of the extension, and the creation of tasks."""

    def __init__(self, calls: StoredCalls) -> None:
        self._calls = calls

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods, and announce the extension to clients of 2026-07-28."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get_task)
        server.add_request_handler("tasks/update", TaskUpdateParams, self._update_task)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel_task)

    async def create_task(self, context: Context, wanted: RequestedCall) -> dict[str, object] | None:
        """Create a task for a call, if its client takes one.

        It is one if its tool may be slow, or if a person at the client has to allow it. Returns the members
        of a CreateTaskResult once the task is stored, else `None`. Raises the errors of `Engine.start`.
        """
        if not declares_tasks(context):
            return None
        prepared = wanted.prepare()
        action = prepared.action
        slow = isinstance(action, Tool) and is_slow(wanted.name, wanted.hosted)
        if not slow and not (isinstance(action, NeedsApproval) and takes_forms(context)):
            return None
        run = await self._calls.start_call(wanted.hosted, prepared)
        return {"resultType": "task", **task_members(run, (), self._calls.keep_seconds)}

    async def find_subscribed(self, context: Context, notes: types.SubscriptionFilter) -> list[str] | None:
        """Return those tasks of a subscription that the client may see; `None` if it names no tasks.

        Raises `MCPError` for a list that cannot be read, and for a client without the extension.
        """
        task_ids = (notes.model_extra or {}).get("taskIds")
        if task_ids is None:
            return None
        _require_tasks(context)
        if not isinstance(task_ids, list) or not all(isinstance(one, str) for one in task_ids):
            raise MCPError(types.INVALID_PARAMS, "notifications.taskIds must be a list of task ids")
        if len(task_ids) > _MOST_SUBSCRIBED:
            message = f"notifications.taskIds has more than {_MOST_SUBSCRIBED} tasks; open several streams"
            raise MCPError(types.INVALID_PARAMS, message)
        hosted = notifications.current.get().hosted
        return [one for one in dict.fromkeys(task_ids) if await self._calls.find_run(one, hosted) is not None]

    async def watch_tasks(self, context: Context, tasks: Sequence[str], meta: Mapping[str, Any]) -> None:
        """Send the state of tasks to their client, now and at each change, until all have ended."""
        known, pause = dict[str, object].fromkeys(tasks), _SHORTEST_LOOK
        while known:
            changed = False
            for task in list(known):
                try:
                    changed |= await self._send_change(context, task, known, meta)
                except StoreUnavailable as error:
                    logger.warning("request %s: a task is looked up later: %s", request_id(), error)
            pause = _SHORTEST_LOOK if changed else min(1.5 * pause, _LONGEST_LOOK)
            await asyncio.sleep(pause)

    async def _send_change(
        self, context: Context, task: str, known: dict[str, object], meta: Mapping[str, Any]
    ) -> bool:
        """Send the state of a task unless it is `known`; an ended task is known no more."""
        run = await self._calls.find_run(task, notifications.current.get().hosted)
        if run is None:
            del known[task]
            return False
        members = await self._describe_task(context, run)
        state = {name: value for name, value in members.items() if name != "pollIntervalMs"}
        changed = state != known.get(task)
        known[task] = state
        if changed:
            note: Any = TaskNotification(params={**members, "_meta": meta})
            await context.session.send_notification(note, context.request_id)
        if run.status in FINAL:
            del known[task]
        return changed

    async def _get_task(self, context: Context, params: TaskParams) -> HandlerResult:
        run = await self._find_task(context, params)
        return {"resultType": "complete", **await self._describe_task(context, run)}

    async def _update_task(self, context: Context, params: TaskUpdateParams) -> HandlerResult:
        """Take a person's answer to a form. Answers to anything else than the open request are ignored."""
        run = await self._find_task(context, params)
        for call in (await self._calls.store.runs.load_past(run.id)).calls:
            if not call.needs_person:
                continue
            methods, responses = _methods_of(context), params.input_responses
            answers = {
                one.name: responses[one.id] for one in open_requests(call, methods) if one.id in responses
            }
            if answers:
                await take_answers(self._calls, call, answers, methods)
        return {"resultType": "complete"}

    async def _cancel_task(self, context: Context, params: TaskParams) -> HandlerResult:
        run = await self._find_task(context, params)
        await self._calls.engine.cancel(run.id)
        return {"resultType": "complete"}

    async def _find_task(self, context: Context, params: TaskParams) -> StoredRun:
        """Return the run of a task of the current principal; raise `MCPError` for any other id."""
        _check_request(context, params)
        run = await self._calls.find_run(params.task_id, notifications.current.get().hosted)
        if run is None:
            message = f"there is no task {params.task_id[:_SHOWN_ID]!r}: it never was, or its time has ended"
            raise MCPError(types.INVALID_PARAMS, message)
        return run

    async def _describe_task(self, context: Context, run: StoredRun) -> dict[str, object]:
        """Return the members of a DetailedTask."""
        past = await self._calls.store.runs.load_past(run.id)
        members = task_members(run, past.calls, self._calls.keep_seconds)
        if members["status"] == "input_required":
            members["inputRequests"] = {
                one.id: one.request
                for call in past.calls
                if call.needs_person
                for one in open_requests(call, _methods_of(context))
            }
        elif members["status"] == "failed":
            members["error"] = {"code": types.INTERNAL_ERROR, "message": members["statusMessage"]}
        elif members["status"] == "completed" and (end := await self._calls.read_end(run, past)) is not None:
            members["result"] = _to_result(end)
        return members


def _methods_of(context: Context) -> Collection[str]:
    """Return the methods that a client answers; all for one that declares none, which only shows the task."""
    return input_methods(context) or METHODS


def _check_request(context: Context, params: TaskParams) -> None:
    """Raise `MCPError` for a client without the extension, or with a header of another task."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
    _require_tasks(context)
    headers: Mapping[str, str] = getattr(context.request, "headers", {})
    if decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
        message = f"the header {MCP_NAME_HEADER!r} must be the value of params.taskId"
        raise MCPError(types.HEADER_MISMATCH, message)


def _require_tasks(context: Context) -> None:
    if not declares_tasks(context):
        message = f"{context.method} needs the client capability {EXTENSION}; declare it in this request"
        required: dict[str, object] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, required)


def _to_result(end: CallFinished) -> dict[str, object]:
    """Return the members of the result of a task."""
    tool = notifications.current.get().hosted.catalogue.current.tools.get(end.name)
    return to_call_result(end, any_json=True, schema=output_schema(tool, any_json=True))
