"""A new model dialect: its module and a line of the registry are enough, as docs/extend.md says."""

from types import MappingProxyType

import pytest

from beckon_agent.dialects import registry
from beckon_agent.dialects.base import function_element
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import TextDialect
from tests.agent.conftest import StartAgent
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import says

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOUT = TextDialect(
    name="shout",
    grammar=Grammar({"<function=": function_element}),
    instructions=lambda tools: f"Shout one of {len(tools)} tools.",
    call=lambda call: f"<function={call.name}>{call.arguments}</function>",
    result=lambda name, content: f"{name} said {content}",
)


async def test_it_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch, start_agent: StartAgent) -> None:
    monkeypatch.setattr(registry, "DIALECTS", MappingProxyType({**registry.DIALECTS, "shout": SHOUT}))
    called = says('<function=test_echo>{"text": "hi"}</function>')

    async with start_agent(called, says("Done."), setup=Setup(dialect="shout")) as agent:
        answer = await agent.ask()
        first, second = (request.body for request in agent.requests)

    assert answer.text == "Done."
    assert "tools" not in first
    assert "Shout one of" in first["messages"][0]["content"]
    assert second["messages"][-1]["content"].startswith("test_echo said ")
