"""Answers in OpenAI's form: a chat completion, or the chunks of a stream."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from beckon_demo.reply import Call, Reply

_TOKEN: Final = re.compile(r"\w+|[^\w\s]")

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Head:
    """The common fields of an answer and its chunks.

    `created` is in seconds since 1970.
    """

    id: str
    created: int
    model: str

    def of(self, kind: str) -> Json:
        """Return the fields common to all objects of this answer."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": "demo",
        }


def usage(prompt: Sequence[Mapping[str, object]], reply: Reply) -> Json:
    """Count words and signs as tokens.

    They are those of the prompt's JSON and of the answer.
    """
    calls = len(_TOKEN.findall(json.dumps(prompt, ensure_ascii=False)))
    said = len(_TOKEN.findall(reply.text)) + sum(
        len(_TOKEN.findall(_arguments(call))) for call in reply.calls
    )
    return {"prompt_tokens": calls, "completion_tokens": said, "total_tokens": calls + said}


def completion(head: Head, reply: Reply, counted: Json) -> Json:
    """Return the whole answer as one object."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {**head.of("chat.completion"), "choices": [choice], "usage": counted}


def chunks(head: Head, reply: Reply, size: int, counted: Json | None) -> Iterator[Json]:
    """Yield the answer in pieces of `size` characters; last the usage, if it is given."""
    yield _chunk(head, {"role": "assistant", "content": None if reply.calls else ""})
    for piece in _pieces(reply.text, size):
        yield _chunk(head, {"content": piece})
    for index, call in enumerate(reply.calls):
        opened = {**_call(call), "index": index, "function": {"name": call.name, "arguments": ""}}
        yield _chunk(head, {"tool_calls": [opened]})
        for piece in _pieces(_arguments(call), size):
            yield _chunk(head, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk(head, {}, _finish(reply))
    if counted is not None:
        yield {**head.of("chat.completion.chunk"), "choices": [], "usage": counted}


def _chunk(head: Head, delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**head.of("chat.completion.chunk"), "choices": [choice]}


def _call(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}


def _arguments(call: Call) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))
