"""The routes under `/v1/responses`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.convertors import StringConvertor, register_url_convertor

from beckon_agent.api.http.errors import ApiError, api_errors, openai_responses
from beckon_agent.api.http.openapi import JsonResponse, describe_answer, describe_operation, link_to
from beckon_agent.api.http.streaming import EventStream, PacedStream, StreamPace, cancel_on_hang_up
from beckon_agent.api.models import find_agent
from beckon_agent.api.responses import conversations
from beckon_agent.api.responses.compaction import CompactedResponse, CompactRequest, compact_messages
from beckon_agent.api.responses.create import ResponseCreator, no_response
from beckon_agent.api.responses.documents import (
    DeletedResponse,
    ItemsPerPage,
    ResponseDocument,
    response_document,
    state_of_run,
)
from beckon_agent.api.responses.item_types import choose_types, types_of
from beckon_agent.api.responses.output import ItemPage, Order, item_page, to_items
from beckon_agent.api.responses.request import CreateRequest
from beckon_agent.api.responses.stream import ResponseStreamer, server_sent
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import FINAL, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.service import Service
from beckon_agent.store.base import Store

_ERRORS = openai_responses(
    _400="The request is not valid, or requires what an agent does not do.",
    _404="There is no such response, agent or item, or it is not the caller's.",
    _409="The response is in a state in which this cannot be done.",
    _429="A limit has no room; Retry-After says when it will.",
    _503="No run can begin now, or the store does not answer; Retry-After says when to retry.",
    default="Any other error, in the same shape.",
)


class _ResponseId(StringConvertor):
    """An id in a path, and not the name of another route."""

    regex = "(?!(?:compact|input_tokens)(?:/|$))[^/]+"


register_url_convertor("response", _ResponseId())
_PATH = "/v1/responses/{response_id:response}"
_MADE = {"response_id": "$response.body#/id"}
_RESPONSE = "A response, or with `stream` its events as server-sent ones."
_CREATED = describe_answer(
    _RESPONSE,
    retrieve=link_to("retrieveResponse", **_MADE),
    items=link_to("listInputItems", **_MADE),
    cancel=link_to("cancelResponse", **_MADE),
    delete=link_to("deleteResponse", **_MADE),
)


@dataclass(frozen=True, slots=True)
class _Face:
    """The dependencies of all routes."""

    creator: ResponseCreator
    streamer: ResponseStreamer
    pace: StreamPace

    async def find_response(self, response_id: str, request: Request) -> tuple[StoredRun, int]:
        """Return the run and part number of the caller's response."""
        return await self.creator.find_response(response_id, owner_of(request))

    async def answer_now(
        self, run: StoredRun, part: int, response_id: str, include: Sequence[str] | None = None
    ) -> JsonResponse[ResponseDocument]:
        """Answer with a response as it is now."""
        document = await self.streamer.read_state(run, part, types_of(run, include or ()))
        if document is None:
            raise no_response(response_id)
        return JsonResponse(document)

    def stream_response(
        self,
        run: StoredRun,
        part: int,
        after: int,
        *,
        hold: bool,
        include: Sequence[str] | None,
        suspensions: int = 0,
    ) -> EventStream:
        """Answer with the events of a response after a sequence number."""
        following = self.streamer.follow_part(
            run, part, hold=hold, include=include or (), suspensions=suspensions
        )
        batches = PacedStream(following)
        types = types_of(run, include or ())
        return EventStream(server_sent(batches, self.pace.keep_alive, after, types), self.pace.stalled)


def make_router(engine: Engine, store: Store, service: Service, pace: StreamPace) -> APIRouter:
    """Return the routes."""
    streamer = ResponseStreamer(engine, store)
    face = _Face(ResponseCreator(streamer, service), streamer, pace)
    routes = APIRouter()
    _add_asking(routes, face)
    _add_compaction(routes, face)
    _add_reading(routes, face)
    _add_ending(routes, face)
    routes.routes.extend(conversations.make_router(store).routes)
    return routes


def _add_asking(routes: APIRouter, face: _Face) -> None:
    @routes.post("/v1/responses", **describe_operation("createResponse", _CREATED, _ERRORS))
    async def create_response(
        body: CreateRequest, request: Request
    ) -> JsonResponse[ResponseDocument] | EventStream:
        """Answer an input, calling the cluster's tools where they help."""
        with api_errors():
            types = choose_types(body.include or (), request.headers)
            created = await face.creator.begin_response(body, owner_of(request), types)
            run, part, ended = created.run, created.part, created.suspensions
            if body.stream:
                return face.stream_response(
                    run, part, -1, hold=False, include=body.include, suspensions=ended
                )
            if body.background:
                state = state_of_run(run, begun=part > 1 or ended > 0)
                return JsonResponse(response_document(run, part, state, ()))
            response = face.streamer.wait_for_end(run, part, types_of(run, body.include or ()), ended)
            return JsonResponse(await cancel_on_hang_up(request.receive, response))


