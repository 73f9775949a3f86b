"""`POST /late-replies`: late answers from the shim's late reply sink.

No connection waits for them. A reply names its call by `causationid`, and proves by the token in its
reply attribute that it comes from the receiver of that call: nothing else has to be known of the sender.
The statuses for the shim: 2xx and most 4xx are final; after 503 the Broker delivers the reply again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.api.events.request import EVENT
from beckon_agent.api.http.errors import ProblemError, problem_responses
from beckon_agent.api.http.openapi import Answers
from beckon_agent.core.context import request_id
from beckon_agent.durable.late_replies import LateReplies, LateReplyResult
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.outcome import from_event
from beckon_agent.tool_calls.progress import read_report
from beckon_agent.tool_calls.reply_keys import ReplyKeys
from beckon_contract.cloudevents.events import CloudEvent, EventError, EventFormatError, from_http
from beckon_contract.cloudevents.extensions import CAUSE, PROGRESS_MARK, is_acceptance, is_report
from beckon_runtime.problem import Problem, for_dead_letter

logger = logging.getLogger(__name__)

PATH = "/late-replies"

_RESPONSES: Answers = {
    202: {"description": "The call has its answer, from this delivery or from an earlier one."},
    **problem_responses(
        _400="The body is no CloudEvent, or does not say which call it answers.",
        _403="The reply does not prove that it belongs to the call.",
        _410="No such call is stored: its run is deleted, or was never kept.",
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
            became = await _store_reply(event, call, face.replies)
        except StoreUnavailable as error:
            raise _to_problem(503, "unavailable", "Unavailable", str(error)) from error
        face.count(became.name.lower())
        logger.info("request %s: late reply to call %s: %s", request_id(), call, became.name.lower())
        if became is LateReplyResult.UNKNOWN:
            raise _to_problem(
                410, "unknown-call", "Unknown call", f"no run that is kept made the call {call}"
            )
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
