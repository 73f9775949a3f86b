"""The JSON of chat completions: whole answers, and the chunks of a stream."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NotRequired

import orjson
from typing_extensions import TypedDict

from beckon_agent.api.chat.request import handed_id, new_run_id
from beckon_agent.core.model_types import Logprobs, Usage
from beckon_agent.core.run_events import (
    AnnotationAdded,
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    Ending,
    ReasoningDelta,
    RefusalDelta,
    RunEvent,
    RunFinished,
    TextDelta,
)
from beckon_contract.jsontext import dumps
from beckon_contract.resources.tools import CallOrigin

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class ChatUsage(TypedDict):
    """The tokens used by a completion; details are those that the model server reports."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[Mapping[str, int]]
    completion_tokens_details: NotRequired[Mapping[str, int]]


class ChatFunction(TypedDict):
    """The name and the arguments of a client's function."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A call handed to the client."""

    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatToolCallDelta(ChatToolCall):
    """A call handed to the client in a stream."""

    index: int


class ChatAnnotation(TypedDict):
    """A source of the text, by its address."""

    type: Literal["url_citation"]
    url_citation: Mapping[str, Any]


class ChatAnswer(TypedDict):
    """The message of a completion."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: NotRequired[list[ChatToolCall]]
    reasoning_content: NotRequired[str]
    annotations: NotRequired[list[ChatAnnotation]]


class ChatLogprobs(TypedDict):
    """The log probabilities of the tokens of a choice."""

    content: Sequence[Mapping[str, Any]] | None
    refusal: Sequence[Mapping[str, Any]] | None


class ChatChoice(TypedDict):
    """The one choice of a completion."""

    index: int
    message: ChatAnswer
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class StartedCall(TypedDict):
    """The start of a cluster tool's call."""

    type: Literal["call.started"]
    id: str
    name: str
    arguments: Mapping[str, object]
    origin: CallOrigin


class ProgressedCall(TypedDict):
    """The progress of a cluster tool's call."""

    type: Literal["call.progressed"]
    id: str
    name: str
    progress: float
    total: float | None
    message: str


class FinishedCall(TypedDict):
    """The result of a cluster tool's call."""

    type: Literal["call.finished"]
    id: str
    name: str
    failed: bool
    result: Any
    seconds: float


CallDocument = StartedCall | ProgressedCall | FinishedCall
"""An event of a tool call in the field `beckon`."""


class CallEventList(TypedDict):
    """The events of all tool calls of a completion."""

    events: list[CallDocument]


