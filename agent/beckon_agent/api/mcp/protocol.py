"""The MCP server in terms of the SDK. Only this module and those that it imports import the SDK."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from beckon_agent.api.http.errors import STORE_UNAVAILABLE
from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.agent_tool import agent_behind
from beckon_agent.api.mcp.awaited_calls import AwaitedCalls
from beckon_agent.api.mcp.call import (
    REFUSALS,
    MadeCall,
    MakeCall,
    McpCalls,
    RequestedCall,
    SendProgress,
    to_refusal,
)
from beckon_agent.api.mcp.event_methods import EventMethods
from beckon_agent.api.mcp.input_requests import input_methods, refuse_request, request_approval
from beckon_agent.api.mcp.notifications import Changes, TooManyListeners
from beckon_agent.api.mcp.pages import page_of
from beckon_agent.api.mcp.resources import RunResources
from beckon_agent.api.mcp.results import output_schema, to_call_result
from beckon_agent.api.mcp.sessions import LOGGED_AT, SESSION_HEADER, LoggingSessions
from beckon_agent.api.mcp.stored_calls import StoredCalls, is_slow
from beckon_agent.api.mcp.tasks import TaskMethods
from beckon_agent.core.context import request_id
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.caller import InputNeeded, refuse_input
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.validation import NeedsApproval
from beckon_contract.failures import Reason
from beckon_contract.resources.tools import Tool
from beckon_runtime.logs import point_to_log


def _declare_tool(tool: Tool, *, any_json: bool) -> dict[str, object]:
    schema = output_schema(tool, any_json=any_json)
    return {
        "name": tool.name,
        "title": tool.event_type,
        "description": tool.description,
        "inputSchema": tool.parameters,
        **({} if schema is None else {"outputSchema": schema}),
        "annotations": {
            "readOnlyHint": tool.read_only,
            # Where an EventType says nothing of it, a client should rather ask once too often.
            "destructiveHint": not tool.read_only if tool.destructive is None else tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": True,  # a service may talk to whomever it likes
        },
    }


logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

_FRESH = CacheHint(
    ttl_ms=1_000
)  # for those who do not listen; private, because agents differ in whom they serve


class Protocol(Server[Any]):
    """Answers client requests for the agent in `request_info.current`."""

    def __init__(
        self,
        calling: McpCalls,
        changes: Changes,
        logging_sessions: LoggingSessions,
        calls: StoredCalls | None = None,
        events: EventMethods | None = None,
    ) -> None:
        super().__init__(
            "beckon",
            version=version("beckon-agent"),
            title="Beckon",
            cache_hints={
                "tools/list": _FRESH,
                "prompts/list": _FRESH,
                "resources/list": _FRESH,
                "resources/templates/list": _FRESH,
                "resources/read": _FRESH,
            },
            get_tool_input_schema=_load_schema,
        )
        self._calling = calling
        self._changes = changes
        self._logging = logging_sessions
        self._requesting: set[tuple[str, str]] = set()  # agents and tools of theirs that have requested input
        self._tasks = None if calls is None else TaskMethods(calls)
        self._awaited = None if calls is None else AwaitedCalls(calls)
        if self._tasks is not None:
            self._tasks.add_to(self)
        if calls is not None:
            RunResources(calls.store).add_to(self)
        if events is not None:
            events.add_to(self)
        self.middleware.append(_guard_handler)
        self.add_request_handler("tools/list", types.PaginatedRequestParams, self._list_tools)
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_log_level)
        self.add_request_handler("prompts/list", types.PaginatedRequestParams, _list_prompts)
        self.add_request_handler("prompts/get", types.GetPromptRequestParams, _read_prompt)
        self.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen_to_changes
        )
        self.add_notification_handler(
            "notifications/cancelled", types.CancelledNotificationParams, self._cancel_call
        )

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return the capabilities: of changes, those of tools alone are announced.

        `server` sends them on a stream of its own. The SDK's `notification_options` know nothing of it.
        """
        capabilities = super().get_capabilities(
            NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        prompts = types.PromptsCapability() if capabilities.prompts else None
        resources = types.ResourcesCapability() if capabilities.resources else None
        return capabilities.model_copy(update={"prompts": prompts, "resources": resources})

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams) -> HandlerResult:
        tools = notifications.current.get().hosted.catalogue.current.tools
        names, rest = page_of(tools, params.cursor)
        declared = [_declare_tool(tools[name], any_json=_takes_any_json(context)) for name in names]
        return {"tools": declared, **rest, "resultType": "complete"}

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> HandlerResult:
        now = notifications.current.get()
        # Not orjson, which has no word for some numbers that the parser of requests takes.
        arguments = json.dumps(params.arguments or {})
        wanted = RequestedCall(now.hosted, params.name, arguments, _report_sender(context, params.name))
        schema = output_schema(_find_tool(params.name), any_json=_takes_any_json(context))
        outcome = await self._make_call(context, wanted, params)
        if isinstance(outcome, dict):
            return outcome
        if outcome.failed and (message := _unknown_tool(outcome.result)):
            raise MCPError(types.INVALID_PARAMS, message)
        return to_call_result(outcome, any_json=_takes_any_json(context), schema=schema)

    async def _set_log_level(self, context: Context, params: types.SetLevelRequestParams) -> HandlerResult:
        """Take the level of a session; since 2026-07-28 it is part of each request."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
        session = notifications.current.get().session
        if session is None:
            raise MCPError(
                types.INVALID_PARAMS, f"the level is of a session: send the header {SESSION_HEADER}"
            )
        self._logging.set_level(session, params.level)
        return {}

    async def _make_call(
        self, context: Context, wanted: RequestedCall, params: types.CallToolRequestParams
    ) -> MadeCall:
        """Make a call, or return what has to come before: a task, or a form for a person."""
        key = notifications.current.get().session, context.request_id
        answers = params.input_responses
        if params.request_state is not None and self._awaited is not None:
            resume = partial(self._awaited.resume_call, params.request_state, answers, context)
            return await self._calling.make_call(wanted, key, resume)
        ready = await self._create_task(context, wanted) or request_approval(context, wanted, answers)
        if not isinstance(ready, RequestedCall):
            return ready
        try:
            return await self._calling.make_call(ready, key, self._maker_of(context, ready, answers))
        except InputNeeded as needed:
            if needed.request.limit_to(input_methods(context)) is None:
                return refuse_request(context, wanted, needed.request)
            if self._awaited is None:
                return refuse_input(ToolCall("requested", wanted.name, wanted.arguments), needed.request)
            # It has no effect before its first request: so it can be called once more, as a stored run.
            self._requesting.add((wanted.hosted.name, wanted.name))
            return await self._calling.make_call(
                ready, key, partial(self._awaited.make_call, context, answers)
            )

    async def _create_task(
        self, context: Context, wanted: RequestedCall
    ) -> dict[str, object] | CallFinished | None:
        """Return a new task, or the reason for none; `None` for a call that ends with its request."""
        if self._tasks is None:
            return None
        try:
            return await self._tasks.create_task(context, wanted)
        except REFUSALS as error:
            return to_refusal(wanted, error)

    def _maker_of(
        self, context: Context, wanted: RequestedCall, answers: types.InputResponses | None
    ) -> MakeCall | None:
        """Return how to make a call that may have to wait; `None` for any other."""
        if self._awaited is None:
            return None
        action, agent = wanted.prepare().action, agent_behind(wanted.hosted, wanted.name)
        refused = isinstance(action, CallOutcome) and agent is None
        undecided = isinstance(action, NeedsApproval) and not wanted.approved
        requests = (wanted.hosted.name, wanted.name) in self._requesting and bool(input_methods(context))
        waits = undecided or ((requests or is_slow(wanted.name, wanted.hosted)) and not refused)
        return partial(self._awaited.make_call, context, answers) if waits else None

    async def take_answer(self, message: Mapping[str, object]) -> str | None:
        """Take a client's answer to a request of ours; return what is wrong with it."""
        if self._awaited is None:
            return None
        return await self._awaited.take_answer(message.get("id"), message.get("result"))

    async def _cancel_call(self, _: Context, params: types.CancelledNotificationParams) -> None:
        await self._calling.cancel_call((notifications.current.get().session, params.request_id))

    async def _listen_to_changes(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Stream changes of the tools and of tasks until the service ends.

        Other notifications of the request are not available.
        """
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        wanted = params.notifications.tools_list_changed is True
        tasks = await self._tasks.find_subscribed(context, params.notifications) if self._tasks else None
        more: dict[str, Any] = {} if tasks is None else {"taskIds": tasks}
        honoured = types.SubscriptionFilter(tools_list_changed=True if wanted else None, **more)
        acknowledged = types.SubscriptionsAcknowledgedNotification(
            params=types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
        )
        try:
            with self._changes.listen_to(notifications.current.get().hosted.name) as listener:
                await context.session.send_notification(acknowledged, context.request_id)
                async with self._watch_tasks(context, tasks or (), meta):
                    while await listener.wait_for_change():
                        if wanted:
                            note = _change_notification(meta)
                            await context.session.send_notification(note, context.request_id)
        except TooManyListeners as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return types.SubscriptionsListenResult(_meta=meta)

    @contextlib.asynccontextmanager
    async def _watch_tasks(
        self, context: Context, tasks: Sequence[str], meta: Mapping[str, Any]
    ) -> AsyncIterator[None]:
        """Send the changes of tasks during the block."""
        if self._tasks is None or not tasks:
            yield
            return
        watching = asyncio.create_task(self._tasks.watch_tasks(context, tasks, meta))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


class Handlers:
    """The SDK's handlers of HTTP requests, without sessions.

    So any replica can take any request. `streaming` answers with a stream (since 2026-07-28 only if there
    is anything to report), `plain` with JSON.
    """

    def __init__(self, protocol: Protocol, max_request_bytes: int) -> None:
        self.take_answer = protocol.take_answer
        self.streaming, self.plain = (
            StreamableHTTPSessionManager(
                protocol, stateless=True, json_response=plain, max_request_body_size=max_request_bytes
            )
            for plain in (False, True)
        )

    async def run_managers(self, begun: asyncio.Event, stopping: asyncio.Event) -> None:
        """Start and stop the SDK's session managers in one task."""
        async with self.streaming.run(), self.plain.run():
            begun.set()
            await stopping.wait()


async def _list_prompts(_: Context, __: types.PaginatedRequestParams) -> types.ListPromptsResult:
    """Return the prompt of the agent, if its owner publishes it."""
    hosted = notifications.current.get().hosted
    description = f"The instructions of the agent {hosted.name}."
    listed = types.Prompt(name=hosted.name, description=description)
    return types.ListPromptsResult(prompts=[listed] if hosted.agent.publish_prompt else [])


async def _read_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    hosted = notifications.current.get().hosted
    if params.name != hosted.name or not hosted.agent.publish_prompt:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:80]!r} here")
    text = types.TextContent(type="text", text=hosted.agent.system_prompt)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


