"""`POST /late-replies`: late answers from the shim's late reply sink.

No connection waits for them. A reply names its call by `causationid`, and proves by the token in its
reply attribute that it comes from the receiver of that call: nothing else has to be known of the sender.
The statuses for the shim: 2xx and most 4xx are final; after 503 the Broker delivers the reply again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.agents.registry import AgentHandle, AgentRegistry
from beckon_agent.api.events.request import EVENT
from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import Answers
from beckon_agent.core.context import acting_as, principal_of, request_id
from beckon_agent.core.records import Exchanged, StoredRun
from beckon_agent.core.run_types import Limits
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import refused_input
from beckon_agent.tool_calls.outcome import CallOutcome, from_event
from beckon_agent.tool_calls.progress import ProgressReport, read_report
from beckon_agent.tool_calls.recorded_events import event_document
from beckon_contract.cloudevents.events import CloudEvent, EventError, EventFormatError, from_http
from beckon_contract.cloudevents.extensions import CAUSE, PROGRESS_MARK, is_acceptance, is_report
from beckon_contract.inputs import InputRequest
from beckon_runtime.problem import Problem, ProblemError, for_dead_letter


class LateReplyResult(Enum):
    """The outcome of a late reply."""

    TAKEN = auto()
    REPORTED = auto()
    REPEATED = auto()
    UNKNOWN = auto()


class LateReplies:
    """Stores late replies for their runs. Every method may raise `StoreUnavailable`."""

    def __init__(self, store: Store, registry: AgentRegistry, look: Callable[[], None]) -> None:
        """`look` makes this process look for runs ready to continue."""
        self._store = store
        self._registry = registry
        self._look = look

    async def store_answer(self, event_id: str, outcome: CallOutcome, reply: CloudEvent) -> LateReplyResult:
        """Store the answer of a call. The process that made it may be dead by now, or still waiting."""
        run_and_call = await self._store.journal.find_call(event_id)
        if run_and_call is None:
            return LateReplyResult.UNKNOWN
        run_id, call = run_and_call
        exchanged = Exchanged(event_id, call.name, reply=event_document(reply))
        if outcome.input is not None:
            run = await self._store.runs.get(run_id)
            answerable = None if run is None else outcome.input.limit_to(run.input_methods)
            if run is not None and answerable is not None:
                return await self._store_input_request(run, event_id, answerable, exchanged)
            outcome = refused_input(call.name, outcome.input)
        first = await self._store.journal.finish_call(
            event_id,
            result=outcome.result,
            failed=outcome.failed,
            seconds=None,
            tokens=outcome.tokens,
            exchanged=exchanged,
        )
        self._look()
        return LateReplyResult.TAKEN if first else LateReplyResult.REPEATED

    async def _store_input_request(
        self, run: StoredRun, event_id: str, request: InputRequest, exchanged: Exchanged
    ) -> LateReplyResult:
        hosted = self._agent_of(run)
        seconds = (hosted.agent.limits if hosted else Limits()).late_seconds  # a person's, not the tool's
        first = await self._store.journal.store_input_request(
            event_id, request.to_document(), seconds=seconds, exchanged=exchanged
        )
        self._look()
        return LateReplyResult.TAKEN if first else LateReplyResult.REPEATED

    async def store_acceptance(self, event_id: str) -> LateReplyResult:
        """Mark a call as accepted by its tool, to prevent another delivery.

        Its caller has not received the tool's own response.
        """
        run_and_call = await self._store.journal.find_call(event_id)
        if run_and_call is None:
            return LateReplyResult.UNKNOWN
        run_id, call = run_and_call
        if call.state != "sent":
            return LateReplyResult.REPEATED
        seconds = await self._seconds_to_wait(run_id, call.name)
        await self._store.journal.mark_accepted(run_id, None, event_id, seconds=seconds)
        return LateReplyResult.TAKEN

    async def store_report(self, event_id: str, report: ProgressReport) -> LateReplyResult:
        """Store the progress of a call to be answered later."""
        document = {"progress": report.done, "total": report.total, "message": report.message}
        stored = await self._store.journal.store_report(event_id, document)
        return LateReplyResult.REPORTED if stored else LateReplyResult.UNKNOWN

    async def _seconds_to_wait(self, run_id: str, name: str) -> float:
        """Return the seconds a run waits for the answer of a tool."""
        run = await self._store.runs.get(run_id)
        hosted = None if run is None else self._agent_of(run)
        if hosted is None:
            return Limits().late_seconds
        tool = hosted.catalogue.current.tools.get(name)
        return (tool.timeout if tool is not None else None) or hosted.agent.limits.late_seconds

    def _agent_of(self, run: StoredRun) -> AgentHandle | None:
        """Return the agent of a run, `None` if it is not there or not ready."""
        with acting_as(principal_of(run.request)):
            hosted = self._registry.find(run.agent)
        return hosted if isinstance(hosted, AgentHandle) else None


logger = logging.getLogger(__name__)

PATH = "/late-replies"

_RESPONSES: Answers = {
    202: {"description": "The call has its answer, from this delivery or from an earlier one."},
    **problem_responses(
        _400="The body is no CloudEvent, or does not say which call it answers.",
        _403="The reply does not prove that it belongs to the call.",
        _410="No such call is stored: its run is deleted, or was never stored.",
        _415="A batch, which is not read here.",
        _503="The store does not answer: deliver the reply again.",
        default="Any other error, in the same shape.",
    ),
}


@dataclass(frozen=True, slots=True)
class LateReplySink:
    """The dependencies of the route.

    Without keys every reply is refused. `count` is called with the result of each reply.
    """

    replies: LateReplies
    keys: ReplyKeys
    count: Callable[[str], None]
    reply_attribute: str = "replyid"


def make_router(face: LateReplySink) -> APIRouter:
    """Return the route."""
    routes = APIRouter()

    @routes.post(
        PATH,
        operation_id="takeLateReply",
        status_code=202,
        response_model=None,
        responses=_RESPONSES,
        openapi_extra=EVENT,
    )
    async def take_reply(request: Request) -> Response:
        """Give a call its answer, and let its run go on."""
        try:
            event = from_http(request.headers.raw, await request.body())
        except EventFormatError as error:
            raise _to_problem(415, "unsupported-event", "Unsupported event", str(error)) from None
        except EventError as error:
            raise _to_problem(400, "invalid-event", "Invalid event", str(error)) from None
        call = _prove_call(event, face)
        try:
            result = await _store_reply(event, call, face.replies)
        except StoreUnavailable as error:
            raise _to_problem(503, "unavailable", "Unavailable", str(error)) from error
        face.count(result.name.lower())
        logger.info("request %s: late reply to call %s: %s", request_id(), call, result.name.lower())
        if result is LateReplyResult.UNKNOWN:
            raise _to_problem(410, "unknown-call", "Unknown call", f"no stored run made the call {call}")
        return Response(status_code=202)

    return routes


async def _store_reply(event: CloudEvent, call: str, replies: LateReplies) -> LateReplyResult:
    if is_report(event.extensions):
        report = read_report(event)
        if report is None:
            raise _to_problem(400, "invalid-report", "Invalid report", "its data has no number 'progress'")
        return await replies.store_report(call, report)
    if is_acceptance(event.extensions):
        return await replies.store_acceptance(call)
    return await replies.store_answer(call, from_event(event), event)


def _prove_call(event: CloudEvent, face: LateReplySink) -> str:
    """Return the id of the call proven by a reply.

    Raises `ProblemError`, and counts the reply as refused, if nothing is proven.
    """
    try:
        return _call_of(event, face)
    except ProblemError:
        face.count("refused")
        raise


def _call_of(event: CloudEvent, face: LateReplySink) -> str:
    """Return the id of the call; raise `ProblemError` without proof."""
    attribute = PROGRESS_MARK if is_report(event.extensions) else face.reply_attribute
    call, token = event.extensions.get(CAUSE), event.extensions.get(attribute)
    if not face.keys:
        missing = "the agent has no keys to know replies by; set BECKON_SHIM_KEYS_FILE to those of the shim"
        raise _to_problem(403, "no-keys", "No keys", missing)
    if not isinstance(call, str):
        unnamed = f"the reply does not name its call; set its attribute {CAUSE!r} to the id of the call"
        raise _to_problem(400, "unnamed-call", "Unnamed call", unnamed)
    if not isinstance(token, str) or not face.keys.is_proven(token, call):
        logger.warning("request %s: a late reply does not belong to its call", request_id())
        forged = f"the attribute {attribute!r} is not the one that was given with the call"
        raise _to_problem(403, "not-of-this-call", "Not of this call", forged)
    return call


def _to_problem(status: int, slug: str, title: str, detail: str) -> ProblemError:
    return ProblemError(for_dead_letter(Problem(status, slug, title, detail)))
