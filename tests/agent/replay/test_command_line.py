"""`beckon replay` at a service that runs: what it prints, and its exit status."""

import asyncio
import json
import subprocess

import pytest

from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import Replaying
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.cli.run_beckon import beckon

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL = asks_for(("test_echo", {"text": "a"}))


async def replay(service: Replaying, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `beckon replay` beside the service, which shares the loop of the test."""
    settings = {"BECKON_PORT": service.url.rpartition(":")[2]}
    return await asyncio.to_thread(beckon, "replay", *words, settings=settings)


async def test_the_same_is_one_line_and_status_zero(start_service: StartService) -> None:
    async with start_service(CALL, says("Done.")) as service:
        run = await service.run()
        ended = await replay(service, run)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{run}: the same, byte for byte (2 turns, 1 call, 6 events)\n"


async def test_a_difference_is_a_diff_and_status_one(start_service: StartService) -> None:
    async with start_service(CALL, says("Done.")) as service:
        run = await service.run()
        service.change(system_prompt="You are another.")
        ended = await replay(service, run)

    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "differs: the model's request 1: messages[0].content",
        "  --- recorded",
        "  +++ now",
        "  @@ -1 +1 @@",
        "  -You are a test.",
        "  +You are another.",
        f"{run}: the run itself differs (2 turns, 1 call, 6 events)",
    ]


async def test_live_tools_ask_for_a_yes_and_then_show_each_result(start_service: StartService) -> None:
    async with start_service(CALL, says("Done.")) as service:
        run = await service.run()
        parameters = service.tool("test_echo").parameters
        description = service.tool("test_echo").description
        revised = service.tool("test_plain")
        service.change_tool("test_echo", revised, parameters=parameters, description=description)
        refused = await replay(service, run, "--live-tools")
        shown = await replay(service, run, "--live-tools", "--yes")
        document = await replay(service, run, "--live-tools", "--yes", "--json")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "test_echo; --yes calls them all the same" in refused.stderr
    assert shown.returncode == document.returncode == 1
    assert '→ test_echo(text="a")\n← test_echo differs\n' in shown.stdout
    assert "  -a\n  +schöne Grüße\n" in shown.stdout
    assert f"{run}: 1 of 1 result differs" in shown.stdout
    assert "the model got no request" in shown.stderr
    (call,) = json.loads(document.stdout)["live_calls"]
    assert (call["recorded"], call["now"]) == ("a", "schöne Grüße")
    assert BENCH.calls == ["a"]


async def test_no_replay_is_status_two(start_service: StartService) -> None:
    async with start_service(asks_for(("test_danger", {}))) as service:
        waiting = (await service.ask())["id"]
        ended = [await replay(service, run) for run in ("resp_0", waiting)]

    assert [one.returncode for one in ended] == [2, 2]
    assert "there is no run 'resp_0'" in ended[0].stderr
    assert "the run is suspended" in ended[1].stderr
