"""Stored runs: lists, steps, events, and calls that wait for approval.

An observer of a run neither keeps it alive nor ends it.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, describe_answer, describe_operation, link_to
from beckon_agent.api.http.streaming import KEEP_ALIVE, EventStream, PacedStream, StreamPace
from beckon_agent.api.responses.documents import (
    After,
    PageSize,
    event_of_approval,
    find_run,
    list_page,
    page_problems,
    store_problems,
)
from beckon_agent.api.runs.documents import (
    DecidedApproval,
    ExchangedEvents,
    RunDocument,
    RunListItem,
    WaitingApproval,
    exchanged_document,
    run_document,
    summary_document,
    waiting_document,
)
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import FINAL, Decision, RunFilter, RunStatus, StoredCall, StoredRun
from beckon_agent.core.run_events import (
    CallProgressed,
)
from beckon_agent.durable.base import Engine, event_from_document
from beckon_agent.durable.event_log import ReportsSeen
from beckon_agent.store.base import Store
from beckon_agent.tool_calls.recorded_events import shown_document
from beckon_runtime.problem import Problem, ProblemError

_PAGE = 500
_LOOK, _LOOK_SUSPENDED = 0.25, 1.0  # seconds
NumberedEvent = tuple[int, str, dict[str, Any]]


async def watch_run(store: Store, run_id: str, after: int) -> AsyncGenerator[NumberedEvent]:
    """Yield the events of a run after a number, until it ends.

    The last one is `ended`, also for a deleted run. The events are read from the store, to which every
    replica writes, so it does not matter which of them works on the run. The reports of a tool that
    answers later have the number of the event before them, and the name `progress`; so has `taken_over`,
    which is sent when another process takes the run over while the stream is open.
    """
    number, seen, takeovers = after, ReportsSeen(), None
    while True:
        run = await store.runs.get(run_id)  # before the log: all events until the end are in it then
        while page := await store.events.read_after(run_id, number, most=_PAGE):
            for number, document in page:
                name, members = _to_members(document)
                yield number, name, members
        if run is not None and takeovers not in (None, run.takeovers or 0):
            yield number, "taken_over", {"takeovers": run.takeovers}
        takeovers = (run.takeovers or 0) if run else None
        if run is None or run.status in FINAL:
            yield number + 1, "ended", {"status": "deleted" if run is None else run.status}
            return
        if run.status == "suspended":
            for report in seen.new_reports(await store.journal.list_reports(run_id)):
                yield number, "progress", _to_report(report)
        await asyncio.sleep(_LOOK_SUSPENDED if run.status == "suspended" else _LOOK)


def _to_members(document: Any) -> tuple[str, dict[str, Any]]:
    event = event_from_document(document)
    members = asdict(event)
    members.pop("messages", None)  # of the end: they are the conversation, which other routes show
    return event.streamed_name, shown_document(members)


def _to_report(report: CallProgressed) -> dict[str, Any]:
    members = asdict(report)
    document: dict[str, Any] = shown_document({"progress": members.pop("done"), **members})
    return document


async def server_sent(stream: PacedStream[NumberedEvent], keep_alive: float) -> AsyncGenerator[bytes]:
    """Yield events as server-sent events, and keep-alive comments.

    Each has its number as id. A comment is sent after `keep_alive` seconds without an event.
    """
    try:
        async for items in stream.yield_batches(keep_alive):
            yield b"".join(_to_sse(*item) for item in items) or KEEP_ALIVE
    finally:
        await stream.close()


def _to_sse(number: int, name: str, members: dict[str, Any]) -> bytes:
    data = json.dumps({"type": name, "number": number, **members})
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode("ascii")


_SHOWN = 120
_ERRORS = problem_responses(_503="The store does not answer.", default="Any other error, in the same shape.")
_WAITING = {
    **describe_answer(
        "The calls that wait for the caller's decision.",
        decide=link_to("decideApproval", approval_id="$response.body#/data/0/id"),
    ),
    **problem_responses(_400="A value cannot be read."),
}
_DECIDED = {
    **describe_answer("The decision counts, and the run goes on."),
    **problem_responses(
        _400="The body is no JSON object, or does not say what is decided.",
        _404="No call of the caller's runs waits, or waited, under this id.",
        _409="Another decision was made before, or the run is over.",
    ),
}


class DecideApproval(BaseModel):
    """A person's decision about a call."""

    model_config = ConfigDict(extra="forbid", strict=True)

    approve: bool = Field(description="Whether the call may be made.")
    reason: str = Field(
        "", max_length=2000, description="The reason, for the model and the record of the run."
    )


