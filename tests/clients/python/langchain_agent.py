"""LangChain against an agent with the demo model: BASE_URL is its OpenAI base URL. Runs in an environment of
its own, and fails with an assertion.
"""

import os

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

QUESTION = "What is 17% of 2340?"
WHERE = "Locate the user: in which city?"
BASE_URL = os.environ["BASE_URL"]
seen: list[str] = []


@tool  # type: ignore[untyped-decorator]  # as the imports above
def locate_user() -> str:
    """Locate the user: the city where the user is."""
    seen.append("located")
    return "Bonn"


for responses in (False, True):
    model = ChatOpenAI(
        model="beckon", base_url=BASE_URL, api_key="sk-any", max_retries=0, use_responses_api=responses
    )

    whole = model.invoke(QUESTION)
    pieces = list(model.stream(QUESTION))
    streamed = "".join(piece.text for piece in pieces)
    assert "397.8" in whole.text, whole
    assert streamed == whole.text, streamed
    assert whole.usage_metadata["total_tokens"] > 0, whole

    agent = create_agent(model, [locate_user])
    answered = agent.invoke({"messages": [{"role": "user", "content": WHERE}]})
    assert "Bonn" in answered["messages"][-1].text, answered
    assert [message.type for message in answered["messages"]] == ["human", "ai", "tool", "ai"], answered

    # A tool of the cluster's in the same agent: LangChain sees the answer, and no call of its own.
    answered = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
    assert "397.8" in answered["messages"][-1].text, answered
    assert len(answered["messages"]) == 2, answered
    print("ok", "responses" if responses else "chat completions")  # noqa: T201  # the result of this program

assert seen == ["located", "located"], seen
