"""Answers of both APIs over HTTP, each held to OpenAI's types, and read again from the store."""

from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.agent.auth.closed_service import ClosedService
from tests.agent.responses.running_face import Event, events_of, valid
from tests.agent.running_agent import payloads
from tests.agent.scripted_model import Reply, asks_for

Document = dict[str, Any]


async def chat(service: ClosedService, *script: Reply, **body: Any) -> Document:
    """Return a whole completion, valid by OpenAI's type, and the same when it is read again."""
    service.model.script[:] = script
    answer = await service.chat("beckon", None, **body)
    ChatCompletion.model_validate_json(answer.content, strict=True)
    document: Document = answer.json()
    if body.get("store"):
        again = (await service.http.get(f"/v1/chat/completions/{document['id']}")).json()
        # The store has its own clock.
        assert again == {**document, "created": again["created"], "metadata": {}}
    return document


async def chunks_of(service: ClosedService, *script: Reply, **body: Any) -> list[Document]:
    """Return the chunks of a completion, each valid by OpenAI's type."""
    service.model.script[:] = script
    options = {"stream": True, "stream_options": {"include_usage": True}}
    found = payloads((await service.chat("beckon", None, **options, **body)).text)
    for piece in found:
        ChatCompletionChunk.model_validate(piece, strict=True)
    return found


async def respond(service: ClosedService, *script: Reply, **body: Any) -> Event:
    """Return a response, valid by OpenAI's type, and the same when it is read again."""
    service.model.script[:] = script
    request = {"model": "beckon", "input": "go", "include": ["mcp_call"], **body}
    answer = valid(await service.http.post("/v1/responses", json=request))
    assert valid(await service.http.get(f"/v1/responses/{answer['id']}")) == answer
    return answer


async def stream_response(service: ClosedService, *script: Reply, **body: Any) -> list[Event]:
    """Return the events of a response, each valid by OpenAI's type, and the same when they are read again."""
    service.model.script[:] = script
    request = {"model": "beckon", "input": "go", "stream": True, "include": ["mcp_call"], **body}
    events = events_of(await service.http.post("/v1/responses", json=request))
    path = f"/v1/responses/{events[0]['response']['id']}"
    assert events_of(await service.http.get(path, params={"stream": "true"})) == events
    return events


ECHO = asks_for(("test_echo", {"text": "x"}))
