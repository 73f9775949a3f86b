"""`POST /events` and `POST /events/{agent}`: an event in, its reply event out.

The event may be in either HTTP mode. The statuses for a Broker: 200 is the reply, 202 and 204 are a
success without one; after 404, 429 and 503 the Broker delivers the event again, and gets the result of
the run begun before; any other 4xx makes it a dead letter.
"""

import asyncio
import logging
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.events.messages import RunAnswer, Unanswered, outcome_of, read_answer
from beckon_agent.api.events.request import (
    EVENT,
    AcceptedEvent,
    EventRules,
    accept_event,
    event_problems,
    to_event_problem,
)
from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import Answers
from beckon_agent.api.http.streaming import cancel_on_hang_up
from beckon_agent.api.models import known_agents, not_served
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.context import owner_of, request_id
from beckon_agent.core.records import FINAL
from beckon_agent.durable.base import Engine
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import RunExists, StoreUnavailable
from beckon_agent.telemetry.spans import resume_trace
from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary
from beckon_contract.cloudevents.extensions import preferred_wait
from beckon_contract.failures import Reason
from beckon_runtime.tracing import carried

logger = logging.getLogger(__name__)

_TRACE_ID = slice(3, 35)  # of a traceparent
_MARGIN = 5.0  # a run ends by its own limit; only a run without a worker ends by ours
_RESPONSES: Answers = {
    200: {
        "description": "The reply event, in binary mode.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    202: {"description": "The event was taken, and there is nothing to say."},
    204: {"description": "The event is an answer, which no agent takes."},
    **problem_responses(
        _400="The body is no CloudEvent, or its attributes or data cannot be read.",
        _403="The chain of agents is too long, or has no tokens left.",
        _404="There is no agent of this name.",
        _415="A batch, or data that is neither JSON nor text.",
        _424="The run failed, and no caller waits for it.",
        _429="A limit on requests or tokens has no room; Retry-After says when it will.",
        _503="Nothing can begin now, or the run goes on: deliver the event again.",
        default="Any other error, in the same shape.",
    ),
}


def make_router(service: Service, engine: Engine, rules: EventRules | None = None) -> APIRouter:
    """Return the routes of events."""
    routes = APIRouter()
    event_runs = _EventRuns(engine, rules or EventRules())

    async def answer_event(request: Request, agent: str) -> Response:
        with event_problems():
            event = from_http(request.headers.raw, await request.body())
            hosted = _find_agent(service, agent)
            accepted = accept_event(event, hosted, owner_of(request), event_runs.rules)
            if accepted is None:
                return Response(status_code=204)
            with _join_trace(request, event):
                answer = event_runs.answer_event(accepted, preferred_wait(request.headers.raw))
                return await cancel_on_hang_up(request.receive, answer)

    @routes.post(
        "/events", operation_id="takeEvent", response_model=None, responses=_RESPONSES, openapi_extra=EVENT
    )
    async def take_event(request: Request) -> Response:
        """Let the service's own agent answer an event."""
        return await answer_event(request, service.registry.default)

    @routes.post(
        "/events/{agent:path}",
        operation_id="takeEventOf",
        response_model=None,
        responses=_RESPONSES,
        openapi_extra=EVENT,
    )
    async def take_event_of(agent: str, request: Request) -> Response:
        """Let an agent answer an event; one of another namespace is NAMESPACE/NAME."""
        return await answer_event(request, agent)

    return routes


@dataclass(slots=True)
class _EventRuns:
    """The runs of events, and the deliveries waiting for them."""

    engine: Engine
    rules: EventRules
    waiting: int = field(default=0, init=False)

    async def answer_event(self, taken: AcceptedEvent, preferred: float | None) -> Response:
        """Return the answer to an event, from its new or existing run."""
        if self.waiting >= self.rules.max_waiting:
            raise to_event_problem(
                503, "overloaded", "Overloaded", "too many events wait for their answers; come again"
            )
        self.waiting += 1
        try:
            return await self._answer_event(taken, preferred)
        except (NoRoom, StoreUnavailable) as error:
            raise to_event_problem(503, "overloaded", "Overloaded", str(error)) from error
        except LimitReached as error:
            wait = {"retry_after": error.retry_after}
            raise to_event_problem(
                429, "rate-limit-exceeded", "Rate limit exceeded", str(error), wait
            ) from error
        finally:
            self.waiting -= 1

    async def _answer_event(self, taken: AcceptedEvent, preferred: float | None) -> Response:
        run = await self.engine.get(taken.run_id)
        if run is None:
            if taken.seconds_left <= 0:
                return _failure_response(taken, "the event had expired when it came; no run was started")
            await self._start_run(taken)
        # A run that has ended is reported at any time: it only has to be read.
        patience = None if run is not None and run.status in FINAL else _seconds_to_wait(taken, preferred)
        try:
            async with asyncio.timeout(patience), aclosing(self.engine.follow(taken.run_id)) as events:
                answer = await read_answer(events)
        except TimeoutError:
            if taken.seconds_left <= 0:
                return _failure_response(taken, "the event expired before the agent had an answer")
            still = "the agent still works on this event; deliver it again for the answer"
            raise to_event_problem(503, "still-running", "Still running", still) from None
        return _to_response(taken, answer or await self._read_outcome(taken), self.rules)

    async def _read_outcome(self, taken: AcceptedEvent) -> Unanswered:
        """Return the result of a run ended from outside, such as a deleted one."""
        run = await self.engine.get(taken.run_id)
        return Unanswered("failed", "the run was deleted") if run is None else outcome_of(run)

    async def _start_run(self, taken: AcceptedEvent) -> None:
        try:
            await self.engine.start(taken.to_ask())
        except RunExists:  # a second delivery was here at the same time
            return
        logger.info(
            "request %s: event %s of %s, type %s, starts run %s of %s at depth %d",
            request_id(),
            taken.event.id,
            taken.event.source,
            taken.event.type,
            taken.run_id,
            taken.hosted.name,
            taken.chain.depth,
        )


def _to_response(taken: AcceptedEvent, answer: RunAnswer | Unanswered, rules: EventRules) -> Response:
    if isinstance(answer, RunAnswer):
        if answer.is_nothing and not taken.replier.is_awaited:
            return Response(status_code=202)
        return _event_response(taken.replier.write_answer(answer))
    if answer.why == "suspended":
        if not taken.replier.is_awaited:
            return Response(status_code=202)
        if rules.sink:
            return _event_response(taken.replier.write_acceptance())
        # What the calling model knows as: no answer in time, and the work may still go on.
        return _failure_response(taken, f"{answer.message}; run {taken.run_id} goes on once that has come")
    logger.warning("request %s: run %s failed: %s", request_id(), taken.run_id, answer.message)
    return _failure_response(taken, f"the agent failed: {answer.message}", Reason.TOOL_FAILED)


def _failure_response(taken: AcceptedEvent, message: str, reason: Reason = Reason.TIMEOUT) -> Response:
    """Return a failure as reply event, if a reply is awaited.

    Otherwise raise a 424, so that the event becomes a dead letter.
    """
    if taken.replier.is_awaited:
        return _event_response(taken.replier.write_failure(reason, message))
    raise to_event_problem(424, "no-answer", "No answer", f"{message} (run {taken.run_id})")


def _event_response(event: CloudEvent) -> Response:
    headers, body = to_binary(event)
    return Response(body, 200, dict(headers))


def _seconds_to_wait(taken: AcceptedEvent, preferred: float | None) -> float:
    """Return for how many seconds a delivery waits for its run."""
    limit = taken.hosted.agent.limits.seconds + _MARGIN
    return min(limit if preferred is None else min(preferred, limit), taken.seconds_left)


def _join_trace(request: Request, event: CloudEvent) -> AbstractContextManager[None]:
    """Continue the trace of the event if the request has none. Not every Broker sends one."""
    ours, theirs = carried().get("traceparent", ""), str(event.extensions.get("traceparent", ""))
    joined = "traceparent" in request.headers or ours[_TRACE_ID] == theirs[_TRACE_ID]
    return nullcontext() if joined else resume_trace(event.extensions)


def _find_agent(service: Service, name: str) -> AgentHandle:
    match service.registry.find(name):
        case AgentHandle() as agent:
            return agent
        case UnavailableAgent() as agent:
            raise to_event_problem(503, "agent-not-ready", "Agent not ready", not_served(agent))
    if not service.registry.complete:
        starting = "the agents are not all known yet; come again"
        raise to_event_problem(503, "overloaded", "Overloaded", starting)
    detail = f"there is no agent {name[:80]!r}; post to /events/NAME with one of: {known_agents(service)}"
    raise to_event_problem(404, "unknown-agent", "Unknown agent", detail)
