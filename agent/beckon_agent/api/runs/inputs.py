"""Input that tools request of a person: `GET /inputs` and `POST /inputs/{input_id}`."""

from fastapi import APIRouter, Request

from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, describe_answer, describe_operation, link_to
from beckon_agent.api.responses.documents import After, PageSize, list_page, page_problems, store_problems
from beckon_agent.api.responses.forms import FormAnswer, event_of_input
from beckon_agent.api.runs.input_documents import AnsweredInput, WaitingInput, waiting_input
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import StoredCall
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store
from beckon_contract.inputs import InputRequest, InvalidInput, next_call_id
from beckon_runtime.problem import Problem, ProblemError

_SHOWN = 120
_ERRORS = problem_responses(_503="The store does not answer.", default="Any other error, in the same shape.")
_WAITING = {
    **describe_answer(
        "The calls whose tools wait for input.",
        answer=link_to("answerInput", input_id="$response.body#/data/0/id"),
    ),
    **problem_responses(_400="A value cannot be read."),
}
_ANSWERED = {
    **describe_answer("The answer counts, and the run goes on."),
    **problem_responses(
        _400="The body is no answer, or its content does not fit the schema of the form.",
        _404="No tool waits, or waited, for input under this id in the caller's runs.",
        _409="The form has its answer already, or the run is over.",
    ),
}


def make_inputs_router(store: Store, engine: Engine) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()

    @routes.get("/inputs", **describe_operation("listInputs", _WAITING, _ERRORS))
    async def list_inputs(
        request: Request, limit: PageSize = 20, after: After = None
    ) -> JsonResponse[ListPage[WaitingInput]]:
        """List the calls of the caller's runs whose tools wait for input, those of the oldest run first."""
        behind = None if after is None else event_of_input(after) or after
        with page_problems():
            calls = await store.history.list_waiting_calls(
                owner_of(request), "input", after=behind, most=limit + 1
            )
        return JsonResponse(list_page(calls, limit, waiting_input))

    @routes.post("/inputs/{input_id}", **describe_operation("answerInput", _ANSWERED, _ERRORS))
    async def answer_input(input_id: str, body: FormAnswer, request: Request) -> JsonResponse[AnsweredInput]:
        """Answer the form of a tool, once; the tool goes on with the answer."""
        with store_problems():
            run_id, call = await _find_call(store, input_id, owner_of(request))
            if not await engine.answer_input(call.event_id, _fill_form(call, body)):
                raise _to_conflict()
        return JsonResponse({"id": input_id, "object": "input_request", "run": run_id, "action": body.action})

    return routes


async def _find_call(store: Store, request: str, owner: str) -> tuple[str, StoredCall]:
    """Return the id of the run and the call of an input request.

    Raises a 404 for an unknown one, and for one of another owner; a 409 for one with an answer.
    """
    event_id = event_of_input(request) or ""
    run_and_call = await store.journal.find_call(event_id)
    later = run_and_call or await store.journal.find_call(next_call_id(event_id))
    run = await store.runs.get(later[0]) if later else None
    if later is None or run is None or run.owner != owner or later[1].input_request is None:
        detail = f"there is no input request {request[:_SHOWN]!r}; GET /inputs lists those that wait"
        raise ProblemError(Problem(404, "unknown-input", "Unknown input request", detail))
    if run_and_call is None or run_and_call[1].state != "input":
        raise _to_conflict()
    return run_and_call


def _fill_form(call: StoredCall, body: FormAnswer) -> InputRequest:
    try:
        return body.fill_form(call)
    except InvalidInput as error:
        raise ProblemError(Problem(400, "invalid-input", "Invalid input", str(error))) from None


def _to_conflict() -> ProblemError:
    detail = "the form waits no more: it has its answer already, its time is over, or the run has ended"
    return ProblemError(Problem(409, "already-answered", "Already answered", detail))
