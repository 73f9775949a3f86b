"""Every recorded answer of some thirty servers, replayed byte by byte over HTTP.

What differs from the recording's own summary, and why:
- reasoning in `<think>` tags is separated from the text, and both are the content;
- a refusal is shown as its text;
- usage under `x_groq` counts as usage;
- one stream ends with an error in the middle, which is raised.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beckon_agent.core.model_types import ToolCall, Turn
from beckon_agent.core.run_events import ReasoningDelta, RefusalDelta, StreamItem, TextDelta
from beckon_agent.model.capabilities import Profile
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import (
    ContextTooLong,
    ModelAuthError,
    ModelError,
    ModelRefused,
    RateLimited,
    StreamBroken,
)
from beckon_agent.model.transport import Patience
from tests.agent.scripted_model import KEY, Reply, items_of, scripted_model
from tests.shared_data import shared_data

RECORDED = shared_data("openai-streams")
ENDS_WITH_AN_ERROR = "0088-pydantic-ai-api-groq-com"


def recordings(folder: str, suffix: str) -> Iterator[tuple[str, dict[str, Any], bytes]]:
    """Yield name, description and bytes of every recording in a folder."""
    for meta in sorted((RECORDED / folder).glob("*.meta.json")):
        name = meta.name.removesuffix(".meta.json")
        yield name, json.loads(meta.read_bytes()), Path(meta.parent, name + suffix).read_bytes()


def as_recorded(meta: dict[str, Any], body: bytes) -> Reply:
    """Return the recorded answer, cut into pieces that end anywhere, also within a character."""
    pieces = [body[start : start + 1021] for start in range(0, len(body), 1021)]
    return Reply(pieces, meta["status"], meta["content_type"])


async def replayed(
    folder: str, suffix: str, only: str = ""
) -> dict[str, tuple[dict[str, Any], list[StreamItem] | ModelError]]:
    """Return description and outcome of every recording in a folder, by name."""
    outcomes: dict[str, tuple[dict[str, Any], list[StreamItem] | ModelError]] = {}
    async with scripted_model() as model:
        patience = Patience(attempts=1)
        async with ModelClient(model.base_url, KEY, "m", Profile(), patience=patience) as client:
            for name, meta, body in recordings(folder, suffix):
                if only not in name:
                    continue
                model.add(as_recorded(meta, body))
                try:
                    outcomes[name] = meta, await items_of(client)
                except ModelError as error:
                    outcomes[name] = meta, error
    return outcomes


def expected(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what a recording's summary says, in the words of a `Turn`."""
    choice = meta["expected"]["choices"][0]
    usage = meta["expected"].get("usage")
    calls = [(call["name"], call["arguments"]) for call in choice["tool_calls"] or []]
    return {
        "text": choice["content"] or "",
        "refusal": "",
        "reasoning": choice.get("reasoning") or "",
        "calls": calls,
        "finish_reason": choice["finish_reason"],
        "usage": usage and (usage["prompt_tokens"], usage["completion_tokens"]),
    }


def members_of(turn: Turn) -> dict[str, Any]:
    """Return what a turn says, in the same words."""
    return {
        "text": turn.text,
        "refusal": turn.details.refusal,
        "reasoning": turn.reasoning,
        "calls": [(call.name, call.arguments) for call in turn.calls],
        "finish_reason": turn.finish_reason,
        "usage": turn.usage and (turn.usage.prompt_tokens, turn.usage.completion_tokens),
    }


