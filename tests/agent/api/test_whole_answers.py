"""All that the model server says of an answer reaches the client, at both APIs and from the store."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.responses.running_face import Event, events_of, valid
from tests.agent.running_agent import payloads
from tests.agent.scripted_model import Reply, asks_for, chunk, sse, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")

Document = dict[str, Any]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """An open service with a store."""
    async with aiohttp.ClientSession() as session:
        door = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, door) as made:
            yield made


async def chat(service: ClosedService, *script: Reply, **body: Any) -> Document:
    """Return a whole completion, valid by OpenAI's type."""
    service.model.script[:] = script
    answer = await service.chat("beckon", None, **body)
    ChatCompletion.model_validate_json(answer.content, strict=True)
    document: Document = answer.json()
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
    request = {"model": "beckon", "input": "go", **body}
    answer = valid(await service.http.post("/v1/responses", json=request))
    assert valid(await service.http.get(f"/v1/responses/{answer['id']}")) == answer
    return answer


async def stream_response(service: ClosedService, *script: Reply, **body: Any) -> list[Event]:
    """Return the events of a response, each valid by OpenAI's type, and the same when they are read again."""
    service.model.script[:] = script
    request = {"model": "beckon", "input": "go", "stream": True, **body}
    events = events_of(await service.http.post("/v1/responses", json=request))
    path = f"/v1/responses/{events[0]['response']['id']}"
    assert events_of(await service.http.get(path, params={"stream": "true"})) == events
    return events


def openai_client(service: ClosedService) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{service.http.base_url}/v1", api_key="sk-any", max_retries=0)


def counted(prompt: Document | None, completion: Document | None, *, calling: bool = False) -> Reply:
    """Return an answer with a usage of 10 and 5 tokens, and these details."""
    usage: Document = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    usage |= {"prompt_tokens_details": prompt, "completion_tokens_details": completion}
    begun = asks_for(("test_echo", {"text": "x"})) if calling else streamed(chunk({"content": "Hi."}, "stop"))
    return Reply([*begun.pieces[:-1], sse({"choices": [], "usage": usage})])


DETAILED = [
    counted({"cached_tokens": 4, "audio_tokens": None}, {"reasoning_tokens": 3}, calling=True),
    counted({"cached_tokens": 0, "odd": "7"}, {"reasoning_tokens": 1, "accepted_prediction_tokens": 2}),
]
"""Two answers of one run: the sum is of what is known."""


async def test_usage_has_the_details_of_the_model_server_added_over_the_turns(service: ClosedService) -> None:
    whole = await chat(service, *DETAILED)
    stored = await chat(service, *DETAILED, store=True)
    chunks = await chunks_of(service, *DETAILED)
    response = await respond(service, *DETAILED)
    events = await stream_response(service, *DETAILED)

    expected = {
        "prompt_tokens": 20,
        "completion_tokens": 10,
        "total_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 4, "accepted_prediction_tokens": 2},
    }
    assert [whole["usage"], stored["usage"], chunks[-1]["usage"]] == [expected] * 3
    assert response["usage"] == events[-1]["response"]["usage"]
    assert response["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 30,
    }


@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}, {"cached_tokens": True}, [1]])
async def test_details_that_the_model_server_does_not_report_are_left_out(
    service: ClosedService, details: Any
) -> None:
    whole = await chat(service, counted(details, details))

    assert whole["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


async def test_usage_that_the_model_server_does_not_count_is_null(service: ClosedService) -> None:
    silent = streamed(chunk({"content": "Hi."}, "stop"))
    answers = [await chat(service, silent), await respond(service, silent)]
    streams = [
        (await chunks_of(service, silent))[-1],
        (await stream_response(service, silent))[-1]["response"],
    ]

    assert [answer["usage"] for answer in answers + streams] == [None] * 4
