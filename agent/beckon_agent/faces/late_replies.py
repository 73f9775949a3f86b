"""`POST /late-replies`: answers that no connection waited for, as the shim's late reply sink hands them over.

A reply says by `causationid` which call it answers, and proves by the token in its reply attribute that it
comes from whoever was sent that call: nothing else has to be known of the sender. What the statuses mean to
the shim: 2xx and most 4xx are the end of it; after 503 the Broker delivers the reply again.
"""

import logging
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.engine.late import Became, LateReplies
from beckon_agent.exchange import from_event
from beckon_agent.faces.events.described import EVENT
from beckon_agent.faces.problems import ProblemError, problem_responses
from beckon_agent.reply_keys import ReplyKeys
from beckon_agent.request_id import request_id
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.acceptance import CAUSE, is_acceptance
from beckon_contract.events import CloudEvent, EventError, EventFormatError, from_http
from beckon_contract.problem import Problem, for_dead_letter

logger = logging.getLogger(__name__)

PATH = "/late-replies"

_RESPONSES: dict[int | str, dict[str, Any]] = {
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
class LateFace:
    """What the route works with; without keys every reply is refused."""

    replies: LateReplies
    keys: ReplyKeys
    reply_attribute: str = "replyid"


def router(face: LateFace) -> APIRouter:
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
            raise _problem(415, "unsupported-event", "Unsupported event", str(error)) from None
        except EventError as error:
            raise _problem(400, "invalid-event", "Invalid event", str(error)) from None
        call = _proven(event, face)
        try:
            if is_acceptance(event.extensions):
                became = await face.replies.accepted(call)
            else:
                became = await face.replies.answered(call, from_event(event))
        except StoreUnavailable as error:
            raise _problem(503, "unavailable", "Unavailable", str(error)) from error
        logger.info("request %s: late reply to call %s: %s", request_id(), call, became.name.lower())
        if became is Became.UNKNOWN:
            raise _problem(410, "unknown-call", "Unknown call", f"no run that is kept made the call {call}")
        return Response(status_code=202)

    return routes


def _proven(event: CloudEvent, face: LateFace) -> str:
    """Return the id of the call that a reply answers; raise `ProblemError` where it does not prove that."""
    call, token = event.extensions.get(CAUSE), event.extensions.get(face.reply_attribute)
    if not face.keys:
        missing = "the agent has no keys to know replies by; set BECKON_SHIM_KEYS_FILE to those of the shim"
        raise _problem(403, "no-keys", "No keys", missing)
    if not isinstance(call, str):
        unnamed = f"the reply does not name its call; set its attribute {CAUSE!r} to the id of the call"
        raise _problem(400, "unnamed-call", "Unnamed call", unnamed)
    if not isinstance(token, str) or not face.keys.prove(token, call):
        logger.warning("request %s: a late reply does not belong to its call", request_id())
        forged = f"the attribute {face.reply_attribute!r} is not the one that was given with the call"
        raise _problem(403, "not-of-this-call", "Not of this call", forged)
    return call


def _problem(status: int, slug: str, title: str, detail: str) -> ProblemError:
    return ProblemError(for_dead_letter(Problem(status, slug, title, detail)))
