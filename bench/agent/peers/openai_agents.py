"""The OpenAI Agents SDK, on chat completions; its tracing, which sends to a server of its own, is off."""

import sys
from collections.abc import AsyncIterator

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from bench.agent.peers.chat import DESCRIPTION, PROMPT, Tool, chat


class OpenAIAgents:
    """The agent."""

    def __init__(self, model_url: str, tool_url: str) -> None:
        set_tracing_disabled(True)
        tool = Tool(tool_url)

        @function_tool(description_override=DESCRIPTION)
        async def get_weather(city: str) -> str:
            return await tool.weather(city)

        client = AsyncOpenAI(base_url=model_url, api_key="none")
        model = OpenAIChatCompletionsModel(model="bench", openai_client=client)
        self._agent = Agent(name="bench", instructions=PROMPT, model=model, tools=[get_weather])

    async def whole(self, question: str) -> str:
        """Return the answer."""
        return str((await Runner.run(self._agent, question)).final_output)

    async def pieces(self, question: str) -> AsyncIterator[str]:
        """Yield the answer as it comes."""
        async for event in Runner.run_streamed(self._agent, question).stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield event.data.delta


if __name__ == "__main__":
    chat(OpenAIAgents(*sys.argv[1:]))
