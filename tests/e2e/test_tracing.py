"""One trace, from the request of a client to the tool and back, as a collector gets it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.agent.scripted_model import asks_for, says
from tests.agent.telemetry.collector import Collector, Received, collector
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE, wait_until

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
KEY = "sk-secret-of-the-test"
COLLECTOR_KEY = "secret-of-the-collector"
PARAMETERS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
SPANS = {
    "POST /v1/chat/completions",
    "invoke_agent beckon",
    "chat scripted",
    "execute_tool test_sleep",
    "send test.sleep",
    "POST /{namespace}/{broker}",
    "deliver test.sleep",
    "process test.sleep",
    "deliver test.sleep.reply",
    "POST /replies",
}


@pytest.fixture(scope="module")
def received() -> Iterator[Collector]:
    """The collector to which every process of the platform sends."""
    with collector() as running:
        yield running


@pytest.fixture(scope="module")
def platform(
    start_platform: Start, model: ModelThread, received: Collector, tmp_path_factory: pytest.TempPathFactory
) -> LocalPlatform:
    folder = tmp_path_factory.mktemp("manifests")
    command = "python -m beckon_tools serve tests.e2e.tools:sleep"
    (folder / "sleep.yaml").write_text(
        tool_manifests("test-sleep", "Sleep.", PARAMETERS, command=command), encoding="utf-8"
    )
    return start_platform(
        folder,
        OPENAI_BASE_URL=model.base_url,
        OPENAI_API_KEY=KEY,
        BECKON_MODEL="scripted",
        BECKON_LOG_LEVEL="debug",
        OTEL_EXPORTER_OTLP_ENDPOINT=received.url,
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization={COLLECTOR_KEY}",
        OTEL_BSP_SCHEDULE_DELAY="50",
    )


@dataclass(frozen=True)
class Seen:
    """The spans of one request with one tool call, by their names, and the traces at the model's server."""

    spans: dict[str, list[Received]]
    shown_to_model: list[str]

    def __getitem__(self, name: str) -> list[Received]:
        return self.spans[name]


@pytest.fixture(scope="module")
def seen(platform: LocalPlatform, model: ModelThread, received: Collector) -> Seen:
    """What is seen of one request."""
    model.play(asks_for(("test_sleep", {"seconds": 0.0625})), says("a secret answer"))
    request = {"model": "beckon", "messages": [{"role": "user", "content": "a secret question"}]}
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "x-request-id": "request-1"}
    response = httpx.post(
        f"{platform.url}/v1/chat/completions", json=request, headers=headers, timeout=PATIENCE
    )
    assert response.status_code == 200, response.text
    lines_by_service = [headers["traceparent"] for headers in model.headers]
    wait_until(lambda: {span.name for span in received.spans if span.trace == TRACE} >= SPANS)
    found: dict[str, list[Received]] = {}
    for span in received.spans:
        if span.trace == TRACE:
            found.setdefault(span.name, []).append(span)
    return Seen(found, lines_by_service)


def test_all_of_one_request_is_one_trace_and_nothing_is_missing(seen: Seen) -> None:
    assert {name: len(found) for name, found in seen.spans.items()} == {
        **dict.fromkeys(SPANS, 1),
        "chat scripted": 2,
    }


def test_each_span_is_below_what_caused_it(seen: Seen) -> None:
    (request,), (run,), (call,), (sent,), (processed,) = (
        seen[name]
        for name in (
            "POST /v1/chat/completions",
            "invoke_agent beckon",
            "execute_tool test_sleep",
            "send test.sleep",
            "process test.sleep",
        )
    )
    assert request.parent == CALLER
    assert run.parent == request.id
    assert {span.parent for span in (*seen["chat scripted"], call)} == {run.id}
    assert sent.parent == call.id
    assert processed.parent == sent.id
    assert [(span.service, span.kind) for span in (request, run, call, sent, processed)] == [
        ("beckon-agent", "SERVER"),
        ("beckon-agent", "INTERNAL"),
        ("beckon-agent", "INTERNAL"),
        ("beckon-agent", "PRODUCER"),
        ("test-sleep", "CONSUMER"),
    ]
    assert request.begun <= sent.begun <= processed.begun
    assert processed.ended - processed.begun >= 0.06
    assert processed.ended <= sent.ended <= request.ended


def test_the_event_and_its_reply_have_spans_of_shim_and_broker(seen: Seen) -> None:
    (sent,), (processed,) = seen["send test.sleep"], seen["process test.sleep"]
    (called,), (out,) = seen["POST /{namespace}/{broker}"], seen["deliver test.sleep"]
    (back,), (replied,) = seen["deliver test.sleep.reply"], seen["POST /replies"]

    assert [(span.service, span.kind, span.parent) for span in (called, out, back, replied)] == [
        ("beckon-shim", "SERVER", sent.id),
        ("beckon-broker", "CLIENT", sent.id),
        ("beckon-broker", "CLIENT", processed.id),
        ("beckon-shim", "SERVER", back.id),
    ]
    event_ids = {span.attributes["cloudevents.event_id"] for span in (sent, called, out, processed)}
    assert len(event_ids) == 1
    assert called.attributes["beckon.shim.outcome"] == "replied"
    assert called.attributes["beckon.request_id"] == "request-1"
    assert called.begun <= out.begun <= processed.begun <= back.begun <= replied.begun <= called.ended


