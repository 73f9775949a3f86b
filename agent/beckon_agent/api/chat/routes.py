"""The route of chat completions, and their stored runs (`store` of OpenAI)."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

import orjson
from fastapi import APIRouter, Request

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.chat.request import ChatRequest, HandedCalls
from beckon_agent.api.chat.response import ChatCompletion, Completion
from beckon_agent.api.http.errors import EXPECTED, ApiError, api_errors, openai_responses, to_api_error
from beckon_agent.api.http.openapi import JsonResponse, describe_answer, describe_operation
from beckon_agent.api.http.streaming import (
    KEEP_ALIVE,
    EventStream,
    PacedStream,
    StreamPace,
    cancel_on_hang_up,
)
from beckon_agent.api.models import find_agent
from beckon_agent.api.responses.request import check_tools
from beckon_agent.core.context import owner_of
from beckon_agent.core.model_types import Message
from beckon_agent.core.records import NewRun
from beckon_agent.core.run_events import (
    AnswerDropped,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TurnNoted,
)
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.service import Service

FACE = "chat.completions"
"""What they are stored under; the id of a run is that of its completion."""

HANDED = "handed"
"""The member of a run's `request` that the ids of calls handed to the client begin with."""

_STATUS: dict[str, Literal[400, 429, 503]] = {
    "field_not_supported": 400,
    "insufficient_quota": 429,
    "invalid_output": 400,
    "rate_limit_exceeded": 429,
    "overloaded": 503,
    "tool_choice_not_honoured": 400,
}


@dataclass(frozen=True, slots=True)
class ChatRuns:
    """Starts runs and stores them. With `always`, runs are stored unless the request says otherwise."""

    engine: Engine
    always: bool = False

    def is_stored(self, store: bool | None) -> bool:
        """True if the run of a request is to be stored."""
        return self.always if store is None else store

    async def begin_run(self, new: NewRun, hosted: AgentHandle, options: Options) -> AsyncGenerator[RunEvent]:
        """Store and start a run; return its events. Raises the errors of `Engine.start`."""
        await self.engine.start(Ask(new, hosted, options, options.client_tools))
        return self._follow_run(new.id)

    async def _follow_run(self, run: str) -> AsyncGenerator[RunEvent]:
        """Yield the events of a run. The client also waits while a person decides on a call."""
        async with aclosing(self.engine.follow(run, wait=True)) as events:
            async for _, event in events:
                match event:
                    case RunFailed(code, message, wait):
                        raise ApiError(_STATUS.get(code, 502), message, code=code, retry_after=wait or 1)
                    case AnswerDropped():  # of what its client has read nothing can be taken back
                        raise ApiError(502, "the answer broke off, and was begun anew", code="broken_off")
                    case TurnNoted() | RunSuspended():
                        pass
                    case _:
                        yield event


_DONE = b"data: [DONE]\n\n"
_RESPONSES = {
    **describe_answer("A chat completion, or with `stream` its chunks as server-sent events."),
    **openai_responses(
        _400="The request is not valid, or requires what an agent does not do.",
        _404="`model` names no agent.",
        _429="A quota is used up, here or at the model server; Retry-After says when it has room again. "
        "With the code `insufficient_quota` no wait helps.",
        _502="The model server failed.",
        _503="No run can begin now, or the model server is overloaded; Retry-After says when to retry.",
        default="Any other error, in the same shape.",
    ),
}


MemoryOf = Callable[[Request, AgentHandle], HandedCalls]
"""Returns the handed calls of the caller of a request, with this agent."""


def make_router(
    service: Service, pace: StreamPace, memory_of: MemoryOf | None = None, stored: ChatRuns | None = None
) -> APIRouter:
    """Return the routes of chat completions.

    Without `memory_of`, the steps of a run before a client call are not stored for the next request.
    """
    routes = APIRouter()

    @routes.post("/v1/chat/completions", **describe_operation("createChatCompletion", _RESPONSES))
    async def create_completion(
        body: ChatRequest, request: Request
    ) -> JsonResponse[ChatCompletion] | EventStream:
        """Answer a conversation, calling the cluster's tools where they help."""
        storing = stored is not None and stored.is_stored(body.store)
        body.check_support(stored=storing)
        hosted = find_agent(service, body.model)
        options = body.to_options()
        check_tools(options, hosted.catalogue.current.tools)
        completion = Completion(hosted.name, body.beckon.events)
        memory = None if memory_of is None else memory_of(request, hosted)
        with api_errors():
            messages = await _restore_messages(body, memory)
        with api_errors():
            if stored is not None and storing:
                new = NewRun(
                    id=completion.id,
                    owner=owner_of(request),
                    agent=hosted.name,
                    face=FACE,
                    input=messages,
                    request={"metadata": body.metadata or {}, HANDED: completion.run},
                )
                run = await stored.begin_run(new, hosted, options)
            else:
                await service.admit_request(hosted, completion.id)
                run = service.run_agent(hosted, messages, options, admitted=completion.id)
        remembered = _remember_run(run, completion.run, memory)
        if not body.stream:
            collected = await cancel_on_hang_up(request.receive, _collect_events(remembered))
            return JsonResponse(completion.to_document(collected))
        events = PacedStream(remembered)
        await cancel_on_hang_up(request.receive, _wait_for_first(events, pace.first_event))
        return EventStream(
            _stream_chunks(completion, events, pace, with_usage=body.wants_usage), pace.stalled
        )

    return routes


async def _restore_messages(body: ChatRequest, memory: HandedCalls | None) -> list[Message]:
    """Return the messages, with the steps of earlier runs between them."""
    messages = body.to_messages()
    return messages if memory is None else await memory.restore_messages(messages)


async def _remember_run(
    events: AsyncGenerator[RunEvent], run: str, memory: HandedCalls | None
) -> AsyncGenerator[RunEvent]:
    """Pass on the events of a run, and store its messages.

    If it ends with a client call, they are stored before the client gets the last event.
    """
    async with aclosing(events):
        async for event in events:
            if memory is not None and isinstance(event, RunFinished) and event.ending == "client_call":
                await memory.store_messages(run, event.messages)
            yield event


async def _collect_events(events: AsyncGenerator[RunEvent]) -> list[RunEvent]:
    try:
        async with aclosing(events):
            return [event async for event in events]
    except EXPECTED as error:
        raise to_api_error(error) from error


async def _wait_for_first(events: PacedStream[RunEvent], seconds: float) -> None:
    """Wait for the first event, and raise an error before it.

    Such an error gets an HTTP status of its own.
    """
    has_event = False
    try:
        await events.wait_for_first(seconds)
        has_event = True
    except EXPECTED as error:
        raise to_api_error(error) from error
    finally:
        if not has_event:
            await events.close()


async def _stream_chunks(
    completion: Completion, events: PacedStream[RunEvent], pace: StreamPace, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    try:
        yield completion.opening_chunk()
        async for happened in events.yield_batches(pace.keep_alive):
            yield (
                b"".join(_to_chunks(completion, happened, with_usage=with_usage)) if happened else KEEP_ALIVE
            )
        yield _DONE
    except Exception as error:  # the status is sent: only the stream can report the error
        yield b"data: " + orjson.dumps(to_api_error(error).to_document()) + b"\n\n"
    finally:
        await events.close()


def _to_chunks(completion: Completion, events: Iterable[RunEvent], *, with_usage: bool) -> Iterator[bytes]:
    for event in events:
        chunk = completion.to_chunk(event)
        if chunk is not None:
            yield chunk
        if isinstance(event, RunFinished) and with_usage:
            yield completion.usage_chunk(event.usage)
