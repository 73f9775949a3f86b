"""The service of every peer: `POST /chat {"question": …, "stream": …}` runs the agent and answers.

A whole answer is `{"text": …}`; a streamed one has an event `data: "…"` for each piece of text.
"""

import json
from collections.abc import AsyncIterator
from typing import Protocol

import httpx

from bench.agent.serving import Message, Receive, Send, answer, begin_events, read_body, serve

PROMPT = "You are a helpful assistant. Use the tools you are given when they help to answer."
DESCRIPTION = "Return the current weather of a city."


class Agent(Protocol):
    """What a library makes of a question."""

    async def whole(self, question: str) -> str:
        """Return the answer."""
        ...

    def pieces(self, question: str) -> AsyncIterator[str]:
        """Yield the answer as it comes."""
        ...


class Tool:
    """The client of the tool."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient()
        self._url = url

    async def weather(self, city: str) -> str:
        """Return what the tool says, as text."""
        response = await self._http.post(self._url, json={"city": city})
        return response.raise_for_status().text


def chat(agent: Agent) -> None:
    """Serve an agent."""

    async def app(_: Message, receive: Receive, send: Send) -> None:
        request = json.loads(await read_body(receive))
        if not request["stream"]:
            await answer(send, json.dumps({"text": await agent.whole(request["question"])}).encode())
            return
        await begin_events(send)
        async for piece in agent.pieces(request["question"]):
            event = f"data: {json.dumps(piece)}\n\n".encode()
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    serve(app)