def make_approvals_router(store: Store, engine: Engine) -> APIRouter:
    """Return the routes of approvals."""
    routes = APIRouter()

    @routes.get("/approvals", **describe_operation("listApprovals", _WAITING, _ERRORS))
    async def list_approvals(
        request: Request, limit: PageSize = 20, after: After = None
    ) -> JsonResponse[ListPage[WaitingApproval]]:
        """List the calls of the caller's runs that wait for a person, those of the oldest run first."""
        behind = None if after is None else event_of_approval(after) or after
        with page_problems():
            calls = await store.history.list_waiting_calls(
                owner_of(request), "approval", after=behind, most=limit + 1
            )
        return JsonResponse(list_page(calls, limit, waiting_document))

    @routes.post("/approvals/{approval_id}", **describe_operation("decideApproval", _DECIDED, _ERRORS))
    async def decide_call(
        approval_id: str, body: DecideApproval, request: Request
    ) -> JsonResponse[DecidedApproval]:
        """Allow a call or forbid it, once; its run goes on when nothing else waits there."""
        owner = owner_of(request)
        decision: Decision = "approved" if body.approve else "denied"
        with store_problems():
            run, call = await _find_call(store, approval_id, owner)
            if call.decision is None:
                await engine.decide_call(call.event_id, decision, by=owner, reason=body.reason)
                run, call = await _find_call(store, approval_id, owner)
        if call.decision != decision:
            raise _to_conflict(run, call)
        return JsonResponse({"id": approval_id, "object": "approval", "run": run.id, "decision": decision})

    return routes


async def _find_call(store: Store, approval: str, owner: str) -> tuple[StoredRun, StoredCall]:
    """Return the call of an approval, decided or not, and its run.

    Raises a 404 for an unknown one, and for one of another owner.
    """
    run_and_call = await store.journal.find_call(event_of_approval(approval) or "")
    run = await store.runs.get(run_and_call[0]) if run_and_call else None
    if run_and_call is None or run is None or run.owner != owner or not run_and_call[1].wanted_approval:
        detail = f"there is no approval {approval[:_SHOWN]!r}; GET /approvals lists those that wait"
        raise ProblemError(Problem(404, "unknown-approval", "Unknown approval", detail))
    return run, run_and_call[1]


def _to_conflict(run: StoredRun, call: StoredCall) -> ProblemError:
    if call.decision is None:
        became = f"is {run.status}" if run.status in FINAL else "goes on without it"
        detail = f"the call no longer waits for a decision: the run {became}"
    else:
        detail = f"the call was {call.decision} already"
    return ProblemError(Problem(409, "already-decided", "Already decided", detail))


_STREAM = "text/event-stream"
_MOST_NUMBER = 2**53
_FIRST = "$response.body#/data/0/id"
_NO_RUN = problem_responses(_404="There is no such run, or it is not the caller's.")
_LIST = describe_answer(
    "The caller's runs, the newest first.",
    run=link_to("retrieveRun", run_id=_FIRST),
    events=link_to("listRunEvents", run_id=_FIRST),
)

Status = Annotated[RunStatus | None, Query(description="Only runs of this status.")]
AgentName = Annotated[str | None, Query(max_length=300, description="Only runs of this agent.")]
Conversation = Annotated[str | None, Query(max_length=100, description="Only runs of this conversation.")]


def make_router(store: Store, pace: StreamPace) -> APIRouter:
    """Return the routes of runs."""
    routes = APIRouter()
    _add_runs(routes, store)
    _add_events(routes, store, pace)
    return routes


def _add_runs(routes: APIRouter, store: Store) -> None:
    unreadable = problem_responses(_400="A value is not one of those allowed.")

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
            runs = await store.history.list_runs(owner_of(request), wanted, after=after, most=limit + 1)
        return JsonResponse(list_page(runs, limit, summary_document))

    one = describe_answer("The run with its steps."), _NO_RUN, _ERRORS

    @routes.get("/runs/{run_id}", **describe_operation("retrieveRun", *one))
    async def retrieve_run(run_id: str, request: Request) -> JsonResponse[RunDocument]:
        """Return a run with its steps: the model's answers, and the calls of each."""
        with store_problems():
            run = await find_run(store, run_id, owner_of(request))
            return JsonResponse(run_document(run, await store.runs.load_past(run.id)))


def _add_events(routes: APIRouter, store: Store, pace: StreamPace) -> None:
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
            events = await store.history.list_exchanged(run.id, after=after, most=limit + 1)
        return JsonResponse(list_page(events, limit, exchanged_document))


def _last_event(request: Request) -> int:
    """Return the number of a client's last event, 0 for none.

    It is in the header Last-Event-ID; a 400 is raised for anything but a number.
    """
    text = request.headers.get("last-event-id", "0")
    if text.isascii() and text.isdigit() and int(text[:20]) <= _MOST_NUMBER:
        return int(text[:20])
    detail = "the header Last-Event-ID is no number of an event of this stream; leave it out to begin anew"
    raise ProblemError(Problem(400, "unknown-cursor", "Unknown cursor", detail))