def wanted_of(meta: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return what a recording should be read as, with the documented differences applied."""
    wanted = expected(meta)
    if "reasoning" not in meta["expected"]["choices"][0]:
        wanted |= from_completion(json.loads(body))
    if wanted["text"].startswith("<think>"):
        thought, _, answer = wanted["text"].removeprefix("<think>").partition("</think>")
        wanted |= {"reasoning": thought, "text": answer.lstrip()}
    if b'"refusal":"' in body:
        wanted["refusal"] = "".join(delta.get("refusal") or "" for delta in deltas(body))
    for chunk in chunks(body):
        usage = chunk.get("x_groq", {}).get("usage")
        if usage:
            wanted["usage"] = usage["prompt_tokens"], usage["completion_tokens"]
    return wanted


def from_completion(completion: dict[str, Any]) -> dict[str, Any]:
    """Return what the summaries of whole completions leave out."""
    message, usage = completion["choices"][0]["message"], completion.get("usage")
    return {
        "reasoning": message.get("reasoning_content") or message.get("reasoning") or "",
        "usage": usage and (usage["prompt_tokens"], usage["completion_tokens"]),
    }


def chunks(body: bytes) -> list[dict[str, Any]]:
    """Read a well-formed recorded stream."""
    lines = (line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {"))
    return [json.loads(line) for line in lines]


def deltas(body: bytes) -> list[dict[str, Any]]:
    """Return the deltas of a well-formed recorded stream."""
    return [choice["delta"] for chunk in chunks(body) for choice in chunk["choices"]]


async def disagreements(folder: str, suffix: str) -> tuple[int, dict[str, object]]:
    """Return how many recordings a folder has, and those that we read differently."""
    bodies = {name: body for name, _, body in recordings(folder, suffix)}
    differing: dict[str, object] = {}
    for name, (meta, outcome) in (await replayed(folder, suffix)).items():
        if isinstance(outcome, ModelError):
            differing[name] = type(outcome)
            continue
        *pieces, turn = outcome
        assert isinstance(turn, Turn)
        wanted = wanted_of(meta, bodies[name])
        if members_of(turn) != wanted:
            differing[name] = members_of(turn), wanted
        refused = "".join(piece.text for piece in pieces if isinstance(piece, RefusalDelta))
        shown = "".join(piece.text for piece in pieces if type(piece) is TextDelta)
        thought = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
        called = tuple(piece for piece in pieces if isinstance(piece, ToolCall))
        assert (shown, thought, called) == (turn.text, turn.reasoning, turn.calls)
        assert refused == turn.details.refusal
    return len(bodies), differing


async def test_every_recorded_text_stream_is_read_as_it_was_meant() -> None:
    count, differing = await disagreements("text-streams", ".sse")
    assert count == 69
    assert differing == {ENDS_WITH_AN_ERROR: StreamBroken}


async def test_every_recorded_tool_stream_gives_its_calls_and_their_arguments() -> None:
    assert await disagreements("tool-streams", ".sse") == (77, {})


async def test_every_recorded_completion_is_understood_as_the_answer_to_a_streamed_request() -> None:
    assert await disagreements("tool-nonstream", ".body.json") == (106, {})


ERRORS = {
    "0001-openinference-api-openai-com": (ModelAuthError, 401, "Incorrect API key provided"),
    "0004-mirascope-api-openai-com": (ModelAuthError, 401, "Incorrect API key provided"),
    "0009-crewAI-fake-azure-endpoint-openai-azure-com": (ModelRefused, 404, "Resource not found"),
    "0013-ruby-llm-api-mistral-ai": (ModelAuthError, 401, "Invalid API Key"),
    "0019-ruby-llm-ollama-com": (ContextTooLong, 400, "prompt too long"),
    "0020-ruby-llm-openrouter-ai": (ContextTooLong, 400, "maximum context length is 200000 tokens"),
    "0027-pydantic-ai-api-openai-com": (ModelRefused, 404, "`gpt-5.2-proo` does not exist"),
    "0035-pydantic-ai-openrouter-ai": (RateLimited, 429, "temporarily rate-limited upstream"),
    "0036-openllmetry-api-openai-com": (ModelRefused, 404, "has been deprecated"),
    "0039-openllmetry-api-openai-com": (ModelRefused, 400, "unsupported image"),
}


async def test_every_recorded_error_says_who_must_act_in_the_words_of_its_server() -> None:
    outcomes = await replayed("errors", ".body.json")
    assert outcomes.keys() == ERRORS.keys()
    for name, (kind, status, words) in ERRORS.items():
        error = outcomes[name][1]
        assert type(error) is kind, name
        assert isinstance(error, ModelError)
        assert error.status == status
        assert words in str(error)


async def test_the_recorded_error_within_a_stream_keeps_its_cause() -> None:
    error = (await replayed("text-streams", ".sse", ENDS_WITH_AN_ERROR))[ENDS_WITH_AN_ERROR][1]
    assert isinstance(error, StreamBroken)
    assert isinstance(error.__cause__, ModelRefused)
    with pytest.raises(ModelRefused, match="model did not call a tool"):
        raise error.__cause__
