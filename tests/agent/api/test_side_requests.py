"""What Open WebUI asks beside a conversation: no tool is offered for it, so none is called.

The shapes are those of its templates and of the requests that it makes of them: one message of the user
that begins with a heading, quotes the conversation, and wants JSON; nothing else distinguishes it.
"""

from typing import Any

import pytest

from tests.agent.conftest import StartAgent
from tests.agent.running_agent import user
from tests.agent.scripted_model import says

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "USER: What is 17% of 2340?\nASSISTANT: 397.8"


def task(what: str, wanted: str, chat: str = CHAT) -> str:
    """Return a prompt as Open WebUI makes it of a template."""
    return (
        f"### Task:\n{what}\n\n### Guidelines:\n- Use the chat's language.\n\n### Output:\n"
        f"JSON format: {wanted}\n\n### Chat History:\n<chat_history>\n{chat}\n</chat_history>"
    )


AUTOCOMPLETE = (
    "### Task:\nYou complete a text. Go on with `<text>`.\n\n### **Output Rules**:\n- JSON alone.\n\n"
    "### Context:\n<chat_history>\n</chat_history>\n<type>General</type>\n<text>What is 17% of</text>\n"
    "#### Output:\n"
)
SIDE_REQUESTS: dict[str, dict[str, Any]] = {
    "title": {
        "messages": [user(task("Write a title of 3-5 words.", '{ "title": "…" }'))],
        "max_completion_tokens": 1000,
    },
    "tags": {"messages": [user(task("Write 1-3 tags.", '{ "tags": ["…"] }'))]},
    "follow-ups": {"messages": [user(task("Suggest 3-5 questions.", '{ "follow_ups": ["…"] }'))]},
    "queries": {"messages": [user(task("Write search queries.", '{ "queries": ["…"] }'))]},
    "image prompt": {"messages": [user(task("Write a prompt.", '{ "prompt": "…" }'))]},
    "autocompletion": {"messages": [user(AUTOCOMPLETE)]},
    "with the system prompt of the window": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            user(task("Write a title.", '{ "title": "…" }')),
        ]
    },
}


@pytest.mark.parametrize("what", SIDE_REQUESTS)
@pytest.mark.parametrize("stream", [False, True])
async def test_no_tool_is_offered_for_a_side_request(
    start_agent: StartAgent, what: str, stream: bool
) -> None:
    async with start_agent(says('{ "title": "Sums" }')) as agent:
        request = SIDE_REQUESTS[what]
        answer = await (agent.ask_streaming if stream else agent.ask)(*request["messages"], **_but(request))

    assert answer.text == '{ "title": "Sums" }'
    assert answer.events == []
    assert "tools" not in agent.requests[0].body


def _but(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "messages"}


QUOTING = task("Say what this is.", "{}")


@pytest.mark.parametrize(
    "messages",
    [
        [user("What is 17% of 2340?")],
        [user("### Task:\nAdd these numbers: 1, 2")],
        [user("Explain this prompt: " + QUOTING)],
        [user("### Task:"), {"role": "assistant", "content": "Yes?"}, user("Add 1 and 2")],
        [user("Hello"), {"role": "assistant", "content": "Hello"}, user(QUOTING)],
        [user("What is in <chat_history> here?\n### Task:")],
    ],
)
async def test_a_question_of_a_person_is_offered_all_tools(
    start_agent: StartAgent, messages: list[dict[str, Any]]
) -> None:
    async with start_agent(says("Well.")) as agent:
        await agent.ask(*messages)

    assert agent.requests[0].body["tools"]
