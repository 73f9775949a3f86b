"""Pydantic AI."""

import sys
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bench.agent.peers.chat import DESCRIPTION, PROMPT, Tool, chat


class PydanticAI:
    """The agent."""

    def __init__(self, model_url: str, tool_url: str) -> None:
        provider = OpenAIProvider(base_url=model_url, api_key="none")
        self._agent = Agent(OpenAIChatModel("bench", provider=provider), system_prompt=PROMPT)
        tool = Tool(tool_url)

        @self._agent.tool_plain(description=DESCRIPTION)
        async def get_weather(city: str) -> str:
            return await tool.weather(city)

    async def whole(self, question: str) -> str:
        """Return the answer."""
        return str((await self._agent.run(question)).output)

    async def pieces(self, question: str) -> AsyncIterator[str]:
        """Yield the answer as it comes."""
        async with self._agent.run_stream(question) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                yield piece


if __name__ == "__main__":
    chat(PydanticAI(*sys.argv[1:]))