class ChatCompletion(TypedDict):
    """A whole completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage | None
    system_fingerprint: NotRequired[str]
    beckon: NotRequired[CallEventList]


class ChatDelta(TypedDict, total=False):
    """A piece of the message in a stream."""

    role: Literal["assistant"]
    content: str
    refusal: str
    reasoning_content: str
    tool_calls: list[ChatToolCallDelta]
    annotations: list[ChatAnnotation]


_FINISH_REASONS: dict[Ending, FinishReason] = {
    "stop": "stop",
    "content_filter": "content_filter",
    "client_call": "tool_calls",
}


@dataclass(slots=True)
class Completion:
    """One chat completion, as chunks or as a whole. `agent` is its `model`."""

    agent: str
    with_events: bool
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    run: str = field(default_factory=new_run_id)
    """What the ids of calls that are handed to the client begin with."""

    handed: int = field(default=0, init=False)
    length: int = field(default=0, init=False)
    """How many characters the text has so far."""

    def opening_chunk(self) -> bytes:
        """Return the first chunk, with the role."""
        return self._write_chunk({"role": "assistant", "content": ""})

    def to_chunk(self, event: RunEvent) -> bytes | None:
        """Return the chunk for an event. `None` if the event is not sent to clients."""
        match event:
            case RefusalDelta(text, logprobs):
                return self._write_text({"refusal": text}, _to_logprobs((), logprobs))
            case TextDelta(text, logprobs):
                self.length += len(text)
                return self._write_text({"content": text}, _to_logprobs(logprobs, ()))
            case AnnotationAdded():
                return self._write_chunk({"annotations": [_to_annotation(event, self.length)]})
            case ReasoningDelta(text):
                return self._write_text({"reasoning_content": text})
            case CallStarted() | CallProgressed() | CallFinished() if self.with_events:
                return self._write_chunk({}, beckon=call_document(event))
            case ClientCallRequested():
                call: ChatToolCallDelta = {"index": self.handed, **self._to_tool_call(event)}
                self.handed += 1
                return self._write_chunk({"tool_calls": [call]})
            case RunFinished(ending):
                extra: dict[str, Any] = {"system_fingerprint": event.fingerprint} if event.fingerprint else {}
                return self._write_chunk({}, finish_reason=finish_reason(ending), **extra)
        return None

    def usage_chunk(self, usage: Usage | None) -> bytes:
        """Return the usage chunk, the last one of a stream. Only streams with `include_usage` have it."""
        return self._to_sse({"choices": [], "usage": usage_document(usage)})

    def to_document(self, events: list[RunEvent]) -> ChatCompletion:
        """Return the answer to a request without `stream`."""
        text, reasoning, refusal = (
            "".join(event.text for event in events if type(event) is kind)
            for kind in (TextDelta, ReasoningDelta, RefusalDelta)
        )
        finished = next(event for event in events if isinstance(event, RunFinished))
        handed = [self._to_tool_call(event) for event in events if isinstance(event, ClientCallRequested)]
        content = None if (handed or refusal) and not text else text
        message: ChatAnswer = {"role": "assistant", "content": content, "refusal": refusal or None}
        if handed:
            message["tool_calls"] = handed
        if reasoning:
            message["reasoning_content"] = reasoning
        if annotations := _place_annotations(events):
            message["annotations"] = annotations
        logprobs, refusal_logprobs = (
            tuple(chain.from_iterable(event.logprobs for event in events if type(event) is kind))
            for kind in (TextDelta, RefusalDelta)
        )
        choice: ChatChoice = {
            "index": 0,
            "message": message,
            "logprobs": _to_logprobs(logprobs, refusal_logprobs),
            "finish_reason": finish_reason(finished.ending),
        }
        document: ChatCompletion = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.agent,
            "choices": [choice],
            "usage": usage_document(finished.usage),
        }
        if finished.fingerprint:
            document["system_fingerprint"] = finished.fingerprint
        if self.with_events:
            calls = [
                call_document(event) for event in events if isinstance(event, CallStarted | CallFinished)
            ]
            document["beckon"] = {"events": calls}
        return document

    def _to_tool_call(self, call: ClientCallRequested) -> ChatToolCall:
        function: ChatFunction = {"name": call.name, "arguments": call.arguments}
        return {"id": handed_id(self.run, call.id), "type": "function", "function": function}

    def _write_text(self, delta: ChatDelta, logprobs: ChatLogprobs | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": None}
        write = dumps if logprobs else orjson.dumps  # `dumps` checks all numbers, and texts have none
        return b"data: " + write(self._with_head({"choices": [choice]})) + b"\n\n"

    def _write_chunk(
        self, delta: ChatDelta, *, finish_reason: FinishReason | None = None, **extra: CallDocument | str
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._to_sse({"choices": [choice], **extra})

    def _to_sse(self, members: dict[str, object]) -> bytes:
        return b"data: " + dumps(self._with_head(members)) + b"\n\n"

    def _with_head(self, members: dict[str, object]) -> dict[str, object]:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.agent,
            **members,
        }


def _to_logprobs(content: Logprobs, refusal: Logprobs) -> ChatLogprobs | None:
    return {"content": content or None, "refusal": refusal or None} if content or refusal else None


def _to_annotation(added: AnnotationAdded, length: int) -> ChatAnnotation:
    cited = {name: value for name, value in added.place_in(length).items() if name != "type"}
    return {"type": "url_citation", "url_citation": cited}


def _place_annotations(events: Sequence[RunEvent]) -> list[ChatAnnotation]:
    annotations, length = [], 0
    for event in events:
        if type(event) is TextDelta:
            length += len(event.text)
        elif isinstance(event, AnnotationAdded):
            annotations.append(_to_annotation(event, length))
    return annotations


def call_document(event: CallStarted | CallProgressed | CallFinished) -> CallDocument:
    """Return an event of a tool call for the field `beckon`."""
    if isinstance(event, CallProgressed):
        return {
            "type": "call.progressed",
            "id": event.id,
            "name": event.name,
            "progress": event.done,
            "total": event.total,
            "message": event.message,
        }
    if isinstance(event, CallStarted):
        return {
            "type": "call.started",
            "id": event.id,
            "name": event.name,
            "arguments": event.arguments,
            "origin": event.origin,
        }
    return {
        "type": "call.finished",
        "id": event.id,
        "name": event.name,
        "failed": event.failed,
        "result": event.result,
        "seconds": round(event.seconds, 3),
    }


def finish_reason(ending: Ending) -> FinishReason:
    """Return OpenAI's `finish_reason` for an ending; every limit is `length`."""
    return _FINISH_REASONS.get(ending, "length")


def usage_document(usage: Usage | None) -> ChatUsage | None:
    """Return OpenAI's usage object; unknown is null, not zero."""
    if usage is None:
        return None
    document: ChatUsage = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.prompt_details:
        document["prompt_tokens_details"] = usage.prompt_details
    if usage.completion_details:
        document["completion_tokens_details"] = usage.completion_details
    return document
