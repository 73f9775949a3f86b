"""The spans and the numbers of a run over the real event platform, with a scripted model."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families

from beckon_agent.agents.folder import FolderSource
from beckon_agent.core.context import set_request_id
from beckon_agent.core.run_events import RunEvent, RunSuspended
from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelError
from beckon_agent.run.loop import Run
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.run.tool_offer import SelectableTools
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.telemetry.run_spans import RunObserver
from beckon_agent.telemetry.spans import capture_content, during, log_fields, resume_trace, trace_to_request
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_agent.tools.select import FittingTools
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import QUICK
from tests.agent.scripted_model import (
    KEY,
    ScriptedModel,
    asks_for,
    chunk,
    refuses,
    says,
    scripted_model,
    streamed,
)
from tests.agent.telemetry.conftest import Spans

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
COUNTED = streamed(chunk({"content": "done"}), chunk(finish="stop"), chunk(usage=USAGE))
ECHO = asks_for(("test_echo", {"text": "a secret"}))
QUESTION = {"role": "user", "content": "my secret question"}


class Watched:
    """An agent whose runs are watched."""

    def __init__(self, run: Any, model: ScriptedModel, metrics: Metrics) -> None:
        self.run = run
        self.model = model
        self._metrics = metrics

    async def events(self) -> list[RunEvent]:
        """Return what one run yields."""
        return [event async for event in self.run()]

    def metric(self, name: str, **labels: str) -> float:
        text = self._metrics.to_text(tools=0, running=0).decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"beckon_agent_{name}" and labels.items() <= sample.labels.items()
        )


@asynccontextmanager
async def watched(
    platform: EventPlatform, *script: Any, limits: Limits | None = None, dialect: str = "native"
) -> AsyncIterator[Watched]:
    """Serve a model, and give the runs of an agent."""
    async with (
        scripted_model(*script) as model,
        ModelClient(model.base_url, KEY, "m", patience=QUICK) as client,
        aiohttp.ClientSession() as session,
    ):
        agent = Agent("helper", "default", "You are a test.", limits or Limits(call_timeout=10))
        source = FolderSource([platform.folder], agent.source)
        caller, metrics = ToolCaller(Dispatcher(session, platform.shim)), Metrics()

        def run() -> Any:
            watch = RunObserver(agent.name, metrics, run_id="run-1")
            tools = SelectableTools(source, FittingTools())
            steps = Run(agent, watch.watch_model(DialectModel(client, dialect)), tools, caller, Options())
            return watch.watch_events(steps.stream_events([QUESTION]))

        yield Watched(run, model, metrics)


def id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str:
    assert span.parent is not None
    return f"{span.parent.span_id:016x}"


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_run_is_one_trace_of_agent_model_tool_and_event(
    platform: EventPlatform, spans: Spans
) -> None:
    async with watched(platform, ECHO, COUNTED) as agent:
        with during("request", SpanKind.SERVER, {}):
            await agent.events()

    invoked, request = spans.one("invoke_agent helper"), spans.one("request")
    sent_request, answered = [span for span in spans.all if span.name == "chat m"]
    tool, sent, processed = (
        spans.one("execute_tool test_echo"),
        spans.one("send test.echo"),
        spans.one("process test.echo"),
    )
    assert len({span.context.trace_id for span in spans.all if span.context}) == 1
    assert [span.kind for span in (invoked, sent_request, tool, sent, processed)] == [
        SpanKind.INTERNAL,
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
        SpanKind.PRODUCER,
        SpanKind.CONSUMER,
    ]
    assert parent_of(invoked) == id_of(request)
    assert {parent_of(span) for span in (sent_request, answered, tool)} == {id_of(invoked)}
    assert parent_of(sent) == id_of(tool)
    assert parent_of(processed) == id_of(sent)
    assert [request.headers["traceparent"][36:52] for request in agent.model.requests] == [
        id_of(sent_request),
        id_of(answered),
    ]


async def test_spans_say_what_the_conventions_ask_for_and_nothing_that_was_said(
    platform: EventPlatform, spans: Spans
) -> None:
    async with watched(platform, ECHO, COUNTED) as agent:
        await agent.events()

    model_port = int(agent.model.base_url.rpartition(":")[2].removesuffix("/v1"))
    invoked = attributes_of(spans.one("invoke_agent helper"))
    answered = attributes_of(spans.all[-2])
    tool = attributes_of(spans.one("execute_tool test_echo"))
    assert invoked == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "helper",
        "beckon.run_id": "run-1",
        "beckon.run.ending": "stop",
        "beckon.tools.offered": answered["beckon.tools"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 3,
    }
    assert 0 < answered.pop("gen_ai.response.time_to_first_chunk") < 5
    assert answered == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "helper",
        "gen_ai.request.model": "m",
        "server.address": "127.0.0.1",
        "server.port": model_port,
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "c",
        "gen_ai.response.model": "m",
        "beckon.tools": answered["beckon.tools"],
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 3,
    }
    assert tool == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "test_echo",
        "gen_ai.tool.call.id": tool["gen_ai.tool.call.id"],
        "gen_ai.tool.type": "extension",
        "beckon.tool.call.origin": "api",
        "gen_ai.agent.name": "helper",
    }
    whole = "".join(span.to_json() for span in spans.all)
    assert "secret" not in whole
    assert KEY not in whole


@pytest.mark.parametrize(("dialect", "origin"), [("native", "recovered"), ("hermes", "dialect")])
async def test_the_span_of_a_tool_says_that_its_call_was_read_from_a_text(
    platform: EventPlatform, spans: Spans, dialect: str, origin: str
) -> None:
    leaked = says('<tool_call>{"name": "test_echo", "arguments": {"text": "x"}}</tool_call>')
    async with watched(platform, leaked, COUNTED, dialect=dialect) as agent:
        await agent.events()

        assert agent.metric("calls_obtained_total", agent="helper", origin=origin) == 1
    assert attributes_of(spans.one("execute_tool test_echo"))["beckon.tool.call.origin"] == origin


async def test_where_a_setting_asks_for_it_spans_say_what_was_said(
    platform: EventPlatform, spans: Spans
) -> None:
    capture_content(enabled=True)
    try:
        async with watched(platform, ECHO, COUNTED) as agent:
            await agent.events()
    finally:
        capture_content(enabled=False)

    tool = attributes_of(spans.one("execute_tool test_echo"))
    answered = attributes_of(spans.all[-2])
    assert tool["gen_ai.tool.call.arguments"] == '{"text":"a secret"}'
    assert tool["gen_ai.tool.call.result"] == '"a secret"'
    assert "my secret question" in answered["gen_ai.input.messages"]
    assert '"content":"done"' in answered["gen_ai.output.messages"]
    assert KEY not in "".join(span.to_json() for span in spans.all)


async def test_calls_side_by_side_each_have_their_span(platform: EventPlatform, spans: Spans) -> None:
    several = asks_for(*(("test_echo", {"text": text}) for text in "abc"))
    async with watched(platform, several, COUNTED) as agent:
        await agent.events()

    sent = [span for span in spans.all if span.name == "send test.echo"]
    tools = {id_of(span) for span in spans.all if span.name == "execute_tool test_echo"}
    assert {attributes_of(span)["cloudevents.event_id"][-1] for span in sent} == {"0", "1", "2"}
    assert {parent_of(span) for span in sent} == tools
    assert len(tools) == 3


async def test_a_tool_that_does_not_exist_names_no_span_and_no_label(
    platform: EventPlatform, spans: Spans
) -> None:
    cut_off = streamed(
        chunk({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "evil-2", "arguments": '{"a'}}]}),
        chunk(finish="length"),
    )
    async with watched(platform, asks_for(("evil-1", {})), cut_off, COUNTED) as agent:
        await agent.events()

        assert agent.metric("tool_calls_total", tool="(unknown)", agent="helper") == 2
        assert agent.metric("tool_calls_total") == 2
    made_up = [span for span in spans.all if span.name == "execute_tool"]
    assert [attributes_of(span)["error.type"] for span in made_up] == ["unknown_tool", "unknown_tool"]
    assert not [name for name in spans.names if "evil" in name]


async def test_a_model_that_fails_is_a_failed_span_without_its_words(
    platform: EventPlatform, spans: Spans
) -> None:
    async with watched(platform, refuses(401, "a secret about you")) as agent:
        with pytest.raises(ModelError):
            await agent.events()

        assert agent.metric("model_seconds_count", outcome="failed", agent="helper") == 1
        assert agent.metric("model_first_token_seconds_count") == 0
        assert agent.metric("runs_total", ending="failed", agent="helper") == 1
    for name in ("chat m", "invoke_agent helper"):
        span = spans.one(name)
        assert span.status.status_code is StatusCode.ERROR
        assert attributes_of(span)["error.type"] == "ModelAuthError"
        assert "secret" not in span.to_json()


async def test_tokens_latency_and_calls_are_counted_by_agent(platform: EventPlatform) -> None:
    async with watched(platform, ECHO, COUNTED) as agent:
        await agent.events()

        assert agent.metric("model_tokens_total", agent="helper", type="input") == 11
        assert agent.metric("model_tokens_total", agent="helper", type="output") == 3
        assert agent.metric("model_seconds_count", agent="helper", outcome="answered") == 2
        assert agent.metric("model_first_token_seconds_count", agent="helper") == 1  # a call is no token
        assert agent.metric("tool_calls_total", agent="helper", tool="test_echo", outcome="answered") == 1
        assert agent.metric("runs_total", agent="helper", ending="stop") == 1


async def test_a_run_that_is_left_early_is_cancelled_and_ends_its_spans(
    platform: EventPlatform, spans: Spans
) -> None:
    async with watched(platform, says("one ", "two ", "three")) as agent:
        async with aclosing(agent.run()) as events:
            await anext(events)

        assert agent.metric("runs_total", ending="cancelled") == 1
        assert agent.metric("model_seconds_count", outcome="cancelled") == 1
    assert spans.names == ["chat m", "invoke_agent helper"]
    assert attributes_of(spans.one("invoke_agent helper"))["beckon.run.ending"] == "cancelled"


async def test_a_run_whose_pieces_are_taken_by_several_tasks_keeps_its_trace(
    platform: EventPlatform, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(platform, ECHO, COUNTED) as agent:
        events = agent.run()
        with caplog.at_level(logging.WARNING):
            while await asyncio.create_task(anext(events, None)) is not None:
                pass

    assert caplog.messages == []  # OpenTelemetry logs a context that is left by another task
    assert len({span.context.trace_id for span in spans.all if span.context}) == 1
    assert parent_of(spans.one("execute_tool test_echo")) == id_of(spans.one("invoke_agent helper"))


async def test_between_two_pieces_the_span_of_the_run_is_not_the_current_one(
    platform: EventPlatform, spans: Spans
) -> None:
    set_request_id("r-1")
    async with watched(platform, says("one ", "two")) as agent:
        seen = [log_fields() async for _ in agent.run()]

    assert len(seen) >= 2
    assert seen == [{"request_id": "r-1"}] * len(seen)
    assert spans.names == ["chat m", "invoke_agent helper"]


async def test_a_run_that_is_suspended_has_not_ended(platform: EventPlatform, spans: Spans) -> None:
    metrics = Metrics()
    async for _ in RunObserver("helper", metrics).watch_events(publishing(RunSuspended())):
        pass

    assert b'ending="suspended"' not in metrics.to_text(tools=0, running=0)
    assert attributes_of(spans.one("invoke_agent helper"))["beckon.run.ending"] == "suspended"


async def publishing(*events: RunEvent) -> AsyncGenerator[RunEvent]:
    for event in events:
        yield event


async def test_a_run_that_is_resumed_elsewhere_belongs_to_the_trace_in_which_it_began(spans: Spans) -> None:
    with during("request", SpanKind.SERVER, {}):
        request = {"model": "m", **trace_to_request()}
    with resume_trace(request):
        async for _ in RunObserver("helper", Metrics()).watch_events(publishing()):
            pass

    assert parent_of(spans.one("invoke_agent helper")) == id_of(spans.one("request"))


@pytest.mark.parametrize("request_", [{}, {"traceparent": "nonsense"}, {"traceparent": 5}])
async def test_a_run_without_a_trace_begins_one_where_it_is_resumed(
    spans: Spans, request_: dict[str, object]
) -> None:
    with resume_trace(request_):
        async for _ in RunObserver("helper", Metrics()).watch_events(publishing()):
            pass

    assert spans.one("invoke_agent helper").parent is None