def _add_compaction(routes: APIRouter, face: _Face) -> None:
    compacted = describe_answer("The compacted conversation, to be sent as input.")

    @routes.post("/v1/responses/compact", **describe_operation("compactResponse", compacted, _ERRORS))
    async def compact_response(body: CompactRequest, request: Request) -> JsonResponse[CompactedResponse]:
        """Compact a conversation: the agent's model summarises it."""
        with api_errors():
            service = face.creator.service
            hosted = find_agent(service, body.model)
            messages = await face.creator.read_messages(body, owner_of(request))
            compacting = compact_messages(service, hosted, messages, body.instructions)
            return JsonResponse(await cancel_on_hang_up(request.receive, compacting))

    @routes.post("/v1/responses/input_tokens", include_in_schema=False)
    async def count_input_tokens() -> None:
        """Refuse to count tokens: nothing is behind this route of the API."""
        message = (
            "this agent does not count tokens before a run, for only the model's server knows its "
            "tokenizer; read 'usage' of a response, or limit a run by 'max_output_tokens'"
        )
        raise ApiError(501, message, code="not_supported")


def _add_reading(routes: APIRouter, face: _Face) -> None:
    path = _PATH

    @routes.get(path, **describe_operation("retrieveResponse", describe_answer(_RESPONSE), _ERRORS))
    async def retrieve_response(
        response_id: str,
        request: Request,
        stream: bool = False,
        starting_after: Annotated[int | None, Query(ge=-1, le=2**53)] = None,
        include: Annotated[list[str] | None, Query(alias="include[]", max_length=20)] = None,
    ) -> JsonResponse[ResponseDocument] | EventStream:
        """Return a response as it is now, or its events from the one after `starting_after` on."""
        with api_errors():
            run, part = await face.find_response(response_id, request)
            if not stream:
                return await face.answer_now(run, part, response_id, include)
            if not run.background and run.status not in FINAL:
                message = "only a response that was made with 'background' can be joined before its end"
                raise ApiError(400, message, code="not_in_background", param="stream")
            after = -1 if starting_after is None else starting_after
            return face.stream_response(run, part, after, hold=True, include=include)

    @routes.get(
        f"{path}/input_items",
        **describe_operation("listInputItems", describe_answer("One page of the list."), _ERRORS),
    )
    async def input_items(
        response_id: str,
        request: Request,
        limit: ItemsPerPage = 20,
        order: Order = "desc",
        after: str | None = None,
    ) -> JsonResponse[ItemPage]:
        """List the input of a response, with the conversation before it."""
        with api_errors():
            run, _ = await face.find_response(response_id, request)
            items = to_items(await face.streamer.store.runs.load_messages(run.id), run.id)
            return JsonResponse(item_page(items, after=after, limit=limit, order=order))


def _add_ending(routes: APIRouter, face: _Face) -> None:
    engine, path = face.streamer.engine, _PATH
    cancelled, deleted = describe_answer("The response as it is then."), describe_answer("It is deleted.")

    @routes.post(f"{path}/cancel", **describe_operation("cancelResponse", cancelled, _ERRORS))
    async def cancel_response(response_id: str, request: Request) -> JsonResponse[ResponseDocument]:
        """Cancel a response unless it has ended; what its tools have done stays done."""
        with api_errors():
            answered, part = await face.find_response(response_id, request)
            run = await engine.cancel(answered.id)
            if run is None:
                raise no_response(response_id)
            if not run.retained:
                return JsonResponse(response_document(run, part, state_of_run(run, begun=True), ()))
            return await face.answer_now(run, part, response_id)

    @routes.delete(path, **describe_operation("deleteResponse", deleted, _ERRORS))
    async def delete_response(response_id: str, request: Request) -> JsonResponse[DeletedResponse]:
        """Delete a response with its stored run; cancel it if it is in progress."""
        with api_errors():
            run, _ = await face.find_response(response_id, request)
            if not await engine.delete(run.id):
                raise no_response(response_id)
            return JsonResponse({"id": response_id, "object": "response", "deleted": True})
