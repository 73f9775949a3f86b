"""OpenAI's chat completions: `POST /v1/chat/completions`, streaming and not."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator

import orjson
from fastapi import APIRouter
from starlette.responses import JSONResponse, Response, StreamingResponse

from beckon_agent.faces.chat_request import ChatRequest
from beckon_agent.faces.chat_shapes import Completion
from beckon_agent.faces.openai_errors import FaceError, from_model, too_busy
from beckon_agent.faces.pacing import Paced
from beckon_agent.model.errors import ModelError
from beckon_agent.runs import Agent, RunEvent, RunFinished
from beckon_agent.service import Service, TooManyRuns

logger = logging.getLogger(__name__)

_FIRST_EVENT_SECONDS = 10.0  # an early failure still gets its HTTP status
_KEEPALIVE_SECONDS = 15.0
_KEEPALIVE = b": keep-alive\n\n"
_DONE = b"data: [DONE]\n\n"


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    @routes.post("/v1/chat/completions", response_model=None)
    async def create(request: ChatRequest) -> Response:
        """Answer a conversation, calling the cluster's tools on the way."""
        request.check()
        agent = _agent(service, request.model)
        completion = Completion(agent.name, request.beckon.events)
        events = Paced(service.run(agent, request.conversation(), request.options()))
        if not request.stream:
            return JSONResponse(completion.whole(await _all(events)))
        await _fail_early(events)
        with_usage = request.stream_options is not None and request.stream_options.include_usage
        stream = _stream(completion, events, with_usage=with_usage)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    return routes


def _agent(service: Service, name: str) -> Agent:
    agent = service.agents.get(name)
    if agent is None:
        known = ", ".join(sorted(service.agents))
        message = f"there is no agent {name[:80]!r}; set 'model' to one of: {known}"
        raise FaceError(404, message, code="model_not_found", param="model")
    return agent


async def _all(events: Paced[RunEvent]) -> list[RunEvent]:
    found: list[RunEvent] = []
    try:
        while (event := await events.take()) is not None:
            found.append(event)
    except (ModelError, TooManyRuns) as error:
        raise _told(error) from error
    finally:
        await events.close()
    return found


async def _fail_early(events: Paced[RunEvent]) -> None:
    """Raise what goes wrong before the first event, so that it gets an HTTP status of its own."""
    if await events.ready(_FIRST_EVENT_SECONDS) and (error := events.failure()) is not None:
        await events.close()
        raise _told(error) from error


async def _stream(
    completion: Completion, events: Paced[RunEvent], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    try:
        yield completion.opening()
        async for event in _kept_alive(events):
            if event is None:
                yield _KEEPALIVE
                continue
            chunk = completion.chunk(event)
            if chunk is not None:
                yield chunk
            if isinstance(event, RunFinished) and with_usage:
                yield completion.usage_chunk(event.usage)
        yield _DONE
    except (ModelError, TooManyRuns) as error:
        yield b"data: " + orjson.dumps(_told(error).document()) + b"\n\n"
    finally:
        await events.close()


async def _kept_alive(events: Paced[RunEvent]) -> AsyncIterator[RunEvent | None]:
    """Yield the events, and `None` whenever there was none for a while."""
    while True:
        while not await events.ready(_KEEPALIVE_SECONDS):
            yield None
        event = await events.take()
        if event is None:
            return
        yield event


def _told(error: BaseException) -> FaceError:
    if isinstance(error, TooManyRuns):
        return too_busy()
    if isinstance(error, ModelError):
        logger.warning("the model failed: %s", error)
        return from_model(error)
    raise error
