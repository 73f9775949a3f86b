"""The JSON of chat completions: whole answers, and the chunks of a stream."""

import secrets
import time
from dataclasses import dataclass, field

from beckon_agent.api.chat.memory import handed_id, new_run_id
from beckon_agent.api.http.openapi import INTEGER, listed, maybe, obj, word
from beckon_agent.core.model_types import ReasoningDelta, TextDelta, Usage
from beckon_agent.core.run_types import (
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    Ending,
    RunEvent,
    RunFinished,
)
from beckon_contract.jsontext import dumps

_USAGE = obj(prompt_tokens=INTEGER, completion_tokens=INTEGER, total_tokens=INTEGER)
_MESSAGE = obj(role=word("assistant"), content=maybe(word()))
DOCUMENT = obj(
    id=word(),
    object=word("chat.completion"),
    created=INTEGER,
    model=word(),
    choices=listed(obj(index=INTEGER, message=_MESSAGE, finish_reason=word())),
    usage=maybe(_USAGE),
)
"""The schema of a whole completion."""

_FINISH_REASONS: dict[Ending, str] = {
    "stop": "stop",
    "content_filter": "content_filter",
    "client_call": "tool_calls",
}


@dataclass(slots=True)
class Completion:
    """One chat completion, as chunks or as a whole.

    `agent` is its `model`.
    """

    agent: str
    with_events: bool
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    run: str = field(default_factory=new_run_id)
    """What the ids of calls that are handed to the client begin with."""

    handed: int = field(default=0, init=False)

    def opening(self) -> bytes:
        """Return the first chunk, with the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def chunk(self, event: RunEvent) -> bytes | None:
        """Return the chunk for an event.

        `None` if the event is not sent to clients.
        """
        match event:
            case TextDelta(text):
                return self._chunk({"content": text})
            case ReasoningDelta(text):
                return self._chunk({"reasoning_content": text})
            case CallStarted() | CallProgressed() | CallFinished() if self.with_events:
                return self._chunk({}, beckon=call_document(event))
            case ClientCallRequested():
                call = {"index": self.handed, **self._handed(event)}
                self.handed += 1
                return self._chunk({"tool_calls": [call]})
            case RunFinished(ending):
                return self._chunk({}, finish_reason=finish_reason(ending))
        return None

    def usage_chunk(self, usage: Usage | None) -> bytes:
        """Return the usage chunk, the last one of a stream.

        Only streams with `include_usage` have it.
        """
        return _data({**self._head("chat.completion.chunk"), "choices": [], "usage": usage_document(usage)})

    def whole(self, events: list[RunEvent]) -> dict[str, object]:
        """Return the answer to a request without `stream`."""
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        finished = next(event for event in events if isinstance(event, RunFinished))
        handed = [self._handed(event) for event in events if isinstance(event, ClientCallRequested)]
        content = None if handed and not text else text
        message: dict[str, object] = {"role": "assistant", "content": content, "refusal": None}
        if handed:
            message["tool_calls"] = handed
        if reasoning:
            message["reasoning_content"] = reasoning
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": finish_reason(finished.ending),
        }
        document = {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": usage_document(finished.usage),
        }
        if self.with_events:
            calls = [
                call_document(event) for event in events if isinstance(event, CallStarted | CallFinished)
            ]
            document["beckon"] = {"events": calls}
        return document

    def _handed(self, call: ClientCallRequested) -> dict[str, object]:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": handed_id(self.run, call.id), "type": "function", "function": function}

    def _chunk(self, delta: dict[str, object], *, finish_reason: str | None = None, **extra: object) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice], **extra})

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.agent}


def call_document(event: CallStarted | CallProgressed | CallFinished) -> dict[str, object]:
    """Return an event of a tool call for the field `beckon`."""
    if isinstance(event, CallProgressed):
        progress = {"progress": event.done, "total": event.total, "message": event.message}
        return {"type": "call.progressed", "id": event.id, "name": event.name, **progress}
    if isinstance(event, CallStarted):
        started = {"type": "call.started", "id": event.id, "name": event.name}
        return {**started, "arguments": event.arguments, "origin": event.origin}
    return {
        "type": "call.finished",
        "id": event.id,
        "name": event.name,
        "failed": event.failed,
        "result": event.result,
        "seconds": round(event.seconds, 3),
    }


def finish_reason(ending: Ending) -> str:
    """Return OpenAI's `finish_reason` for an ending; every limit is `length`."""
    return _FINISH_REASONS.get(ending, "length")


def usage_document(usage: Usage | None) -> dict[str, int] | None:
    """Return OpenAI's usage object; unknown is null, not zero."""
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _data(document: dict[str, object]) -> bytes:
    return b"data: " + dumps(document) + b"\n\n"
