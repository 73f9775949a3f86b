"""The routes of stored chat completions: retrieve, list, messages, delete."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, cast

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from beckon_agent.api.chat.request import new_run_id
from beckon_agent.api.chat.response import ChatCompletion, Completion
from beckon_agent.api.chat.routes import FACE, HANDED, ChatRuns
from beckon_agent.api.http.errors import ApiError, api_errors, openai_responses
from beckon_agent.api.http.openapi import (
    JsonResponse,
    ListPage,
    describe_answer,
    describe_operation,
)
from beckon_agent.api.responses.documents import After, ItemsPerPage, list_page
from beckon_agent.api.responses.output import ConversationItem, Order, item_page
from beckon_agent.core import json_values
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import FINAL, RunFilter, StoredRun
from beckon_agent.core.run_events import AnswerDropped, RunEvent, TurnNoted
from beckon_agent.store.base import Store

_ERRORS = openai_responses(
    _400="The request is not valid, or `after` names no completion of the caller's.",
    _404="There is no such completion, or it is not the caller's.",
    _409="The completion is still in progress.",
    _503="The store does not answer; Retry-After says when to retry.",
    default="Any other error, in the same shape.",
)
_SHOWN = 80
_MEMBERS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


class StoredMessage(TypedDict):
    """A message of the request, with an id."""

    id: str
    role: str
    content: Any
    name: NotRequired[str]
    tool_calls: NotRequired[list[Any]]
    tool_call_id: NotRequired[str]
    refusal: NotRequired[str | None]


class StoredCompletion(ChatCompletion):
    """A stored completion, with the metadata of its request."""

    metadata: dict[str, str]


class DeletedCompletion(TypedDict):
    """The answer to the deletion of a completion."""

    id: str
    object: Literal["chat.completion.deleted"]
    deleted: bool


@dataclass(frozen=True, slots=True)
class _Completions:
    """The stored completions of all callers."""

    store: Store
    runs: ChatRuns

    async def find_run(self, completion_id: str, request: Request) -> StoredRun:
        """Return the run of the caller's completion."""
        run = await self.store.runs.get(completion_id)
        if run is None or run.owner != owner_of(request) or run.face != FACE or not run.retained:
            message = f"there is no completion {completion_id[:_SHOWN]!r}: it was not stored, or was deleted"
            raise ApiError(404, message, code="completion_not_found", param="completion_id")
        return run

    async def read_document(self, run: StoredRun) -> StoredCompletion:
        """Return the completion of a run that ended with an answer."""
        if run.status not in FINAL:
            message = f"{run.id}: the completion is still in progress; request it again after its end"
            raise ApiError(409, message, code="completion_in_progress", param="completion_id")
        events: list[RunEvent] = []
        complete = 0  # events of whole turns
        async with aclosing(self.runs.engine.follow(run.id)) as following:
            async for _, event in following:
                if isinstance(event, AnswerDropped):
                    del events[complete:]
                events.append(event)
                complete = len(events) if isinstance(event, TurnNoted) else complete
        if run.status != "completed":
            message = f"{run.id}: the run is {run.status} and has no answer; see GET /runs/{run.id}"
            raise ApiError(404, message, code="completion_not_found", param="completion_id")
        handed = str(run.request.get(HANDED) or new_run_id())
        completion = Completion(
            run.agent, with_events=False, id=run.id, created=int(run.created_at), run=handed
        )
        given_metadata = json_values.as_mapping(run.request.get("metadata"))
        metadata = {name: json_values.as_text(value) for name, value in given_metadata.items()}
        return {**completion.to_document(events), "metadata": metadata}

    async def list_documents(
        self, request: Request, model: str | None, limit: int, after: str | None
    ) -> list[StoredCompletion]:
        """Return the caller's completed completions, the newest first, one more than `limit` if there are."""
        if any(name.startswith("metadata") for name in request.query_params):
            message = "metadata: completions are not searched by it; leave it out, and choose among the list"
            raise ApiError(400, message, code="unsupported_parameter", param="metadata")
        wanted = RunFilter(status="completed", agent=model, face=FACE)
        try:
            summaries = await self.store.history.list_runs(
                owner_of(request), wanted, after=after, most=limit + 1
            )
        except KeyError:
            message = f"after: there is no completion {(after or '')[:_SHOWN]!r}"
            raise ApiError(400, message, code="invalid_request", param="after") from None
        runs = [await self.store.runs.get(summary.run.id) for summary in summaries]
        return [await self.read_document(run) for run in runs if run is not None]


def make_router(store: Store, runs: ChatRuns) -> APIRouter:
    """Return the routes of stored completions."""
    routes, completions = APIRouter(), _Completions(store, runs)
    path = "/v1/chat/completions/{completion_id}"
    _add_lists(routes, completions, path)

    @routes.get(
        path, **describe_operation("retrieveChatCompletion", describe_answer("The completion."), _ERRORS)
    )
    async def retrieve_completion(completion_id: str, request: Request) -> JsonResponse[StoredCompletion]:
        """Return a stored completion."""
        with api_errors():
            return JsonResponse(
                await completions.read_document(await completions.find_run(completion_id, request))
            )

    @routes.delete(
        path, **describe_operation("deleteChatCompletion", describe_answer("It is deleted."), _ERRORS)
    )
    async def delete_completion(completion_id: str, request: Request) -> JsonResponse[DeletedCompletion]:
        """Delete a stored completion with its run; cancel it if it is in progress."""
        with api_errors():
            run = await completions.find_run(completion_id, request)
            deleted = await runs.engine.delete(run.id)
            return JsonResponse({"id": run.id, "object": "chat.completion.deleted", "deleted": deleted})

    return routes


def _add_lists(routes: APIRouter, completions: _Completions, path: str) -> None:
    listed = describe_answer("One page of the list.")

    @routes.get("/v1/chat/completions", **describe_operation("listChatCompletions", listed, _ERRORS))
    async def list_completions(
        request: Request,
        model: str | None = None,
        limit: ItemsPerPage = 20,
        order: Literal["desc"] = "desc",
        after: After = None,
    ) -> JsonResponse[ListPage[StoredCompletion]]:
        """List the caller's stored completions, the newest first."""
        del order  # there is one
        with api_errors():
            documents = await completions.list_documents(request, model, limit, after)
        return JsonResponse(list_page(documents, limit, lambda document: document))

    @routes.get(f"{path}/messages", **describe_operation("listChatMessages", listed, _ERRORS))
    async def list_messages(
        completion_id: str,
        request: Request,
        limit: ItemsPerPage = 20,
        order: Order = "asc",
        after: str | None = None,
    ) -> JsonResponse[ListPage[StoredMessage]]:
        """List the messages of a stored completion's request."""
        with api_errors():
            run = await completions.find_run(completion_id, request)
            messages = await completions.store.runs.load_messages(run.id)
        data = [
            {"id": f"{run.id}-{place}", **{key: message[key] for key in _MEMBERS if key in message}}
            for place, message in enumerate(messages)
        ]
        page = item_page(cast("list[ConversationItem]", data), after=after, limit=limit, order=order)
        return JsonResponse(cast("ListPage[StoredMessage]", page))
