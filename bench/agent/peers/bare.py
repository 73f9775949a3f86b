"""The loop with no library: httpx, and what the task needs of the protocol.

It trusts the model in everything, so it is what a run costs at the least by this client, and no agent.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx

from bench.agent.peers.chat import DESCRIPTION, PROMPT, Tool, chat

_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": DESCRIPTION, "parameters": _PARAMETERS},
    }
]


class Bare:
    """The loop."""

    def __init__(self, model_url: str, tool_url: str) -> None:
        self._url = f"{model_url}/chat/completions"
        # As many connections as the `openai` package allows itself.
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        self._http = httpx.AsyncClient(limits=limits, timeout=600.0)
        self._tool = Tool(tool_url)

    async def whole(self, question: str) -> str:
        """Return the answer."""
        messages = _opening(question)
        while True:
            response = await self._http.post(self._url, json=_request(messages, stream=False))
            message = response.raise_for_status().json()["choices"][0]["message"]
            if not message.get("tool_calls"):
                return str(message["content"])
            messages.append(message)
            await self._call(message["tool_calls"], messages)

    async def pieces(self, question: str) -> AsyncIterator[str]:
        """Yield the answer as it comes."""
        messages = _opening(question)
        while True:
            calls: dict[int, dict[str, Any]] = {}
            async for delta in self._deltas(messages):
                if delta.get("content"):
                    yield delta["content"]
                for entry in delta.get("tool_calls") or ():
                    _gather(calls, entry)
            if not calls:
                return
            messages.append({"role": "assistant", "content": None, "tool_calls": list(calls.values())})
            await self._call(list(calls.values()), messages)

    async def _deltas(self, messages: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        request = _request(messages, stream=True)
        async with self._http.stream("POST", self._url, json=request) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        yield choice["delta"]

    async def _call(self, calls: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
        for call in calls:
            arguments = json.loads(call["function"]["arguments"])
            result = await self._tool.weather(arguments["city"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def _opening(question: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]


def _request(messages: list[dict[str, Any]], *, stream: bool) -> dict[str, Any]:
    return {"model": "bench", "messages": messages, "tools": _TOOLS, "stream": stream}


def _gather(calls: dict[int, dict[str, Any]], entry: dict[str, Any]) -> None:
    known = calls.setdefault(
        entry["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    )
    known["id"] += entry.get("id") or ""
    known["function"]["name"] += entry["function"].get("name") or ""
    known["function"]["arguments"] += entry["function"].get("arguments") or ""


if __name__ == "__main__":
    chat(Bare(*sys.argv[1:]))
