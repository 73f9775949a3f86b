"""Spans of runs and of the model's answers in them."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TypeVar
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind

from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.run_events import CallFinished, RunFinished, RunSuspended, StreamItem
from beckon_agent.core.run_types import Model, Options
from beckon_agent.telemetry import tool_spans
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.telemetry.spans import Value, begin_span, iterate_within
from beckon_contract.resources.tools import Tool
from beckon_runtime.tracing import carried, mark_failed

_LONGEST_NAME = 200  # characters of what a server says


def record_model(model: str, base_url: str) -> None:
    """Name the current span after the requested model."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    address = urlsplit(base_url)
    span.update_name(f"chat {model}")
    span.set_attributes(
        {
            "gen_ai.request.model": model,
            "server.address": address.hostname or "",
            "server.port": address.port or (443 if address.scheme == "https" else 80),
        }
    )


def record_answer(payload: Mapping[str, object], *, streamed: bool) -> bool:
    """Record the answer's id and model from one of its payloads.

    Return True once this is done. Some servers send id and model in no payload, or not in the first one.
    """
    span = trace.get_current_span()
    if not span.is_recording():
        return True
    of_response = {f"gen_ai.response.{name}": payload.get(name) for name in ("id", "model")}
    attributes = {
        name: value[:_LONGEST_NAME] for name, value in of_response.items() if isinstance(value, str) and value
    }
    if attributes:
        span.set_attributes({"gen_ai.request.stream": streamed, **attributes})
    return bool(attributes)


def record_offered_tools(tools: int) -> None:
    """Record the number of tools offered to the run.

    It goes into the current span, that of the run. The model gets some of these tools.
    """
    trace.get_current_span().set_attribute("beckon.tools.offered", tools)


def trace_header() -> dict[str, str]:
    """Return the `traceparent` header for the model's server to join the trace.

    `tracestate` is left out: the entries of other vendors are not for a model's server.
    """
    return {name: value for name, value in carried().items() if name == "traceparent"}


logger = logging.getLogger(__name__)

Event = TypeVar("Event")

_SUSPENDED = "suspended"


