"""Events for MCP clients: `events/list`, `events/poll` and `events/stream`.

The extension `io.modelcontextprotocol/events` for revision 2026-07-28 (SEP-3415), without webhooks. The event
types of an agent are the EventTypes of its namespace that are no tools, and the events come from the feed.
Since the feed is in the store, a cursor is valid at every replica.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import mcp_types as types
import orjson
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.event_feed import (
    MOST_EVENTS,
    FeedTail,
    StoredEvent,
    Subscription,
    SubscriptionPage,
    TooManyStreams,
    oldest_of,
    read_page,
)
from beckon_agent.api.mcp.pages import page_of
from beckon_agent.service import Service
from beckon_agent.store.feed import Feed
from beckon_contract.knative.cesql import CesqlSyntaxError, parse
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.knative.filters import EventFilter, passes_all

EXTENSION = "io.modelcontextprotocol/events"
NOT_FOUND, FORBIDDEN, RESOURCE_EXHAUSTED = -32023, -32024, -32025  # SEP-3415, errors
_SHOWN = 80  # characters
_LONGEST_FILTER = 1_000  # characters; each event of a page is compared with it
_NEXT_POLL_MS = 2_000
_HEARTBEAT = 25.0  # seconds; proxies close a stream that is silent for 30 to 60

Context = ServerRequestContext[Any, Any]


class StreamParams(types.RequestParams):
    """The parameters of `events/stream`."""

    name: str = Field(max_length=1024)
    arguments: dict[str, Any] = Field(default_factory=dict)
    cursor: str | None = Field(None, max_length=40)
    max_age_ms: float | None = Field(None, ge=0)


class PollParams(StreamParams):
    """The parameters of `events/poll`."""

    max_events: int | None = Field(None, ge=1)


class EventNotification(BaseModel):
    """A notification on the stream of a subscription."""

    method: str
    params: dict[str, Any]


class EventMethods:
    """The methods of the extension."""

    def __init__(self, service: Service, feed: Feed, tail: FeedTail) -> None:
        self._service = service
        self._feed = feed
        self._tail = tail

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods, and announce the extension to clients of 2026-07-28."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("events/list", types.PaginatedRequestParams, self._list_types)
        server.add_request_handler("events/poll", PollParams, self._poll)
        server.add_request_handler("events/stream", StreamParams, self._stream)

    async def _list_types(self, context: Context, params: types.PaginatedRequestParams) -> HandlerResult:
        _require_revision(context)
        offered = _offered_types(notifications.current.get().hosted)
        names, rest = page_of(sorted(offered), params.cursor)
        return {"events": [_describe_type(offered[name]) for name in names], **rest, "resultType": "complete"}

    async def _poll(self, context: Context, params: PollParams) -> HandlerResult:
        """Return the next events behind a cursor, and none for a client without a cursor."""
        wanted, after = _read_subscription(context, params), _read_cursor(params.cursor)
        most = min(params.max_events or MOST_EVENTS, MOST_EVENTS)
        page = await read_page(self._feed, wanted, after, most)
        return {
            "resultType": "complete",
            "events": [stored.occurrence for stored in page.events],
            "cursor": str(page.cursor),
            "truncated": page.truncated,
            "hasMore": page.has_more,
            "nextPollMs": _NEXT_POLL_MS,
        }

    async def _stream(self, context: Context, params: StreamParams) -> HandlerResult:
        """Send events until the client hangs up, may no longer read them, or the service ends."""
        wanted, after = _read_subscription(context, params), _read_cursor(params.cursor)
        stream = _SubscriptionStream(self._feed, self._tail, wanted, context)
        try:
            with self._tail.opened():
                await stream.begin(after)
                while await stream.send_news():
                    if not self._is_still_offered(wanted.event_type):
                        await stream.terminate(
                            FORBIDDEN, f"the event type {wanted.event_type[:_SHOWN]!r} can no longer be read"
                        )
                        break
        except TooManyStreams:
            raise MCPError(
                RESOURCE_EXHAUSTED,
                "the limit of streams of events is reached; use events/poll",
                {"limit": "streams", "max": self._tail.most},
            ) from None
        return {"resultType": "complete", "_meta": stream.meta}

    def _is_still_offered(self, event_type: str) -> bool:
        """Return True if the client may read a type by now."""
        agent = self._service.registry.find(notifications.current.get().hosted.name)
        return isinstance(agent, AgentHandle) and _is_offered(agent, event_type)


class _SubscriptionStream:
    """The stream of one subscription."""

    def __init__(self, feed: Feed, tail: FeedTail, wanted: Subscription, context: Context) -> None:
        self.meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        self._feed = feed
        self._tail = tail
        self._wanted = wanted
        self._context = context
        self._cursor = 0

    async def begin(self, after: int | None) -> None:
        """Confirm the subscription, and send the events behind the cursor."""
        page = await read_page(self._feed, self._wanted, after)
        cursor = page.cursor if after is None else after
        await self._notify("active", {"cursor": str(cursor), "truncated": page.truncated})
        await self._send_events(page.events)
        self._cursor = page.cursor
        while page.has_more:
            page = await self._send_page()

    async def send_news(self) -> bool:
        """Send the next events, or a heartbeat; return False once the stream has to end.

        It ends with the service, and if the feed has lost events that were not sent: the client is informed
        of it when it subscribes again with its cursor.
        """
        if not await self._tail.wait_for_news(self._cursor, _HEARTBEAT):
            return False
        news = self._tail.events_after(self._cursor)
        if news is None:
            page = await self._send_page()
            while page.has_more:
                page = await self._send_page()
            return not page.truncated
        if news:
            await self._send_events([stored for stored in news if self._wanted.selects(stored)])
            self._cursor = news[-1].entry.position
        else:
            await self._notify("heartbeat", {"cursor": str(self._cursor)})
        return True

    async def terminate(self, code: int, message: str) -> None:
        """Report the end of the subscription."""
        await self._notify("terminated", {"error": {"code": code, "message": message}})

    async def _send_page(self) -> SubscriptionPage:
        page = await read_page(self._feed, self._wanted, self._cursor)
        await self._send_events(page.events)
        self._cursor = page.cursor
        return page

    async def _send_events(self, events: Sequence[StoredEvent]) -> None:
        for stored in events:
            await self._notify("event", {**stored.occurrence, "cursor": str(stored.entry.position)})

    async def _notify(
        self, kind: Literal["active", "event", "heartbeat", "terminated"], params: Mapping[str, Any]
    ) -> None:
        members = {**params, "_meta": self.meta}
        note: Any = EventNotification(method=f"notifications/events/{kind}", params=members)
        await self._context.session.send_notification(note, self._context.request_id)


def _offered_types(hosted: AgentHandle) -> dict[str, EventType]:
    """Return the event types by their CloudEvents types. Of two with one type, the first by name counts."""
    ordered = sorted(hosted.event_types(), key=lambda one: one.name, reverse=True)
    return {one.type: one for one in ordered}


def _is_offered(hosted: AgentHandle, event_type: str) -> bool:
    return any(one.type == event_type for one in hosted.event_types())


def _describe_type(event_type: EventType) -> dict[str, object]:
    attribute = {"type": "string"}
    return {
        "name": event_type.type,
        "title": event_type.name,
        "description": event_type.description,
        "delivery": ["poll", "push"],
        "inputSchema": {
            "type": "object",
            "properties": {
                "filter": {
                    "type": "string",
                    "maxLength": _LONGEST_FILTER,
                    "description": "A CloudEvents SQL expression over the attributes of the event, such as "
                    "subject LIKE 'orders/%'. Only events for which it is true are sent.",
                }
            },
            "additionalProperties": False,
        },
        "payloadSchema": {
            "type": "object",
            "description": "The CloudEvent in its JSON format.",
            "properties": {
                **dict.fromkeys(("specversion", "id", "source", "subject", "time"), attribute),
                "type": {"const": event_type.type},
                "datacontenttype": attribute,
                "data": _data_schema(event_type),
                "data_base64": attribute,
            },
            "required": ["specversion", "id", "source", "type"],
        },
    }


def _data_schema(event_type: EventType) -> object:
    """Return the schema of the data. Clients cannot rely on a text that is no JSON Schema."""
    try:
        schema = orjson.loads(event_type.schema_data or "{}")
    except orjson.JSONDecodeError:
        return {}
    return schema if isinstance(schema, dict | bool) else {}


def _read_subscription(context: Context, params: StreamParams) -> Subscription:
    """Return the subscription of a request. Raises `MCPError` for one that cannot be served."""
    _require_revision(context)
    hosted = notifications.current.get().hosted
    if not _is_offered(hosted, params.name):
        message = (
            f"there is no event type {params.name[:_SHOWN]!r} here; events/list has all that can be read"
        )
        raise MCPError(NOT_FOUND, message, {"kind": "event"})
    unknown = [name for name in params.arguments if name != "filter"]
    if unknown:
        message = f"arguments: {unknown[0][:_SHOWN]!r} is unknown; the only argument is 'filter'"
        raise MCPError(types.INVALID_PARAMS, message)
    passes = _read_filter(params.arguments.get("filter"))
    return Subscription(hosted.agent.namespace, params.name, passes, oldest_of(params.max_age_ms))


def _read_filter(text: object) -> EventFilter:
    if text is None:
        return passes_all
    if not isinstance(text, str) or len(text) > _LONGEST_FILTER:
        message = f"arguments.filter must be a string of at most {_LONGEST_FILTER} characters"
        raise MCPError(types.INVALID_PARAMS, message)
    try:
        evaluate = parse(text).evaluator
    except CesqlSyntaxError as error:
        raise MCPError(
            types.INVALID_PARAMS, f"arguments.filter is no CloudEvents SQL expression: {error}"
        ) from None
    # An error or a result that is no boolean is no match, as in the filter of a Trigger.
    return lambda attributes: evaluate(attributes) is True


def _read_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        message = "the cursor is none of this server's; send null to begin with the events from now on"
        raise MCPError(types.INVALID_PARAMS, message)
    return int(cursor)


def _require_revision(context: Context) -> None:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
