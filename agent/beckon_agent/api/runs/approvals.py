"""The routes under `/approvals`: calls waiting for approval, and decisions."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from beckon_agent.api.http.errors import ProblemError, problem_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, describe_answer, describe_operation, link_to
from beckon_agent.api.responses.create import OwnerOf
from beckon_agent.api.responses.ids import event_of_approval
from beckon_agent.api.responses.lookup import After, PageSize, list_page, page_problems, store_problems
from beckon_agent.api.runs.documents import DecidedApproval, WaitingApproval, waiting_document
from beckon_agent.core.records import FINAL, Decision, StoredCall, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store
from beckon_runtime.problem import Problem

_SHOWN = 120
_ERRORS = problem_responses(_503="The store does not answer.", default="Any other error, in the same shape.")
_WAITING = {
    **describe_answer(
        "The calls that wait for the caller's word.",
        decide=link_to("decideApproval", approval_id="$response.body#/data/0/id"),
    ),
    **problem_responses(_400="A value cannot be read."),
}
_DECIDED = {
    **describe_answer("The decision counts, and the run goes on."),
    **problem_responses(
        _400="The body is no JSON object, or does not say what is decided.",
        _404="No call of the caller's runs waits, or waited, under this id.",
        _409="Somebody has decided otherwise, or the run is over.",
    ),
}


class Word(BaseModel):
    """What somebody decides about a call."""

    model_config = ConfigDict(extra="forbid", strict=True)

    approve: bool = Field(description="Whether the call may be made.")
    reason: str = Field("", max_length=2000, description="What the model is told, and whoever looks later.")


def make_router(store: Store, engine: Engine, owner_of: OwnerOf) -> APIRouter:
    """Return the routes of approvals; `owner_of` returns the caller's id."""
    routes = APIRouter()

    @routes.get("/approvals", **describe_operation("listApprovals", _WAITING, _ERRORS))
    async def list_approvals(
        request: Request, limit: PageSize = 20, after: After = None
    ) -> JsonResponse[ListPage[WaitingApproval]]:
        """List the calls of the caller's runs that wait for a person, those of the oldest run first."""
        behind = None if after is None else event_of_approval(after) or after
        with page_problems():
            found = await store.history.list_pending_approvals(
                owner_of(request), after=behind, most=limit + 1
            )
        return JsonResponse(list_page(found, limit, waiting_document))

    @routes.post("/approvals/{approval_id}", **describe_operation("decideApproval", _DECIDED, _ERRORS))
    async def decide_call(approval_id: str, body: Word, request: Request) -> JsonResponse[DecidedApproval]:
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
    found = await store.journal.find_call(event_of_approval(approval) or "")
    run = await store.runs.get(found[0]) if found else None
    if found is None or run is None or run.owner != owner or not _wanted_approval(found[1]):
        detail = f"there is no approval {approval[:_SHOWN]!r}; GET /approvals lists those that wait"
        raise ProblemError(Problem(404, "unknown-approval", "Unknown approval", detail))
    return run, found[1]


def _wanted_approval(call: StoredCall) -> bool:
    return call.decision is not None or call.state == "approval"


def _to_conflict(run: StoredRun, call: StoredCall) -> ProblemError:
    if call.decision is None:
        became = f"is {run.status}" if run.status in FINAL else "goes on without it"
        detail = f"nobody waits for this word any more: the run {became}"
    else:
        detail = f"the call was {call.decision} already"
    return ProblemError(Problem(409, "already-decided", "Already decided", detail))