def test_the_event_and_the_model_know_the_trace(seen: Seen, model: ModelThread) -> None:
    (sent,), (processed,) = seen["send test.sleep"], seen["process test.sleep"]
    keys = ("cloudevents.event_id", "cloudevents.event_source", "cloudevents.event_type")
    assert [sent.attributes[key] for key in keys] == [processed.attributes[key] for key in keys]
    assert seen.shown_to_model == [f"00-{TRACE}-{span.id}-01" for span in seen["chat scripted"]]


def test_what_was_said_and_every_key_stay_out_of_the_spans(seen: Seen, received: Collector) -> None:
    assert seen.spans
    everything = b"".join(received.bodies)
    for word in (b"secret", b"0.0625", KEY.encode(), COLLECTOR_KEY.encode()):
        assert word not in everything


def lines(platform: LocalPlatform) -> list[dict[str, str]]:
    return [json.loads(line) for line in re.findall(r"^.*?(\{.*\})$", platform.text(), re.MULTILINE)]


@pytest.mark.parametrize(("field", "value"), [("trace_id", TRACE), ("request_id", "request-1")])
def test_the_log_of_every_process_shows_of_a_request_by_its_id_and_its_trace(
    seen: Seen, platform: LocalPlatform, field: str, value: str
) -> None:
    (sent,) = seen["send test.sleep"]
    call = sent.attributes["cloudevents.event_id"]

    def lines_by_service() -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {}
        for line in lines(platform):
            if line.get(field) == value:
                found.setdefault(line["service"], []).append(line)
        return found

    wait_until(lambda: lines_by_service().keys() == {"agent", "broker", "shim", "tool"})
    for of_service in lines_by_service().values():
        assert call in {line.get("event_id") for line in of_service}
    calling = next(line for line in lines_by_service()["agent"] if "answered" in line["message"])
    assert (calling["agent"], calling["tool"]) == ("beckon", "test_sleep")
    assert any(line.get("tool") == "test.sleep" for line in lines_by_service()["tool"])


def test_what_was_said_and_every_key_stay_out_of_the_log(seen: Seen, platform: LocalPlatform) -> None:
    assert seen.spans
    for word in ("secret", "0.0625", KEY, COLLECTOR_KEY):
        assert word not in platform.text()


def test_requests_for_the_operation_alone_are_not_traced(
    seen: Seen, platform: LocalPlatform, received: Collector
) -> None:
    assert seen.spans
    for path in ("/healthz", "/readyz", "/metrics"):
        httpx.get(platform.url + path, timeout=PATIENCE)
    before = len(received.named("GET /v1/models"))
    httpx.get(f"{platform.url}/v1/models", timeout=PATIENCE)
    wait_until(lambda: len(received.named("GET /v1/models")) > before)

    assert not [
        span for span in received.spans if span.attributes.get("url.path") in ("/healthz", "/metrics")
    ]


def test_a_run_that_is_stored_belongs_to_the_trace_of_its_request(
    platform: LocalPlatform, model: ModelThread, received: Collector
) -> None:
    trace = TRACE.replace("0af", "1bf")
    model.play(asks_for(("test_sleep", {"seconds": 0})), says("done"))
    request = {"model": "beckon", "input": "go"}
    headers = {"traceparent": f"00-{trace}-{CALLER}-01"}
    response = httpx.post(f"{platform.url}/v1/responses", json=request, headers=headers, timeout=PATIENCE)
    assert response.status_code == 200, response.text

    def spans() -> dict[str, Received]:
        return {span.name: span for span in received.spans if span.trace == trace}

    wait_until(lambda: {"POST /v1/responses", "invoke_agent beckon", "process test.sleep"} <= spans().keys())
    run = spans()["invoke_agent beckon"]
    assert run.parent == spans()["POST /v1/responses"].id
    assert run.attributes["beckon.run_id"]


def test_a_collector_that_is_not_there_keeps_nothing_from_working(
    start_platform: Start, model: ModelThread, tmp_path: Path
) -> None:
    platform = start_platform(
        tmp_path,
        OPENAI_BASE_URL=model.base_url,
        BECKON_MODEL="scripted",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_BSP_SCHEDULE_DELAY="50",
    )
    model.play(says("hello"))
    request = {"model": "beckon", "messages": [{"role": "user", "content": "hi"}]}

    response = httpx.post(f"{platform.url}/v1/chat/completions", json=request, timeout=PATIENCE)

    assert response.json()["choices"][0]["message"]["content"] == "hello"
    assert platform.stop() == 0


def test_a_collector_that_cannot_be_reached_is_reported_in_one_line() -> None:
    environment = clean_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "BECKON_PORT": "0"})
    command = [sys.executable, "-m", "beckon_agent"]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 2
    assert done.stderr == (
        "beckon_agent: OTEL_EXPORTER_OTLP_ENDPOINT: "
        "write the collector's URL, such as http://collector:4318\n"
    )
