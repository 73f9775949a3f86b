"""The fake model: an OpenAI-compatible server that does what the question says, and nothing else.

A question holds its orders in brackets, such as `[bench city=17 words=32]`:

- `city=N`: call the tool first, for `city-N`, and write its result; without it, answer at once.
- `words=N`: the answer has so many words, each a chunk of its own where it is streamed.
- `every=N`: the milliseconds between two chunks; none by default.
- `batch=N`: no answer begins before so many requests have arrived.

The second turn is recognised by the tool's result in the conversation, whose number the answer repeats: so an
answer is right only if the whole path worked. Requests are searched and not parsed, which keeps the model
cheap. `GET /peak` returns the most answers in progress at once.
`python -m bench.agent.model` prints its port and ends when its input does.
"""

import asyncio
import re

import orjson

from bench.agent.serving import Message, Receive, Send, answer, begin_events, read_body, serve

FIRST_WORD = "word0"
_ORDERS = re.compile(rb"\[bench ([a-z0-9= ]*)\]")
_RESULT = re.compile(rb"celsius\W+(\d+)")  # its quotes are escaped, once or twice
_STREAMED = re.compile(rb'"stream": ?true')
_BARRIER_SECONDS = 60.0
_HEAD = {"id": "chatcmpl-bench", "created": 1, "model": "bench"}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
_MODELS = orjson.dumps({"object": "list", "data": [{"id": "bench", "object": "model", "created": 1}]})


def text_of(words: int, result: int | None = None) -> str:
    """Return the answer that is right."""
    return "".join(_words(words, result))


class Model:
    """The ASGI application."""

    def __init__(self) -> None:
        self._open = self._peak = 0
        self._waiting: list[asyncio.Event] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        body = await read_body(receive)
        if scope["method"] == "GET":
            peak = scope["path"] == "/peak"
            await answer(send, orjson.dumps(self._peak) if peak else _MODELS)
            if peak:
                self._peak = 0
            return
        self._open += 1
        self._peak = max(self._peak, self._open)
        try:
            await self._complete(body, send)
        finally:
            self._open -= 1

    async def _complete(self, body: bytes, send: Send) -> None:
        found = _ORDERS.findall(body)
        orders = {key: int(value) for key, _, value in (part.partition("=") for part in _parts(found))}
        place = await self._wait_for_batch(orders["batch"]) if "batch" in orders else 0.0
        streamed = bool(_STREAMED.search(body))
        result = _RESULT.search(body)
        if "city" in orders and result is None:
            await _call(orders["city"], send, streamed=streamed)
            return
        words = _words(orders["words"], int(result[1]) if result else None)
        if not streamed:
            await _whole({"role": "assistant", "content": "".join(words)}, "stop", send)
            return
        pause = orders.get("every", 0) / 1000
        if place:
            await asyncio.sleep(place * pause)  # not all streams tick at once
        await _stream([{"content": word} for word in words], "stop", send, pause)

    async def _wait_for_batch(self, count: int) -> float:
        """Wait until so many are here; return which part of them came before this one."""
        here = asyncio.Event()
        self._waiting.append(here)
        place = len(self._waiting) / count
        if len(self._waiting) >= count:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                one.set()
        try:
            async with asyncio.timeout(_BARRIER_SECONDS):
                await here.wait()
        except TimeoutError:
            self._waiting.remove(here)
        return place


def _parts(found: list[bytes]) -> list[str]:
    return found[-1].decode().split() if found else ["words=1"]


def _words(count: int, result: int | None) -> list[str]:
    shown = [FIRST_WORD] if result is None else [FIRST_WORD, f" {result}"]
    return [*shown, *(f" word{number}" for number in range(len(shown), count))]


async def _call(city: int, send: Send, *, streamed: bool) -> None:
    """Ask for the tool."""
    arguments = orjson.dumps({"city": f"city-{city}"}).decode()
    call = {"id": f"call_{city}", "type": "function"}
    if not streamed:
        whole = {**call, "function": {"name": "get_weather", "arguments": arguments}}
        await _whole({"role": "assistant", "content": None, "tool_calls": [whole]}, "tool_calls", send)
        return
    named = {"index": 0, **call, "function": {"name": "get_weather", "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": part}} for part in (arguments[:6], arguments[6:])]
    deltas: list[dict[str, object]] = [{"tool_calls": [entry]} for entry in (named, *pieces)]
    await _stream(deltas, "tool_calls", send, 0.0)


async def _whole(message: dict[str, object], reason: str, send: Send) -> None:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    document = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    await answer(send, orjson.dumps(document))


async def _stream(deltas: list[dict[str, object]], reason: str, send: Send, pause: float) -> None:
    await begin_events(send)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await _send(send, {"role": "assistant", "content": None})
    for number, delta in enumerate(deltas):
        if pause:
            await asyncio.sleep(begun + number * pause - loop.time())
        await _send(send, delta)
    await _send(send, {}, reason)
    usage = {**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}
    last = b"data: " + orjson.dumps(usage) + b"\n\ndata: [DONE]\n\n"
    await send({"type": "http.response.body", "body": last})


async def _send(send: Send, delta: dict[str, object], reason: str | None = None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    event = b"data: " + orjson.dumps(chunk) + b"\n\n"
    await send({"type": "http.response.body", "body": event, "more_body": True})


if __name__ == "__main__":
    serve(Model())
