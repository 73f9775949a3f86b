"""A collector that takes spans and throws them away: `POST /v1/traces`, with OTLP over HTTP.

`GET /counted` returns the number of bytes and of requests. `python -m bench.agent.collector` prints its
port and ends when its input does.
"""

import orjson

from bench.agent.serving import Message, Receive, Send, answer, read_body, serve


class Collector:
    """The ASGI application; it holds one request at a time and no span."""

    def __init__(self) -> None:
        self._requests = self._bytes = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        body = await read_body(receive)
        if scope["method"] == "GET":
            await answer(send, orjson.dumps({"requests": self._requests, "bytes": self._bytes}))
            return
        self._requests += 1
        self._bytes += len(body)
        await answer(send, b"")


if __name__ == "__main__":
    serve(Collector())
