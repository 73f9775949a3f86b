"""The operations of A2A over stored runs, behind the SDK's bindings of JSON-RPC and HTTP+JSON."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import InternalError as SdkFailure
from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.jsonrpc_models import MethodNotFoundError as MethodNotFound
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.request_handlers.response_helpers import prepare_response_object
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    MethodNotFoundError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_agent.api.a2a.calls import CALL, A2aCall, find_call
from beckon_agent.api.a2a.card import write_card
from beckon_agent.api.a2a.errors import protocol_errors
from beckon_agent.api.a2a.targets import TargetOperations
from beckon_agent.api.a2a.task_creation import TaskCreator
from beckon_agent.api.a2a.task_list import list_tasks
from beckon_agent.api.a2a.tasks import FACE, TaskUpdate, follow_task, read_task, wait_for_task
from beckon_agent.core.context import request_id
from beckon_agent.core.records import FINAL, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_runtime.egress import AllowedHosts
from beckon_runtime.logs import point_to_log

__all__ = ["make_interfaces", "write_card", "write_notification"]

logger = logging.getLogger(__name__)
# The SDK logs each wrong request with a stack trace. What fails here is logged by `to_api_error`.
logging.getLogger("a2a").setLevel(logging.CRITICAL)

_SHOWN = 80


class _CallContexts(DefaultServerCallContextBuilder):
    """Puts the call of a request into the SDK's context."""

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of a request."""
        context = super().build(request)
        context.state[CALL] = find_call(request.scope)
        return context


class TaskOperations(RequestHandler):
    """Each operation of the protocol, for the caller's tasks of one agent."""

    def __init__(self, engine: Engine, store: Store, allowed: AllowedHosts | None) -> None:
        self._engine = engine
        self._store = store
        self._targets = TargetOperations(store, allowed)
        self._creator = TaskCreator(engine, store, self._targets)

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Begin or continue a task; return it at its end, or when it waits."""
        call = find_call(context.state)
        with protocol_errors(call):
            validate_proto_required_fields(params)
            validate_history_length(params.configuration)
            run = await self._creator.accept_message(params, call)
            if not params.configuration.return_immediately:
                run = await wait_for_task(self._engine, self._store, run)
            return apply_history_length(await read_task(self._store, run), params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[TaskUpdate]:
        """Begin or continue a task, and yield its updates until it ends or needs an approval."""
        call = find_call(context.state)
        with protocol_errors(call):
            validate_proto_required_fields(params)
            run = await self._creator.accept_message(params, call)
            async with aclosing(follow_task(self._engine, self._store, run, hold=False)) as updates:
                async for update in updates:
                    yield update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[TaskUpdate]:
        """Yield the updates of a task from its start until its end."""
        call = find_call(context.state)
        with protocol_errors(call):
            run = await self._find_run(params.id, call)
            if run.status in FINAL:
                message = f"the task has ended, it is {run.status}; read it with GetTask"
                raise UnsupportedOperationError(message)
            async with aclosing(follow_task(self._engine, self._store, run, hold=True)) as updates:
                async for update in updates:
                    yield update

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task as it is now."""
        call = find_call(context.state)
        with protocol_errors(call):
            validate_history_length(params)
            run = await self._find_run(params.id, call)
            return apply_history_length(await read_task(self._store, run), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return the caller's tasks, the newest first."""
        call = find_call(context.state)
        with protocol_errors(call):
            return await list_tasks(self._store, params, call)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task that has not ended; what its tools have done stays done."""
        call = find_call(context.state)
        with protocol_errors(call):
            run: StoredRun | None = await self._find_run(params.id, call)
            if run is not None and run.status not in FINAL:
                run = await self._engine.cancel(run.id)
                if run is not None and run.status == "cancelled":
                    return await read_task(self._store, run)
            status = "deleted" if run is None else run.status
            raise TaskNotCancelableError(f"the task has ended, it is {status}; read it with GetTask")

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Add an address at which the client is notified of a task, or replace the one with its id."""
        call = find_call(context.state)
        with protocol_errors(call):
            run = await self._find_run(params.task_id, call)
            return await self._targets.put_target(run.id, params)

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return an address of a task."""
        call = find_call(context.state)
        with protocol_errors(call):
            run = await self._find_run(params.task_id, call)
            return await self._targets.find_target(run.id, params.id)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return all addresses of a task."""
        call = find_call(context.state)
        with protocol_errors(call):
            run = await self._find_run(params.task_id, call)
            return await self._targets.list_targets(run.id)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Delete an address of a task; one that does not exist is deleted already."""
        call = find_call(context.state)
        with protocol_errors(call):
            run = await self._find_run(params.task_id, call)
            await self._targets.delete_target(run.id, params.id)

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refuse: the card at the well-known address is made for its caller already."""
        message = "there is no other card: the one at the well-known address has all that its caller may use"
        raise ExtendedAgentCardNotConfiguredError(message)

    async def _find_run(self, task_id: str, call: A2aCall) -> StoredRun:
        """Return the run of the caller's task of this agent; raise `TaskNotFoundError` for any other id."""
        run = await self._engine.get(task_id)
        if run is None or (run.owner, run.agent, run.face) != (call.owner, call.hosted.name, FACE):
            raise TaskNotFoundError(f"there is no task {task_id[:_SHOWN]!r}: it was deleted, or is not yours")
        return run


async def write_notification(store: Store, run: StoredRun) -> Mapping[str, Any]:
    """Return the notification of a task as it is now, without its history (A2A 1.0, section 4.3.3)."""
    task = await read_task(store, run)
    task.ClearField("history")
    written = prepare_response_object(None, StreamResponse(task=task), (StreamResponse,))
    notification: Mapping[str, Any] = written["result"]
    return notification


class _CallReader(JsonRpcDispatcher):
    """The SDK's dispatcher, with the cause of a refusal in the message."""

    def _generate_error_response(
        self, request_id_: str | int | None, error: Exception | JSONRPCError | A2AError
    ) -> JSONResponse:
        cause = (getattr(error, "data", None) or {}).get("parseError")
        if isinstance(error, MethodNotFound):
            error = MethodNotFound(message=f"{error.message}; send one of: {', '.join(self.METHOD_TO_MODEL)}")
        elif isinstance(error, SdkFailure):
            logger.error("request %s: the A2A SDK failed: %s", request_id(), error.message)
            error = SdkFailure(message=f"an unexpected error; {point_to_log('agent', request_id())}")
        elif isinstance(error, A2AError) and cause:
            error = type(error)(f"{error.message}: {cause}", error.data)
        return super()._generate_error_response(request_id_, error)


def make_interfaces(
    service: Service, engine: Engine, store: Store, allowed: AllowedHosts | None = None
) -> ASGIApp:
    """Return the application of both bindings: JSON-RPC at `/`, HTTP+JSON at the paths below it.

    `allowed` are the hosts for push notifications; without it there are none.
    """
    operations, contexts = TaskOperations(engine, store, allowed), _CallContexts()
    dispatcher = _CallReader(operations, contexts, enable_v0_3_compat=True)
    rest = [
        route
        for route in create_rest_routes(operations, contexts)
        if isinstance(route, Route)  # the others are those of tenants, of which there are none
    ]
    routes = [Route("/", dispatcher.handle_requests, methods=["POST"]), *rest]
    return Router(routes, redirect_slashes=False, default=_refuse_path)


async def _refuse_path(scope: Scope, receive: Receive, send: Send) -> None:
    path = str(scope["path"])[:_SHOWN]
    message = f"there is nothing at {path}; send JSON-RPC to the address of the card, or POST …/message:send"
    answer = JSONResponse(build_rest_error_payload(MethodNotFoundError(message)), 404)
    await answer(scope, receive, send)
