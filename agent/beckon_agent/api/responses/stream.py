"""A run as a response: streamed, whole, or as it is at the moment.

For a run that has not ended, the events so far are made again from its stored turns.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain

from beckon_agent.api.http.errors import ApiError, to_api_error
from beckon_agent.api.http.streaming import KEEP_ALIVE, PacedStream
from beckon_agent.api.responses.documents import ResponseDocument
from beckon_agent.api.responses.events import Encoder
from beckon_agent.api.responses.item_types import PROGRESS, ItemTypes, types_of, write_error
from beckon_agent.api.responses.part_writer import Event
from beckon_agent.core import json_values
from beckon_agent.core.records import FINAL, Past, StoredCall, StoredRun, StoredTurn
from beckon_agent.core.run_events import (
    AnnotationAdded,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ClientCallRequested,
    InputRequested,
    ReasoningDelta,
    RefusalDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TextDelta,
)
from beckon_agent.durable.base import Engine
from beckon_agent.durable.event_log import read_log
from beckon_agent.store.base import Store
from beckon_contract.inputs import previous_call_id


def events_of_turns(run: StoredRun, past: Past) -> Iterator[RunEvent]:
    """Yield the events of all complete turns in the run's order. Each text is one delta."""
    spoke = False
    for turn in past.turns:
        yield from _text_events(turn, spoke=spoke)
        spoke = spoke or bool(turn.text)
        calls = [call for call in past.calls if call.step == turn.step]
        yield from _call_events(run, sorted(calls, key=lambda call: call.number))


def _text_events(turn: StoredTurn, *, spoke: bool) -> Iterator[RunEvent]:
    if turn.reasoning:
        yield ReasoningDelta(turn.reasoning)
    if turn.text:
        yield TextDelta(("\n\n" if spoke else "") + turn.text, turn.details.logprobs)
    if turn.details.refusal:
        yield RefusalDelta(turn.details.refusal, turn.details.refusal_logprobs)
    for annotation in turn.details.annotations:
        yield AnnotationAdded(annotation, len(turn.text))


def _call_events(run: StoredRun, calls: Sequence[StoredCall]) -> Iterator[RunEvent]:
    waiting = [call for call in calls if call.decision is not None or call.state == "approval"]
    others = [call for call in calls if call not in waiting]
    for call in calls:
        if call.state == "client":
            yield ClientCallRequested(call.id, call.name, json_values.to_json(call.arguments))
        elif call in waiting:
            yield ApprovalRequested(call.event_id, call.id, call.name, call.arguments, call.origin)
        else:
            yield CallStarted(call.id, call.name, call.arguments, call.origin)
    decided = all(call.decision is not None for call in waiting)
    # A form that waits now has come after the decisions.
    latest = [call for call in others if call.state == "input" and waiting and decided]
    yield from _later_events([call for call in others if call not in latest])
    if waiting and (decided or run.status == "suspended"):
        yield RunSuspended()
        for call in waiting if decided else ():
            yield CallStarted(call.id, call.name, call.arguments, call.origin)
    yield from _later_events([*latest, *waiting])


def _later_events(calls: Sequence[StoredCall]) -> Iterator[RunEvent]:
    """Yield the last form of each call, and the results."""
    yield from (_last_form(call) for call in calls if call.input_request is not None)
    yield from (_finished_call(call) for call in calls if call.state == "done")


def _last_form(call: StoredCall) -> InputRequested:
    """Return the event of the last form of a call. Its answer has given the call another event id."""
    request = call.input_request or {}
    event_id = call.event_id if call.state == "input" else previous_call_id(call.event_id)
    return InputRequested(event_id, call.id, call.name, request["message"], request["schema"])


def _finished_call(call: StoredCall) -> CallFinished:
    return CallFinished(call.id, call.name, call.result, call.failed, call.seconds or 0.0)


_DONE = b"data: [DONE]\n\n"
_STATUSES = {
    "agent_gone": 503,
    "context_length_exceeded": 400,
    "field_not_supported": 400,
    "insufficient_quota": 429,
    "internal": 500,
    "invalid_output": 400,
    "overloaded": 503,
    "rate_limit_exceeded": 429,
    "tool_choice_not_honoured": 400,
    "unsupported_content": 400,
}
_MODEL_FAILED = 502  # a code that is not known is the model server's own


