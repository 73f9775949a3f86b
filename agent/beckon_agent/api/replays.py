"""`POST /runs/{id}/replay`: the replay of a stored run of the caller.

The replay is reported as server-sent events.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.http.errors import STORE_UNAVAILABLE, problem_responses
from beckon_agent.api.http.openapi import describe_answer, describe_operation
from beckon_agent.api.http.streaming import KEEP_ALIVE, EventStream, PacedStream, StreamPace, event_bytes
from beckon_agent.api.models import not_served
from beckon_agent.api.responses.documents import find_run
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.context import owner_of, request_id
from beckon_agent.core.records import RunStatus, StoredRun
from beckon_agent.replay.callers import LiveCall
from beckon_agent.replay.compare import Difference
from beckon_agent.replay.player import CannotReplay, MayHaveEffects, Replayer, ReplayOptions, ReplayReport
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_runtime.logs import point_to_log
from beckon_runtime.problem import Problem, ProblemError

_RESPONSES = {
    **describe_answer(
        "Server-sent events: `call` for each call that was made for real, and at the end `report`, or "
        "`error` in its place."
    ),
    **problem_responses(
        _400="The body is no JSON object, or has a field that is unknown or wrong.",
        _404="There is no such run, or it is not the caller's.",
        _409="The run has not ended, its agent is gone, or tools would be called that may have effects.",
        _429="A limit on requests has no room; Retry-After says when it will.",
        _503="No replay can begin now.",
        default="Any other error, in the same shape.",
    ),
}


class ReplayRequest(BaseModel):
    """How to play a run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    live_tools: bool = Field(False, description="Call the tools of today, and compare their results.")
    effects: bool = Field(False, description="Call also tools that are not declared read-only.")


class LiveCallDocument(TypedDict):
    """A call that was made for real, with its recorded and its current result."""

    id: str
    name: str
    arguments: Mapping[str, object]
    called: bool
    same: bool
    recorded: object
    now: object
    diff: str


class LiveCallCounts(TypedDict):
    """The number of calls that were made for real, and of those with the same result."""

    same: int
    all: int


class ReplayDocument(TypedDict):
    """The outcome of a replay."""

    run: str
    agent: str
    model: str | None
    status: RunStatus
    same: bool
    live_tools: bool
    turns: int
    calls: int
    events: int
    answers_dropped: int
    requests_unknown: int
    log_is_whole: bool
    live_calls: LiveCallCounts
    differences: Sequence[Difference]


def make_router(store: Store, service: Service, pace: StreamPace) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()
    replayer = Replayer(store, service)

    @routes.post("/runs/{run_id}/replay", **describe_operation("replayRun", _RESPONSES))
    async def replay_run(run_id: str, body: ReplayRequest, request: Request) -> EventStream:
        """Replay a stored run with its recorded model answers and tool results."""
        options = ReplayOptions(body.live_tools, body.effects)
        with _problem_errors():
            run = await find_run(store, run_id, owner_of(request))
            hosted = _agent_of(service, run)
            recording = await replayer.prepare_recording(run, options, hosted)
            await service.admit_request(hosted)
        stream = PacedStream(replayer.replay(recording, options, hosted))
        return EventStream(_server_sent(stream, pace.keep_alive), pace.stalled)

    return routes


@contextmanager
def _problem_errors() -> Iterator[None]:
    """Turn errors before the start of a replay into problem documents."""
    try:
        yield
    except CannotReplay as error:
        raise _to_problem(error) from error
    except NoRoom as error:
        raise ProblemError(Problem(503, "overloaded", "Overloaded", str(error))) from error
    except LimitReached as error:
        wait = {"retry_after": error.retry_after}
        problem = Problem(429, "rate-limit-exceeded", "Rate limit exceeded", str(error), wait)
        raise ProblemError(problem) from error
    except StoreUnavailable as error:
        raise ProblemError(
            Problem(503, "store-unavailable", "Store unavailable", STORE_UNAVAILABLE)
        ) from error


def _agent_of(service: Service, run: StoredRun) -> AgentHandle:
    match service.registry.find(run.agent):
        case AgentHandle() as agent:
            return agent
        case UnavailableAgent() as agent:
            raise ProblemError(Problem(503, "agent-not-ready", "Agent not ready", not_served(agent)))
    if not service.registry.complete:
        raise NoRoom("the agents are not all known yet; retry shortly")
    raise CannotReplay("agent-gone", f"the run is of the agent {run.agent!r}, which there is not any more")


def _to_problem(error: CannotReplay) -> ProblemError:
    members = {"tools": list(error.tools)} if isinstance(error, MayHaveEffects) else {}
    title = error.code.replace("-", " ").capitalize()
    return ProblemError(Problem(409, error.code, title, str(error), members))


async def _server_sent(
    stream: PacedStream[LiveCall | ReplayReport], keep_alive: float
) -> AsyncGenerator[bytes]:
    try:
        async for items in stream.yield_batches(keep_alive):
            yield b"".join(map(_to_sse, items)) or KEEP_ALIVE
    except (CannotReplay, NoRoom) as error:  # the status is out: the stream is the only place left
        yield event_bytes("error", {"detail": str(error)})
    except Exception:
        yield event_bytes("error", {"detail": f"an unexpected error; {point_to_log('agent', request_id())}"})
        raise
    finally:
        await stream.close()


def _to_sse(item: LiveCall | ReplayReport) -> bytes:
    if isinstance(item, LiveCall):
        return event_bytes("call", call_document(item))
    return event_bytes("report", report_document(item))


def call_document(call: LiveCall) -> LiveCallDocument:
    """Return a live call of a replay as JSON."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "called": call.called,
        "same": call.same,
        "recorded": call.recorded,
        "now": call.now,
        "diff": call.diff,
    }


def report_document(report: ReplayReport) -> ReplayDocument:
    """Return the report of a replay as JSON."""
    recording = report.recording
    known = [prompt.model for prompt in recording.prompts if prompt is not None]
    return {
        "run": recording.run.id,
        "agent": recording.run.agent,
        "model": known[0] if known else None,
        "status": recording.run.status,
        "same": report.same,
        "live_tools": report.live,
        "turns": len(recording.past.turns),
        "calls": len(recording.past.calls),
        "events": len(recording.events),
        "answers_dropped": recording.dropped,
        "requests_unknown": report.unknown_prompts,
        "log_is_whole": recording.is_whole,
        "live_calls": {"same": sum(call.same for call in report.calls), "all": len(report.calls)},
        "differences": report.differences,
    }
