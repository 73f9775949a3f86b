"""`POST /feed` and `POST /feed/{namespace}`: a Trigger delivers the events that MCP clients may read.

The event may be in either HTTP mode. It is in the store before the Broker has its 204, so a Broker that
delivers again after a lost answer loses none. An event is stored once, however often it is delivered.
"""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.api.events.request import EVENT, event_problems, to_event_problem
from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import Answers
from beckon_agent.store.feed import Feed
from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http
from beckon_contract.cloudevents.extensions import is_json
from beckon_contract.kubernetes_objects import DNS_LABEL
from beckon_contract.yamltext import NotReadable, check_depth

PATH = "/feed"
MAX_EVENT = 256 * 1024  # bytes of data; many clients read every event
_RESPONSES: Answers = {
    204: {"description": "The event is stored for MCP clients."},
    **problem_responses(
        _400="The body is no CloudEvent, or its attributes or data cannot be read.",
        _404="The last part of the path is no name of a namespace.",
        _413="The data of the event is too large to be stored.",
        _415="A batch of events.",
        default="Any other error, in the same shape.",
    ),
}


@dataclass(frozen=True, slots=True)
class LimitedFeed:
    """The feed, and how many events it keeps."""

    feed: Feed
    keep: int


def make_router(stored: LimitedFeed, own_namespace: str) -> APIRouter:
    """Return the routes. `own_namespace` is that of events at the path without one."""
    routes = APIRouter()

    async def keep_event(request: Request, namespace: str) -> Response:
        if not DNS_LABEL.fullmatch(namespace):
            detail = f"{namespace[:70]!r} is no namespace; post to {PATH}/NAMESPACE"
            raise to_event_problem(404, "unknown-namespace", "Unknown namespace", detail)
        event = _read_event(request, await request.body())
        await stored.feed.append(namespace, event, keep=stored.keep)
        return Response(status_code=204)

    @routes.post(
        PATH, operation_id="keepEvent", response_model=None, responses=_RESPONSES, openapi_extra=EVENT
    )
    async def keep_own_event(request: Request) -> Response:
        """Keep an event of the service's own namespace for MCP clients."""
        return await keep_event(request, own_namespace)

    @routes.post(
        f"{PATH}/{{namespace}}",
        operation_id="keepEventOf",
        response_model=None,
        responses=_RESPONSES,
        openapi_extra=EVENT,
    )
    async def keep_event_of(namespace: str, request: Request) -> Response:
        """Keep an event of a namespace for MCP clients."""
        return await keep_event(request, namespace)

    return routes


def _read_event(request: Request, body: bytes) -> CloudEvent:
    with event_problems():
        event = from_http(request.headers.raw, body)
    if len(event.data or b"") > MAX_EVENT:
        detail = (
            f"the data of event {event.id[:80]!r} has {len(event.data or b'')} bytes; at most {MAX_EVENT} "
            "are stored for MCP clients: let the filter of the Trigger leave it out, or send a link to it"
        )
        raise to_event_problem(413, "event-too-large", "Event too large", detail)
    try:
        check_depth(_read_data(event))
    except NotReadable as error:
        detail = f"the data of event {event.id[:80]!r} cannot be read: {error}"
        raise to_event_problem(400, "invalid-event", "Invalid event", detail) from None
    return event


def _read_data(event: CloudEvent) -> object:
    """Return JSON data; `None` for other data, which clients get in base64."""
    try:
        return event.json() if is_json(event.datacontenttype) else None
    except EventError:
        return None
