"""What those who run the service see: health, metrics, limits, ids, logs, and the description of the API."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from beckon_agent.core.run_events import CallFinished
from beckon_agent.core.run_types import Limits
from beckon_agent.telemetry.metrics import Metrics
from tests.agent.conftest import CLOSED, StartAgent
from tests.agent.event_platform import described
from tests.agent.running_agent import QUICK, Setup, running_agent, user
from tests.agent.scripted_model import KEY, ReceivedRequest, Reply, asks_for, refuses, says, streamed
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_health_and_models_are_reported(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path) as agent:
        health = await agent.http.get("/healthz")
        ready = await agent.http.get("/readyz")
        models = (await agent.http.get("/v1/models")).json()
        model = (await agent.http.get("/v1/models/beckon")).json()
        missing = await agent.http.get("/v1/models/gpt-4o")

    assert health.json() == {"status": "ok", "service": "beckon-agent"}
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["model"] == "m (native)"
    assert models == {"object": "list", "data": [model]}
    assert model["id"] == "beckon"
    assert model["object"] == "model"
    assert isinstance(model["created"], int)
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert "beckon" in missing.json()["error"]["message"]


async def test_more_runs_than_allowed_get_a_429(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_wait", {})), says("ok"), setup=Setup(max_runs=1)) as agent:
        first = asyncio.create_task(agent.post())
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        refused = [await agent.post(), await agent.post(stream=True)]
        running = await agent.metric("running")
        BENCH.gate.set()

        assert (await first).status_code == 200
        assert running == 1
        assert await agent.metric("running") == 0
    for response in refused:
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert response.json()["error"]["code"] == "overloaded"


async def test_a_draining_agent_finishes_what_runs_and_begins_nothing(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_wait", {})), says("ok")) as agent:
        first = asyncio.create_task(agent.post())
        await asyncio.wait_for(BENCH.waiting.wait(), PATIENCE)
        draining = asyncio.create_task(agent.service.drain_runs())
        await asyncio.sleep(0)
        ready = await agent.http.get("/readyz")
        second = await agent.post()
        assert not draining.done()
        BENCH.gate.set()

        assert (await first).status_code == 200
        await asyncio.wait_for(draining, PATIENCE)
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")
    assert second.status_code == 503
    assert "shutting down" in second.json()["error"]["message"]


async def test_the_metrics_can_be_read_and_invented_names_are_no_labels(start_agent: StartAgent) -> None:
    script = asks_for(
        ("test_echo", {"text": "x"}), ("invented_one", {}), ("invented_two", {}), ("test_dead", {})
    )
    async with start_agent(script, says("ok")) as agent:
        await agent.ask()
        response = await agent.http.get("/metrics")

    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    calls = {
        (sample.labels["tool"], sample.labels["outcome"]): sample.value
        for sample in families["beckon_agent_tool_calls"].samples
        if sample.name.endswith("_total")
    }
    assert response.headers["content-type"].startswith("text/plain")
    assert calls == {
        ("test_echo", "answered"): 1,
        ("(unknown)", "unknown_tool"): 2,
        ("test_dead", "undeliverable"): 1,
    }
    assert "invented" not in response.text
    assert families["beckon_agent_tools"].samples[0].value == len(agent.catalogue.current.tools)
    assert families["beckon_agent_runs"].samples[0].labels == {"agent": "beckon", "ending": "stop"}


async def test_a_reason_that_a_tool_made_up_is_no_label() -> None:
    metrics = Metrics()
    for reason in ("made up", 5, {"x": 1}, "timeout"):
        error = {"error": {"reason": reason, "message": "m"}}
        metrics.count_call(CallFinished("id", "t", error, failed=True, seconds=0.1), "a")
    metrics.count_call(CallFinished("id", "t", "no error at all", failed=True, seconds=0.1), "a")
    rows = [
        row for row in metrics.to_text(tools=1, running=0).decode().splitlines() if "tool_calls_total{" in row
    ]

    assert sorted(rows) == [
        'beckon_agent_tool_calls_total{agent="a",outcome="timeout",tool="t"} 1.0',
        'beckon_agent_tool_calls_total{agent="a",outcome="tool_failed",tool="t"} 4.0',
    ]


async def test_every_answer_carries_the_id_of_its_request(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path, says("hi")) as agent:
        sane = {"x-request-id": "trace/01:a-b_c.d="}
        ok = await agent.http.get("/healthz", headers=sane)
        missing = await agent.http.get("/nothing", headers=sane)
        streamed_ = await agent.http.post(
            "/v1/chat/completions",
            json={"model": "beckon", "messages": [user("go")], "stream": True},
            headers=sane,
        )
        odd = await agent.http.get("/healthz", headers={"x-request-id": "a b\tc"})
        long = await agent.http.get("/healthz", headers={"x-request-id": "x" * 200})
        made = [(await agent.http.get("/healthz")).headers["x-request-id"] for _ in range(2)]

    for response in (ok, missing, streamed_):
        assert response.headers["x-request-id"] == "trace/01:a-b_c.d="
    for response in (odd, long):
        assert len(response.headers["x-request-id"]) == 32
    assert made[0] != made[1]


async def test_failures_are_logged_under_the_id_of_their_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "tool.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": described("t", "x")})
    )
    async with running_agent(
        CLOSED, folder, refuses(400, "no"), setup=Setup(limits=Limits(call_timeout=0.2))
    ) as agent:
        await agent.http.post(
            "/v1/chat/completions",
            json={"model": "beckon", "messages": [user("go")]},
            headers={"x-request-id": "the-model"},
        )

    assert "request the-model: the model failed" in caplog.text


async def test_the_id_of_a_request_goes_along_with_its_calls_and_their_failures(
    start_agent: StartAgent, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async with start_agent() as agent:
        folder_agent = running_agent(CLOSED, tmp_path, setup=Setup(limits=Limits(call_timeout=0.2)))
        async with folder_agent as unreachable:
            unreachable.catalogue.current = agent.catalogue.current
            await unreachable.http.post(
                "/tools/test_echo", json={"text": "x"}, headers={"x-request-id": "by-hand"}
            )

    assert "request by-hand: the shim at http://127.0.0.1:9 does not answer" in caplog.text


async def test_an_unexpected_error_is_a_500_in_the_shape_of_its_path_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_agent(CLOSED, tmp_path, says("hi"), says("hi")) as agent:
        del agent.catalogue.current
        headers = {"x-request-id": "broken-1"}
        request = {"model": "beckon", "messages": [user("go")]}
        ours = await agent.http.get("/tools", headers=headers)
        theirs = await agent.http.post("/v1/chat/completions", json=request, headers=headers)
        begun = await agent.http.post(
            "/v1/chat/completions", json={**request, "stream": True}, headers=headers
        )

    assert (ours.status_code, theirs.status_code) == (500, 500)
    assert ours.json()["type"].endswith("/internal-error")
    assert theirs.json()["error"]["code"] == "internal_error"
    assert ours.headers["x-request-id"] == "broken-1"
    for said in (ours.json()["detail"], theirs.json()["error"]["message"]):
        assert "component=agent --tail=-1 | grep broken-1 " in said
    assert "AttributeError" not in ours.text + theirs.text + begun.text
    assert "internal_error" in begun.text
    assert "request broken-1: GET '/tools' failed" in caplog.text
    assert "AttributeError" in caplog.text
    assert "Exception in ASGI application" not in caplog.text, "once is enough"


async def test_the_key_is_in_no_answer_and_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="beckon_agent")

    def repeats_the_key(sent: ReceivedRequest) -> Reply:
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        return refuses(401, f"Incorrect API key provided: {KEY}")

    in_stream = streamed({"error": {"message": f"bad {KEY}", "code": 400}})
    async with running_agent(CLOSED, tmp_path, repeats_the_key, in_stream, repeats_the_key) as agent:
        answers = [await agent.post(), await agent.post(), await agent.post(stream=True)]
        answers += [await agent.http.get(path) for path in ("/readyz", "/metrics", "/tools", "/openapi.json")]

    assert [answer.status_code for answer in answers[:3]] == [502] * 3
    assert "Incorrect API key provided: ***" in answers[0].text
    assert KEY not in "".join(answer.text for answer in answers) + caplog.text
    assert QUICK.attempts == 1


async def test_a_conversation_that_is_too_long_is_the_clients_to_shorten(tmp_path: Path) -> None:
    too_long = refuses(400, "This model's maximum context length is 8192 tokens")
    async with running_agent(CLOSED, tmp_path, too_long) as agent:
        response = await agent.post()

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_an_image_that_the_model_does_not_take_is_the_clients_to_leave_out(tmp_path: Path) -> None:
    refused = refuses(400, "this model does not support image input")
    async with running_agent(CLOSED, tmp_path, refused) as agent:
        response = await agent.post()

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "unsupported_content"
    assert "this model does not support image input" in response.json()["error"]["message"]


async def test_the_api_is_described_as_it_is(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path) as agent:
        document = (await agent.http.get("/openapi.json")).json()
    paths = document["paths"]
    create = paths["/v1/chat/completions"]["post"]
    call = paths["/tools/{name}"]["post"]

    assert paths.keys() == {
        "/catalogue",
        "/catalogue/{namespace}/{event_type}",
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models/{name}",
        "/tools",
        "/tools/{name}",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    assert create["responses"].keys() == {"200", "400", "404", "429", "502", "503", "default"}
    assert create["responses"]["200"]["content"].keys() == {"application/json", "text/event-stream"}
    assert create["responses"]["404"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/ErrorDocument"
    )
    errors = {"400", "403", "404", "422", "429", "502", "503", "504", "default"}
    assert call["responses"].keys() == {"200", *errors}
    tool = document["components"]["schemas"]["ToolDocument"]
    assert {"name", "parameters", "declaration", "event_type"} <= set(tool["required"])
    assert tool["properties"]["destructive"]["anyOf"] == [{"type": "boolean"}, {"type": "null"}]
    assert call["responses"]["422"]["content"].keys() == {"application/problem+json"}
    assert paths["/readyz"]["get"]["responses"].keys() == {"200", "503"}
    assert "HTTPValidationError" not in json.dumps(document)
