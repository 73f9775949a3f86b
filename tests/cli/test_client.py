"""The command line's client beside a real agent: what its streams may hold."""

from pathlib import Path

from beckon_cli.client import AgentClient
from tests.agent.conftest import CLOSED
from tests.agent.running_agent import running_agent, user
from tests.agent.scripted_model import says

LINES = "one\u2028two\u2029three\x85four\x0bfive\x0csix\r\nseven"


async def test_an_answer_may_hold_every_line_break_of_unicode(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path, says(LINES)) as agent, AgentClient(agent.url) as client:
        chunks = [chunk async for chunk in client.stream_chat("beckon", [user("go")])]

    deltas = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(deltas) == LINES
