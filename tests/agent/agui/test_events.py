"""The events of a run at `/ag-ui`: text, reasoning, calls, state, usage, and how a run ends."""

import asyncio

import pytest

from beckon_agent.durable.engine import RunEngine
from tests.agent.agui.conftest import AguiClient, kinds, read_events, result_of, text_of, user
from tests.agent.scripted_model import asks_for, chunk, refuses, says, streamed
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_answer_is_one_message_between_the_start_and_the_end_of_the_run(client: AguiClient) -> None:
    client.service.model.script[:] = [says("Hello Ada.")]

    events = await client.run(threadId="thread-1", runId="run-1")

    started, finished = events[0], events[-1]
    assert kinds(events) == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        *["TEXT_MESSAGE_CONTENT"] * (len(events) - 4),
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert text_of(events) == "Hello Ada."
    assert (started.thread_id, started.run_id, started.protocol_version) == ("thread-1", "run-1", "1.0")
    assert (finished.thread_id, finished.run_id, finished.outcome.type) == ("thread-1", "run-1", "success")
    assert len({event.message_id for event in events[1:-1]}) == 1


async def test_a_call_and_its_result_are_between_two_messages(client: AguiClient) -> None:
    client.service.model.script[:] = [asks_for(("test_echo", {"text": "abc"})), says("It says abc.")]

    events = await client.run()

    assert kinds(events)[:5] == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    start, arguments, result = events[1], events[2], events[4]
    assert (start.tool_call_name, arguments.delta) == ("test_echo", '{"text":"abc"}')
    assert (result.tool_call_id, result.content) == (start.tool_call_id, "abc")
    assert start.parent_message_id not in {event.message_id for event in events[5:-1]}
    assert text_of(events) == "It says abc."


async def test_a_failed_call_says_so_beside_its_error(client: AguiClient) -> None:
    client.service.model.script[:] = [asks_for(("test_fail", {"kind": "refuse"})), says("It failed.")]

    result = result_of(await client.run())

    assert result.metadata == {"beckon.dev": {"failed": True}}
    assert '"error"' in result.content


async def test_reasoning_has_events_of_its_own(client: AguiClient) -> None:
    client.service.model.script[:] = [
        streamed(chunk({"reasoning_content": "Hm."}), chunk({"content": "Yes."}), chunk(finish="stop"))
    ]

    events = await client.run()

    assert kinds(events)[1:7] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
    ]
    assert (events[3].delta, text_of(events)) == ("Hm.", "Yes.")


async def test_the_state_comes_back_and_the_model_gets_it_with_the_context(client: AguiClient) -> None:
    client.service.model.script[:] = [says("ok")]
    context = [{"description": "The open page", "value": "orders"}]

    events = await client.run(state={"cart": [17]}, context=context)

    assert (kinds(events)[1], events[1].snapshot) == ("STATE_SNAPSHOT", {"cart": [17]})
    prompt = client.service.model.requests[-1].body["messages"][0]["content"]
    assert "The open page: orders" in prompt
    assert '{"cart":[17]}' in prompt


async def test_the_history_reaches_the_model_without_reasoning_and_activities(client: AguiClient) -> None:
    client.service.model.script[:] = [says("Again abc.")]
    call = {"id": "c1", "type": "function", "function": {"name": "test_echo", "arguments": "{}"}}
    history = [
        user("say abc", "1"),
        {"id": "2", "role": "reasoning", "content": "Hm."},
        {"id": "3", "role": "assistant", "toolCalls": [call]},
        {"id": "4", "role": "activity", "activityType": "beckon.progress", "content": {}},
        {"id": "5", "role": "tool", "toolCallId": "c1", "content": "abc"},
        user("and again", "6"),
    ]

    await client.run(messages=history)

    sent = client.service.model.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]
    assert sent[3]["content"] == "abc"


async def test_images_audio_and_documents_reach_the_model(client: AguiClient) -> None:
    client.service.model.script[:] = [says("seen")]
    data = {"type": "data", "value": "QUJD"}
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}},
        {"type": "image", "source": {**data, "mimeType": "image/png"}},
        {"type": "audio", "source": {**data, "mimeType": "audio/mpeg"}},
        {"type": "document", "source": {**data, "mimeType": "application/pdf"}},
    ]

    await client.run(messages=[{"id": "m", "role": "user", "content": parts}])

    assert client.service.model.requests[-1].body["messages"][-1]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
        {"type": "file", "file": {"filename": "document", "file_data": "data:application/pdf;base64,QUJD"}},
    ]


async def test_a_tool_of_the_client_is_pending_and_its_result_is_in_the_next_request(
    client: AguiClient,
) -> None:
    client.service.model.script[:] = [asks_for(("locate", {"precise": True})), says("In Bonn.")]
    tool = {"name": "locate", "description": "Locate the user.", "parameters": {"type": "object"}}

    pending = await client.run(tools=[tool])
    (start,) = [event for event in pending if event.type == "TOOL_CALL_START"]
    call = {"id": start.tool_call_id, "function": {"name": "locate", "arguments": '{"precise":true}'}}
    answered = await client.run(
        tools=[tool],
        messages=[
            user("Where am I?"),
            {"id": start.parent_message_id, "role": "assistant", "toolCalls": [{"type": "function", **call}]},
            {"id": "r", "role": "tool", "toolCallId": start.tool_call_id, "content": "Bonn"},
        ],
    )

    outcome = pending[-1].outcome
    assert (outcome.type, outcome.pending_tool_call_ids) == ("success", [start.tool_call_id])
    assert text_of(answered) == "In Bonn."
    assert client.service.model.requests[-1].body["messages"][-1]["content"] == "Bonn"


async def test_the_usage_and_the_stored_run_are_named(client: AguiClient) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    client.service.model.script[:] = [streamed(chunk({"content": "ok"}), chunk(finish="stop", usage=usage))]

    events = await client.run("/agents/other/ag-ui")

    (counted,) = events[-1].usage
    assert (counted.model, counted.input_tokens, counted.output_tokens) == ("other", 5, 2)
    stored = await client.service.http.get(f"/runs/{events[0].metadata['beckon.dev']['run']}")
    assert (stored.json()["face"], stored.json()["agent"]) == ("ag-ui", "other")


async def test_a_failure_of_the_model_is_an_error_of_the_run(client: AguiClient) -> None:
    client.service.model.script[:] = [refuses(418, "no coffee")]

    events = await client.run()

    assert kinds(events) == ["RUN_STARTED", "RUN_ERROR"]
    assert "no coffee" in events[-1].message
    assert events[-1].code


async def test_a_run_that_is_cancelled_elsewhere_ends_as_cancelled(client: AguiClient) -> None:
    client.service.model.script[:] = [asks_for(("test_wait", {}))]
    running = asyncio.create_task(client.post())
    await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
    (run,) = (await client.service.http.get("/runs", params={"status": "running"})).json()["data"]

    await RunEngine(client.service.store, client.service.service, "another process").cancel(run["id"])
    BENCH.gate.set()

    last = read_events((await running).text)[-1]
    assert (last.type, last.outcome.type) == ("RUN_FINISHED", "cancelled")


async def test_a_client_that_hangs_up_cancels_its_run(client: AguiClient) -> None:
    client.service.model.script[:] = [asks_for(("test_wait", {}))]
    running = asyncio.create_task(client.post())
    await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
    (run,) = (await client.service.http.get("/runs", params={"status": "running"})).json()["data"]

    running.cancel()

    async def is_cancelled() -> bool:
        found = await client.service.http.get(f"/runs/{run['id']}")
        return bool(found.json()["status"] == "cancelled")

    await eventually(is_cancelled)
