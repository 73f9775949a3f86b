"""What is tried again, how often, and what is not, against a server that really fails."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from beckon_agent.core.model_types import Turn
from beckon_agent.core.run_events import ReasoningDelta, TextDelta
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelAuthError, ModelRefused, ModelUnavailable, StreamBroken
from beckon_agent.model.transport import Patience
from tests.agent.scripted_model import (
    KEY,
    QUESTION,
    ReceivedRequest,
    Reply,
    answers,
    calls,
    chunk,
    fragment,
    items_of,
    refuses,
    says,
    scripted_model,
    sse,
    streamed,
)
from tests.patience import PATIENCE

QUICK = Patience(attempts=4, first_wait=0.001, longest_wait=0.002)
BROKEN = Reply([sse(chunk({"role": "assistant", "content": ""}), done=False)], breaks_off=True)
NAMED = Reply([sse(calls(fragment(0, "1", "f", '{"x":')), done=False)], breaks_off=True)


async def requested(script: list[Reply], patience: Patience = QUICK) -> tuple[int, Turn | Exception]:
    """Return the number of requests to the server, and the result."""
    async with scripted_model(*script) as model:
        async with ModelClient(model.base_url, KEY, "m", patience=patience) as client:
            try:
                last = (await items_of(client))[-1]
            except Exception as error:
                return len(model.requests), error
        assert isinstance(last, Turn)
        return len(model.requests), last


@pytest.mark.parametrize(
    "failure",
    [
        refuses(429, "slow down"),
        refuses(500, "oops"),
        refuses(503, "loading model"),
        answers({"error": {"message": "overloaded", "code": 529}}),
        streamed({"error": {"message": "preempted", "code": 500}}),
        Reply([]),
        BROKEN,
        NAMED,
    ],
)
async def test_what_fails_before_the_first_word_is_tried_again(failure: Reply) -> None:
    request, turn = await requested([failure, failure, says("hello")])
    assert isinstance(turn, Turn)
    assert (request, turn.text) == (3, "hello")


async def test_it_is_not_tried_for_ever() -> None:
    request, error = await requested([refuses(503, "loading model")] * 9)
    assert request == QUICK.attempts
    assert isinstance(error, ModelUnavailable)
    assert error.status == 503


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (refuses(400, "no"), ModelRefused),
        (refuses(401, "who?"), ModelAuthError),
        (refuses(404, "what?"), ModelRefused),
        (refuses(500, "Unsupported param: tools"), ModelRefused),
    ],
)
async def test_what_will_never_do_is_not_tried_again(failure: Reply, kind: type[Exception]) -> None:
    request, error = await requested([failure, says("hello")])
    assert request == 1
    assert isinstance(error, kind)


@pytest.mark.parametrize("word", [{"content": "hello"}, {"reasoning": "hm"}])
async def test_nothing_is_tried_again_after_the_first_word(word: dict[str, str]) -> None:
    begun = Reply([sse(chunk(word), done=False)], breaks_off=True)
    request, error = await requested([begun, says("hello")])
    assert request == 1
    assert isinstance(error, StreamBroken)
    assert isinstance(error.__cause__, ModelUnavailable)
    assert "dropped the connection" in str(error)


async def test_what_was_shown_stays_and_the_break_comes_after_it() -> None:
    begun = Reply([sse(chunk({"reasoning": "hm"}), chunk({"content": "hel"}), done=False)], breaks_off=True)
    async with scripted_model(begun) as model, ModelClient(model.base_url, KEY, "m") as client:
        stream = client.stream(QUESTION)
        assert [await anext(stream), await anext(stream)] == [ReasoningDelta("hm"), TextDelta("hel")]
        with pytest.raises(StreamBroken, match="broke off"):
            await anext(stream)


async def test_the_retry_waits_as_long_as_the_server_requests() -> None:
    begun = time.monotonic()
    request, _ = await requested([refuses(429, "slow down", **{"retry-after-ms": "150"}), says("hello")])
    assert request == 2
    assert time.monotonic() - begun >= 0.15


async def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    request, error = await requested(
        [refuses(429, "come tomorrow", **{"retry-after": "86400"}), says("hello")]
    )
    assert request == 1
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == 86400


async def test_a_connection_that_breaks_after_the_end_was_said_spoils_nothing() -> None:
    whole = Reply([sse(chunk({"content": "hello"}), chunk(finish="stop"), done=False)], breaks_off=True)
    request, turn = await requested([whole])
    assert isinstance(turn, Turn)
    assert (request, turn.text, turn.finish_reason) == (1, "hello", "stop")


@asynccontextmanager
async def flaky_server(drops: int) -> AsyncIterator[tuple[str, list[int]]]:
    """Serve a port that closes the first connections as soon as a request comes, and answers the others."""
    seen: list[int] = []
    body = sse(chunk({"content": "hello"}), chunk(finish="stop"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(len(seen))
        if len(seen) > drops:
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n" + body
            )
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1", seen


async def test_a_connection_that_is_lost_before_the_answer_is_made_again() -> None:
    async with flaky_server(drops=2) as (url, seen), ModelClient(url, KEY, "m", patience=QUICK) as client:
        turn = (await items_of(client))[-1]
    assert isinstance(turn, Turn)
    assert (turn.text, len(seen)) == ("hello", 3)


async def test_a_server_that_is_not_there_is_named() -> None:
    async with flaky_server(drops=0) as (url, _):
        pass
    async with ModelClient(url, KEY, "m", patience=QUICK) as client:
        with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:\d+ cannot be reached") as caught:
            await items_of(client)
    assert caught.value.status is None


async def test_a_server_that_falls_silent_is_given_up() -> None:
    never = asyncio.Event()
    silent = Reply([b": wait\n\n", b": for ever\n\n"], holds=never)
    request, error = await requested([silent, says("hello")], Patience(attempts=1, silence=0.05))
    assert request == 1
    assert isinstance(error, ModelUnavailable)
    assert "fell silent" in str(error)


async def test_a_cancelled_caller_is_not_tried_again_for() -> None:
    came = asyncio.Event()

    def busy(_: ReceivedRequest) -> Reply:
        came.set()
        return refuses(503, "loading model")

    async with scripted_model(busy, busy) as model:
        patience = Patience(first_wait=30, longest_wait=30)
        async with ModelClient(model.base_url, KEY, "m", patience=patience) as client:
            task = asyncio.ensure_future(items_of(client))
            await asyncio.wait_for(came.wait(), PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(model.requests) == 1
