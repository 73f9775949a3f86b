"""A tool goes on with the trace of its call, and hands it back with the reply."""

import asyncio
import signal
import sys
from pathlib import Path

import httpx
import pytest

from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary
from beckon_tools import tool
from beckon_tools.calls import reply_event
from tests.agent.telemetry.collector import collector
from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE
from tests.tools.serving import call, calling

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ROOT = Path(__file__).resolve().parents[2]


@tool(type="shout")
async def shout(text: str) -> str:
    """Shout."""
    return text.upper()


async def test_without_a_collector_the_reply_has_the_trace_of_its_call_as_it_came() -> None:
    async with calling(shout) as caller:
        traced = await caller.reply(call("shout", {"text": "a"}, traceparent=PARENT))
        untraced = await caller.reply(call("shout", {"text": "a"}, id="call-2"))

    assert traced.extensions["traceparent"] == PARENT
    assert "traceparent" not in untraced.extensions


def test_a_malformed_trace_goes_back_as_it_came() -> None:
    reply = reply_event(shout, call("shout", {"text": "a"}, traceparent="00-1"), b"1", ("a", "b"))

    assert reply.extensions["traceparent"] == "00-1"


async def posted(url: str, event: CloudEvent) -> httpx.Response:
    headers, body = to_binary(event)
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=0), timeout=PATIENCE) as client:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await client.post(url, headers=headers, content=body)
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)


@pytest.mark.parametrize("shown", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
async def test_with_a_collector_the_call_is_a_span_of_its_trace(shown: str) -> None:
    port = port_range()
    with collector() as running:
        url = running.url + ("/v1/traces" if "TRACES" in shown else "")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "beckon_tools", "serve", "tests.tools.test_spans:shout"),
            env=clean_environment({shown: url, "PORT": str(port), "OTEL_RESOURCE_ATTRIBUTES": "team=a"}),
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            address = f"http://127.0.0.1:{port}/"
            good = await posted(address, call("shout", {"text": "secret"}, traceparent=PARENT))
            bad = await posted(address, call("shout", {"wrong": 1}, id="call-2", traceparent=PARENT))
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE)

        spans = running.spans
        bodies = b"".join(running.bodies)
    assert (good.status_code, bad.status_code) == (200, 200)
    refused = from_http(bad.headers.raw, bad.content).json()
    assert isinstance(refused, dict)
    assert refused["error"]["reason"] == "invalid_arguments"
    assert [(span.service, span.name, span.kind, span.trace) for span in spans] == [
        ("shout", "process shout", "CONSUMER", TRACE)
    ] * 2
    assert [span.parent for span in spans] == [PARENT[36:52]] * 2
    assert [(span.attributes["cloudevents.event_id"], span.failed) for span in spans] == [
        ("call-1", False),
        ("call-2", True),
    ]
    reply = from_http(good.headers.raw, good.content)
    assert reply.extensions["traceparent"] == f"00-{TRACE}-{spans[0].id}-01"
    assert b"secret" not in bodies
    assert f'"trace_id": "{TRACE}"'.encode() in said
    assert process.returncode == 0, said.decode()


async def test_a_collector_that_cannot_be_reached_is_reported_in_one_line() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_tools", "serve", "tests.tools.test_spans:shout"),
        env=clean_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 2
    assert said.decode() == (
        "beckon_tools: OTEL_EXPORTER_OTLP_ENDPOINT: "
        "write the collector's URL, such as http://collector:4318\n"
    )