def _find_tool(name: str) -> Tool | None:
    return notifications.current.get().hosted.catalogue.current.tools.get(name)


def _load_schema(name: str) -> Mapping[str, Any] | None:
    tool = _find_tool(name)
    return tool.parameters if tool else None


def _takes_any_json(context: Context) -> bool:
    """Return True if the client's revision allows structured content of any kind."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _report_sender(context: Context, name: str) -> SendProgress | None:
    """Return how a tool's reports are sent: as progress, as log messages, or both; `None` for neither."""
    meta = context.meta or {}
    is_logged = notifications.current.get().is_logged or meta.get(types.LOG_LEVEL_META_KEY) in LOGGED_AT
    if not is_logged:
        return context.session.report_progress if meta.get("progress_token") is not None else None

    async def send_report(done: float, total: float | None, message: str | None) -> None:
        await context.session.report_progress(done, total, message)
        if message:
            params = types.LoggingMessageNotificationParams(level="info", logger=name, data=message)
            note = types.LoggingMessageNotification(params=params)
            await context.session.send_notification(note, context.request_id)

    return send_report


def _unknown_tool(result: object) -> str | None:
    """Return the message of a call to an unknown tool.

    MCP reports it as an error of the request, since it is no failure of a tool. `None` for other results.
    """
    match result:
        case {"error": {"reason": Reason.UNKNOWN_TOOL, "message": str(message)}}:
            return message
    return None


def _change_notification(meta: dict[str, Any]) -> types.ToolListChangedNotification:
    return types.ToolListChangedNotification(params=types.NotificationParams(_meta=meta))


async def _guard_handler(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Log an unexpected error, and answer without its details."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except StoreUnavailable as error:
        logger.warning("request %s: the store does not answer: %s", request_id(), error)
        raise MCPError(types.INTERNAL_ERROR, STORE_UNAVAILABLE) from error
    except Exception as error:
        logger.exception("request %s: %s failed", request_id(), ctx.method)
        message = f"an unexpected error; {point_to_log('agent', request_id())}"
        raise MCPError(types.INTERNAL_ERROR, message) from error
