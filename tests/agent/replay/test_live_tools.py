"""Replays that call the tools of today: their results beside those that were recorded."""

import pytest

from beckon_agent.core.run_types import Limits
from tests.agent.replay.conftest import StartService
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO_CALLS = asks_for(("test_echo", {"text": "a"}), ("test_echo", {"text": "b", "count": 2}))


async def test_the_same_tools_give_the_same_results(start_service: StartService) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        service.change_tool("test_echo", read_only=True)
        calls, report = await service.replay(run, live_tools=True)

        counted = [
            await service.agent.metric("tool_calls_total", tool="test_echo"),
            await service.agent.metric("runs_total"),
        ]

    assert report["same"], report
    assert counted == [4, 1]
    assert sorted(BENCH.calls) == ["a", "a", "b", "b"]
    assert [(call["recorded"], call["now"], call["called"]) for call in calls] == [
        ("a", "a", True),
        ("bb", "bb", True),
    ]
    assert len(service.agent.requests) == 2


async def test_a_new_revision_of_a_tool_gives_a_diff_and_the_model_is_not_called(
    start_service: StartService,
) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        revised = service.tool("test_plain")
        service.change_tool("test_echo", revised, parameters=service.tool("test_echo").parameters)
        calls, report = await service.replay(run, live_tools=True, effects=True)

    first = calls[0]
    assert (first["recorded"], first["now"]) == ("a", "schöne Grüße")
    assert first["diff"] == "--- recorded\n+++ now\n@@ -1 +1 @@\n-a\n+schöne Grüße"
    assert not report["same"]
    assert report["live_calls"] == {"same": 0, "all": 2}
    # Its description is another one as well; what followed was played as it was.
    assert [found["where"] for found in report["differences"]] == [
        "the model's request 1: tools.test_echo.description"
    ]
    assert len(service.agent.requests) == 2


async def test_tools_that_may_have_effects_are_not_called_without_a_yes(start_service: StartService) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        called = list(BENCH.calls)
        refused = await service.post(run, live_tools=True)

    assert refused.status_code == 409
    assert refused.json()["type"].endswith("/may-have-effects")
    assert refused.json()["tools"] == ["test_echo"]
    assert BENCH.calls == called


async def test_a_call_that_a_person_allowed_is_made_and_one_that_was_denied_is_not(
    start_service: StartService,
) -> None:
    for approve in (True, False):
        async with start_service(asks_for(("test_danger", {})), says("Done.")) as service:
            pending = await service.ask()
            await service.approve(pending, approve=approve)
            before = len(BENCH.calls)
            calls, report = await service.replay(pending["id"], live_tools=True, effects=approve)

            assert report["same"]
            assert [call["called"] for call in calls] == [approve]
            assert len(BENCH.calls) - before == approve


async def test_a_tool_that_is_gone_or_wants_other_arguments_is_reported_as_its_result(
    start_service: StartService,
) -> None:
    both = asks_for(("test_echo", {"text": "a"}), ("test_nap", {"milliseconds": 1}))
    async with start_service(both, says("Done.")) as service:
        run = await service.run()
        called = list(BENCH.calls)
        service.remove_tool("test_echo")
        wants = {"type": "object", "properties": {"hours": {"type": "integer"}}, "required": ["hours"]}
        service.change_tool("test_nap", parameters={**wants, "additionalProperties": False})
        calls, report = await service.replay(run, live_tools=True)

    reasons = {call["name"]: call["now"]["error"]["reason"] for call in calls}
    assert reasons == {"test_echo": "unknown_tool", "test_nap": "invalid_arguments"}
    assert not any(call["called"] for call in calls)
    assert not report["same"]
    assert BENCH.calls == called


async def test_a_live_call_is_one_that_no_tool_has_seen(start_service: StartService) -> None:
    async with start_service(asks_for(("test_echo", {"text": "a"})), says("Done.")) as service:
        run = await service.run()
        for _ in range(2):
            await service.replay(run, live_tools=True, effects=True)

    assert BENCH.calls == ["a", "a", "a"]  # a repeated id would be answered from the tool's memory


async def test_no_more_calls_are_made_at_once_than_the_agent_may_make(start_service: StartService) -> None:
    naps = asks_for(*[("test_nap", {"milliseconds": 20})] * 6)
    async with start_service(naps, says("Done.")) as service:
        run = await service.run()
        BENCH.reset()
        service.change(limits=Limits(parallel_calls=2))
        calls, report = await service.replay(run, live_tools=True, effects=True)

    assert report["same"]
    assert len(calls) == 6
    assert BENCH.most == 2