@dataclass(frozen=True, slots=True)
class ResponseStreamer:
    """Streams runs as responses, or returns them whole.

    With `hold` a stream stays open while a tool takes its time and the run is suspended.
    """

    engine: Engine
    store: Store

    def follow_part(
        self, run: StoredRun, part: int, *, hold: bool, include: Sequence[str] = (), suspensions: int = 0
    ) -> AsyncGenerator[list[Event]]:
        """Yield all events of a part of a run, as they occur.

        The first `suspensions` of the run have ended.
        """
        encoder = Encoder(run, part, types=types_of(run, include), reports=PROGRESS in include)
        return self._encode_events(encoder, run, part, hold=hold, suspensions=suspensions)

    async def wait_for_end(
        self, run: StoredRun, part: int, types: ItemTypes | None = None, suspensions: int = 0
    ) -> ResponseDocument:
        """Return a part of a run at its end, or at a suspension after the first `suspensions`.

        A run is suspended while a tool takes its time. Raises `ApiError` if the run failed without any
        output. A failure after output is part of the response: an error would hide the output, and after a
        call the client would repeat what the call has done.
        """
        encoder = Encoder(run, part, types=types)
        async with aclosing(
            self._encode_events(encoder, run, part, hold=False, suspensions=suspensions)
        ) as batches:
            async for _ in batches:
                pass
        state = encoder.state
        if state is not None and state.error is not None and not (encoder.output or encoder.has_called):
            code, message = state.error.get("code", "internal_error"), state.error.get("message", "")
            status, wait = _STATUSES.get(code, _MODEL_FAILED), state.retry_after or 1
            raise ApiError(status, message, code=code, retry_after=wait)
        return encoder.to_document(run)

    async def count_suspensions(self, run: StoredRun) -> int:
        """Return how often a run was suspended so far."""
        log = read_log(self.store.events, run.id)
        return len([event async for _, event in log if isinstance(event, RunSuspended)])

    async def read_state(
        self, run: StoredRun, part: int, types: ItemTypes | None = None
    ) -> ResponseDocument | None:
        """Return a part of a run in its current state. `None` if the run has not reached this part."""
        encoder, following = Encoder(run, part, types=types), Encoder(run, part + 1)
        for event in await self._past_events(run):
            encoder.feed_event(event, run.ended_at)
            following.feed_event(event, run.ended_at)
        encoder.stop_response(run)
        if not encoder.is_reached:
            return None
        if encoder.is_paused and not following.output and run.status in ("cancelled", "failed"):
            encoder.state = None  # no person will decide its approvals any more
        return encoder.to_document(run)

    async def _past_events(self, run: StoredRun) -> list[RunEvent]:
        if run.status not in FINAL:
            return list(events_of_turns(run, await self.store.runs.load_past(run.id)))
        async with aclosing(self.engine.follow(run.id, wait=True)) as events:
            past = [event async for _, event in events]
        if run.status != "cancelled":
            return past
        # A run that is cancelled may end before it published its last calls; the store has them.
        noted = list(events_of_turns(run, await self.store.runs.load_past(run.id)))
        return max(past, noted, key=_count_calls)

    async def _encode_events(
        self, encoder: Encoder, run: StoredRun, part: int, *, hold: bool, suspensions: int
    ) -> AsyncGenerator[list[Event]]:
        yield encoder.begin_response()
        async with aclosing(self.engine.follow(run.id, wait=hold or part > 1 or suspensions > 0)) as events:
            async for _, event in events:
                ended_at = await self._ended_at(run) if isinstance(event, RunFinished | RunFailed) else None
                suspended = isinstance(event, RunSuspended)
                waits = suspended and encoder.is_reached and not hold and suspensions <= 0
                suspensions -= suspended
                yield encoder.feed_event(event, ended_at)
                if encoder.is_paused or waits:
                    return
        if encoder.state is None:
            yield encoder.stop_response(await self.engine.get(run.id))

    async def _ended_at(self, run: StoredRun) -> float:
        """Return the time of a run's end.

        It is the stored time if there is one, so that every stream has the same.
        """
        stored = await self.engine.get(run.id) if run.retained else None
        return time.time() if stored is None or stored.ended_at is None else stored.ended_at


def _count_calls(events: Sequence[RunEvent]) -> int:
    return sum(
        1 for event in events if isinstance(event, CallStarted | ApprovalRequested | ClientCallRequested)
    )


async def server_sent(
    batches: PacedStream[list[Event]], keep_alive: float, starting_after: int, types: ItemTypes
) -> AsyncGenerator[bytes]:
    """Yield events as server-sent events, with comments as keep-alive.

    Events up to the number `starting_after` are left out, except progress reports. An error here is no
    state of the response, which goes on: the error event repeats the last number, so that a client may join
    the stream again after it.
    """
    number = 0
    try:
        async for several in batches.yield_batches(keep_alive):
            if not several:
                yield KEEP_ALIVE
            for event in chain.from_iterable(several):
                number = event["sequence_number"]
                if number > starting_after or event["type"] == PROGRESS:
                    yield _to_sse(event)
        yield _DONE
    except Exception as error:  # the status is sent: only the stream can report the error
        api_error = to_api_error(error)
        members = write_error(api_error.code or "internal_error", api_error.message, types)
        yield _to_sse({"type": "error", "sequence_number": number, **members})
    finally:
        await batches.close()


def _to_sse(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {json_values.to_json(event)}\n\n".encode()