class RunObserver:
    """Traces, counts and logs the run of one agent.

    `model` wraps the model of the run, `events` wraps its events.
    """

    def __init__(self, agent: str, metrics: Metrics, *, run_id: str = "", conversation: str = "") -> None:
        self._agent = agent
        self._metrics = metrics
        self._run_id = run_id
        self._common: dict[str, Value] = {
            "gen_ai.provider.name": "openai",  # the format of the requests, for any server
            "gen_ai.agent.name": agent,
        }
        if conversation:
            self._common["gen_ai.conversation.id"] = conversation

    def watch_model(self, model: Model) -> Model:
        """Return the model, wrapped for the run."""
        return _WatchedModel(model, self._agent, self._metrics, self._common)

    async def watch_events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Yield the events of the run; count its tool calls and its end.

        A suspended run has not ended, and is not counted.
        """
        span = self._begin_span()
        run, begun_at = _RunSeen(), time.monotonic()
        try:
            async with aclosing(iterate_within(span, events)) as happened:
                async for event in happened:
                    if isinstance(event, CallFinished):
                        self._metrics.count_call(event, self._agent)
                    run.note_event(event)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            run.ending = run.ending or "cancelled"
            raise
        except Exception as error:
            mark_failed(span, type(error).__name__)
            raise
        finally:
            ending = run.ending or "failed"
            run.record_end(span, ending)
            span.end()
            # Not under the span of the run, which is current only while the run itself is awaited.
            logger.info("run of %s: %s, after %.3f s", self._agent, ending, time.monotonic() - begun_at)
            if ending != _SUSPENDED:
                self._metrics.count_run(self._agent, ending)

    def _begin_span(self) -> Span:
        attributes: dict[str, Value] = {"gen_ai.operation.name": "invoke_agent", **self._common}
        if self._run_id:
            attributes["beckon.run_id"] = self._run_id
        return begin_span(f"invoke_agent {self._agent}", SpanKind.INTERNAL, attributes)


class _RunSeen:
    """The ending and the usage of a run, read from its events. `ending` is empty until an event has it."""

    def __init__(self) -> None:
        self.ending = ""
        self.usage: Usage | None = None

    def note_event(self, event: object) -> None:
        """Take note of an event."""
        if isinstance(event, RunFinished):
            self.ending, self.usage = event.ending, event.usage
        elif isinstance(event, RunSuspended):
            self.ending = _SUSPENDED

    def record_end(self, span: Span, ending: str) -> None:
        """Record the ending and the usage in the span of the run."""
        if span.is_recording():
            span.set_attributes({"beckon.run.ending": ending, **_usage_attributes(self.usage)})


class _WatchedModel:
    def __init__(self, model: Model, agent: str, metrics: Metrics, common: Mapping[str, Value]) -> None:
        self._common = common
        self._model = model
        self._agent = agent
        self._metrics = metrics

    @property
    def name(self) -> str:
        return self._model.name

    async def tool_limit(self) -> int:
        """Return the model's tool limit, and count a failure.

        A server without a model list fails here; this counts as a failed answer.
        """
        began = time.monotonic()
        try:
            return await self._model.tool_limit()
        except Exception:
            lost = time.monotonic() - began
            self._metrics.count_answer(self._agent, "failed", seconds=lost, first=None, usage=None)
            raise

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield one answer; record its usage and duration, however it ends."""
        span = begin_span("chat", SpanKind.CLIENT, self._span_attributes(tools, options))
        if span.is_recording():
            span.set_attributes(tool_spans.input_attribute(messages))
        self._metrics.model_request(self._agent, len(tools))
        answer = _AnswerMeasures()
        try:
            async with aclosing(iterate_within(span, self._model.stream(messages, tools, options))) as items:
                async for item in items:
                    answer.note_piece(item)
                    if isinstance(item, Turn):
                        for refused in item.refused:
                            self._metrics.count_refused(refused, self._agent)
                    yield item
        except (asyncio.CancelledError, GeneratorExit):
            answer.outcome = answer.outcome if answer.turn else "cancelled"
            raise
        except Exception as error:
            mark_failed(span, type(error).__name__)
            raise
        finally:
            answer.record_answer(span)
            span.end()
            for call in answer.turn.calls if answer.turn else ():
                self._metrics.count_origin(self._agent, call.origin)
            self._metrics.count_answer(
                self._agent,
                answer.outcome,
                seconds=time.monotonic() - answer.begun,
                first=answer.first,
                usage=answer.turn.usage if answer.turn else None,
            )

    def _span_attributes(self, tools: Sequence[Tool], options: Options) -> dict[str, Value]:
        attributes: dict[str, Value | None] = {
            "gen_ai.operation.name": "chat",
            **self._common,
            "gen_ai.request.temperature": options.temperature,
            "gen_ai.request.max_tokens": options.max_tokens,
            "gen_ai.request.stop_sequences": list(options.stop) or None,
            "beckon.tools": len(tools),
        }
        return {name: value for name, value in attributes.items() if value is not None}


class _AnswerMeasures:
    """The measures of one answer as far as received. `first` is the time to its first piece, in seconds."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.first: float | None = None
        self.turn: Turn | None = None
        self.outcome = "failed"

    def note_piece(self, item: StreamItem) -> None:
        """Take note of a piece."""
        if isinstance(item, Turn):
            self.turn, self.outcome = item, "answered"
        elif self.first is None:
            self.first = time.monotonic() - self.begun

    def record_answer(self, span: Span) -> None:
        """Record the known parts of the answer in its span."""
        if not span.is_recording():
            return
        attributes: dict[str, Value] = {}
        if self.first is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = self.first
        if self.turn is not None:
            attributes["gen_ai.response.finish_reasons"] = [self.turn.finish_reason or "stop"]
            attributes |= tool_spans.output_attribute(self.turn) | _usage_attributes(self.turn.usage)
        span.set_attributes(attributes)


def _usage_attributes(usage: Usage | None) -> dict[str, Value]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
