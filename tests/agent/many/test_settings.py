"""The settings of the service's own agent: how many tools a request has, and which always."""

from pathlib import Path

from beckon_agent.settings import Settings
from tests.agent.agent_process import serving
from tests.agent.event_platform import described
from tests.agent.many.plenty import sent
from tests.agent.running_agent import user
from tests.agent.scripted_model import says
from tests.broker.broker_process import broker, service, write_manifests


def test_pinned_tools_are_read_in_their_order() -> None:
    assert Settings().pinned_names() == ()
    assert Settings(pinned_tools=" b.x , a,, ").pinned_names() == ("b.x", "a")


async def test_the_agent_of_a_folder_sends_what_its_settings_say(tmp_path: Path) -> None:
    tools = [part for n in range(9) for part in described(f"order.step{n}", "orders")]
    write_manifests(tmp_path, broker(), service("orders", "http://127.0.0.1:9"), *tools)
    settings = {"BECKON_MAX_TOOLS": "4", "BECKON_PINNED_TOOLS": "order.step7, order_step3"}
    async with serving(tmp_path, says("Done."), **settings) as agent:
        await agent.http.post("/v1/chat/completions", json={"model": "beckon", "messages": [user("go")]})

        assert sent(agent.model.requests[0]) == ["find_tools", "order_step7", "order_step3"]
