"""OpenAI's chat completions: `POST /v1/chat/completions`, streaming and not."""

from collections.abc import AsyncGenerator, AsyncIterator

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from beckon_agent.faces.chat_request import ChatRequest
from beckon_agent.faces.chat_shapes import DOCUMENT, Completion
from beckon_agent.faces.described import answer
from beckon_agent.faces.event_stream import EventStream
from beckon_agent.faces.hang_up import unless_gone
from beckon_agent.faces.models import find_agent
from beckon_agent.faces.openai_errors import EXPECTED, openai_responses, told
from beckon_agent.faces.pacing import Pace, Paced
from beckon_agent.roster import Hosted
from beckon_agent.runs import RunEvent, RunFinished
from beckon_agent.service import Service

_KEEPALIVE = b": keep-alive\n\n"
_DONE = b"data: [DONE]\n\n"
_RESPONSES = {
    **answer("A chat completion, or with `stream` its chunks as server-sent events.", DOCUMENT, streams=True),
    **openai_responses(
        _400="The request is not valid, or asks for what an agent does not do.",
        _404="`model` names no agent.",
        _429="A quota is used up; Retry-After says when it has room again.",
        _502="The model server failed.",
        _503="No run can begin now, or none of this agent; Retry-After says when to ask again.",
        default="Any other error, in the same shape.",
    ),
}


def router(service: Service, pace: Pace) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    path = "/v1/chat/completions"

    @routes.post(path, operation_id="createChatCompletion", response_model=None, responses=_RESPONSES)
    async def create(body: ChatRequest, request: Request) -> Response:
        """Answer a conversation, calling the cluster's tools on the way."""
        body.check()
        hosted = find_agent(service, body.model)
        await _admitted(service, hosted)
        completion = Completion(hosted.name, body.beckon.events)
        events = Paced(service.run(hosted, body.conversation(), body.options()))
        if not body.stream:
            found = await unless_gone(request.receive, _all(events))
            return Response(orjson.dumps(completion.whole(found)), media_type="application/json")
        await unless_gone(request.receive, _begun(events, pace.first_event))
        return EventStream(_stream(completion, events, pace, with_usage=body.wants_usage), pace.stalled)

    return routes


async def _admitted(service: Service, hosted: Hosted) -> None:
    try:
        await service.admit(hosted)
    except EXPECTED as error:
        raise told(error) from error


async def _all(events: Paced[RunEvent]) -> list[RunEvent]:
    found: list[RunEvent] = []
    try:
        while (event := await events.take()) is not None:
            found.append(event)
    except EXPECTED as error:
        raise told(error) from error
    finally:
        await events.close()
    return found


async def _begun(events: Paced[RunEvent], seconds: float) -> None:
    """Raise what goes wrong before the first event, so that it gets an HTTP status of its own."""
    begun = False
    try:
        await events.begin(seconds)
        begun = True
    except EXPECTED as error:
        raise told(error) from error
    finally:
        if not begun:
            await events.close()


async def _stream(
    completion: Completion, events: Paced[RunEvent], pace: Pace, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    try:
        yield completion.opening()
        async for event in _kept_alive(events, pace.keep_alive):
            if event is None:
                yield _KEEPALIVE
                continue
            chunk = completion.chunk(event)
            if chunk is not None:
                yield chunk
            if isinstance(event, RunFinished) and with_usage:
                yield completion.usage_chunk(event.usage)
        yield _DONE
    except Exception as error:  # the status is out: the stream is the only place left to tell of it
        yield b"data: " + orjson.dumps(told(error).document()) + b"\n\n"
    finally:
        await events.close()


async def _kept_alive(events: Paced[RunEvent], seconds: float) -> AsyncIterator[RunEvent | None]:
    """Yield the events, and `None` whenever there was none for a while."""
    while True:
        while not await events.ready(seconds):
            yield None
        event = await events.take()
        if event is None:
            return
        yield event
