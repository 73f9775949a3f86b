"""The routes under `/runs`: the caller's runs, step by step."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from beckon_agent.api.http.errors import ProblemError, problem_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, describe_answer, describe_operation, link_to
from beckon_agent.api.http.streaming import EventStream, PacedStream, StreamPace
from beckon_agent.api.responses.create import OwnerOf
from beckon_agent.api.responses.lookup import (
    After,
    PageSize,
    find_run,
    list_page,
    page_problems,
    store_problems,
)
from beckon_agent.api.runs.documents import (
    ExchangedEvents,
    RunDocument,
    RunListItem,
    exchanged_document,
    run_document,
    summary_document,
)
from beckon_agent.api.runs.stream import server_sent, watch_run
from beckon_agent.core.records import RunFilter, RunStatus
from beckon_agent.store.base import Store
from beckon_runtime.problem import Problem

_STREAM = "text/event-stream"
_MOST_NUMBER = 2**53
_FIRST = "$response.body#/data/0/id"
_ERRORS = problem_responses(_503="The store does not answer.", default="Any other error, in the same shape.")
_NO_RUN = problem_responses(_404="There is no such run, or it is not the caller's.")
_LIST = describe_answer(
    "The caller's runs, the newest first.",
    run=link_to("retrieveRun", run_id=_FIRST),
    events=link_to("listRunEvents", run_id=_FIRST),
)

Status = Annotated[RunStatus | None, Query(description="Only runs of this status.")]
AgentName = Annotated[str | None, Query(max_length=300, description="Only runs of this agent.")]
Conversation = Annotated[str | None, Query(max_length=100, description="Only runs of this conversation.")]


def make_router(store: Store, pace: StreamPace, owner_of: OwnerOf) -> APIRouter:
    """Return the routes; `owner_of` returns the caller's id."""
    routes = APIRouter()
    _add_runs(routes, store, owner_of)
    _add_events(routes, store, pace, owner_of)
    return routes


def _add_runs(routes: APIRouter, store: Store, owner_of: OwnerOf) -> None:
    unreadable = problem_responses(_400="A value is not one of those that may be asked for.")

    @routes.get("/runs", **describe_operation("listRuns", _LIST, unreadable, _ERRORS))
    async def list_runs(
        request: Request,
        *,
        status: Status = None,
        agent: AgentName = None,
        conversation: Conversation = None,
        limit: PageSize = 20,
        after: After = None,
    ) -> JsonResponse[ListPage[RunListItem]]:
        """List the caller's runs, the newest first."""
        wanted = RunFilter(status, agent, conversation)
        with page_problems():
            found = await store.history.list_runs(owner_of(request), wanted, after=after, most=limit + 1)
        return JsonResponse(list_page(found, limit, summary_document))

    one = describe_answer("The run with its steps."), _NO_RUN, _ERRORS

    @routes.get("/runs/{run_id}", **describe_operation("retrieveRun", *one))
    async def retrieve_run(run_id: str, request: Request) -> JsonResponse[RunDocument]:
        """Return a run with its steps: the model's answers, and the calls of each."""
        with store_problems():
            run = await find_run(store, run_id, owner_of(request))
            return JsonResponse(run_document(run, await store.runs.load_past(run.id)))


def _add_events(routes: APIRouter, store: Store, pace: StreamPace, owner_of: OwnerOf) -> None:
    exchanged = describe_answer("What went back and forth for each call.")
    unreadable = problem_responses(_400="A value cannot be read.")

    @routes.get(
        "/runs/{run_id}/events",
        **describe_operation("listRunEvents", exchanged, unreadable, _NO_RUN, _ERRORS),
    )
    async def list_events(
        run_id: str, request: Request, limit: PageSize = 100, after: After = None
    ) -> JsonResponse[ListPage[ExchangedEvents]] | EventStream:
        """Return the CloudEvents of a run's calls and replies; with `Accept: text/event-stream` follow it.

        The stream can be resumed: `Last-Event-ID` says behind which event it goes on.
        """
        with store_problems():
            run = await find_run(store, run_id, owner_of(request))
            if _STREAM in request.headers.get("accept", ""):
                stream = PacedStream(watch_run(store, run.id, _last_event(request)))
                return EventStream(server_sent(stream, pace.keep_alive), pace.stalled)
        with page_problems():
            found = await store.history.list_exchanged(run.id, after=after, most=limit + 1)
        return JsonResponse(list_page(found, limit, exchanged_document))


def _last_event(request: Request) -> int:
    """Return the number of a client's last event, 0 for none.

    It is in the header Last-Event-ID; a 400 is raised for anything but a number.
    """
    text = request.headers.get("last-event-id", "0")
    if text.isascii() and text.isdigit() and int(text[:20]) <= _MOST_NUMBER:
        return int(text[:20])
    detail = "the header Last-Event-ID is no number of an event of this stream; leave it out to begin anew"
    raise ProblemError(Problem(400, "unknown-cursor", "Unknown cursor", detail))
