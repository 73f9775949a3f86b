"""LangChain's agent, which is a LangGraph graph."""

import sys
from collections.abc import AsyncIterator

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from bench.agent.peers.chat import DESCRIPTION, PROMPT, Tool, chat


class LangChain:
    """The agent."""

    def __init__(self, model_url: str, tool_url: str) -> None:
        weather = Tool(tool_url)

        @tool(description=DESCRIPTION)
        async def get_weather(city: str) -> str:
            return await weather.weather(city)

        model = ChatOpenAI(model="bench", base_url=model_url, api_key="none")
        self._agent = create_agent(model, [get_weather], system_prompt=PROMPT)

    async def whole(self, question: str) -> str:
        """Return the answer."""
        state = await self._agent.ainvoke({"messages": [{"role": "user", "content": question}]})
        return str(state["messages"][-1].content)

    async def pieces(self, question: str) -> AsyncIterator[str]:
        """Yield the answer as it comes."""
        request = {"messages": [{"role": "user", "content": question}]}
        async for chunk, metadata in self._agent.astream(request, stream_mode="messages"):
            if metadata["langgraph_node"] == "model" and chunk.content:
                yield chunk.content


if __name__ == "__main__":
    chat(LangChain(*sys.argv[1:]))
