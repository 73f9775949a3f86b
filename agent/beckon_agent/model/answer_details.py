"""The details of an answer in any shape: usage, log probabilities, annotations."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Logprobs, Usage

_UNLIKELY = -9999.0  # OpenAI's number for a token that is very unlikely
_LARGEST = 10**9  # of one answer's counts; sums of many fit into the integers of every store


def read_usage(payload: Mapping[str, object]) -> Usage | None:
    """Return the usage of a payload, `None` without one, or with numbers that no tokens can have."""
    if "usage" not in payload and "x_groq" not in payload:  # most payloads of a stream
        return None
    usage = json_values.as_mapping(payload.get("usage")) or json_values.as_mapping(
        json_values.as_mapping(payload.get("x_groq")).get("usage")
    )
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if _is_count(prompt) and _is_count(completion):
        details = (_read_counts(usage.get(f"{side}_tokens_details")) for side in ("prompt", "completion"))
        return Usage(prompt, completion, *details)
    return None


def _read_counts(details: object) -> dict[str, int]:
    return {name: count for name, count in json_values.as_mapping(details).items() if _is_count(count)}


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _LARGEST


def read_logprobs(tokens: object) -> Logprobs:
    """Return the log probabilities of a choice's tokens; what is no token is left out."""
    logprobs = []
    for entry in json_values.as_sequence(tokens):
        fields = json_values.as_mapping(entry)
        if isinstance(fields.get("token"), str):
            others = json_values.as_sequence(fields.get("top_logprobs"))
            likely = [_to_token(other) for other in map(json_values.as_mapping, others)]
            logprobs.append(_to_token(fields) | {"top_logprobs": likely})
    return tuple(logprobs)


def _to_token(fields: Mapping[str, object]) -> dict[str, Any]:
    number, raw = fields.get("logprob"), fields.get("bytes")
    known = isinstance(number, int | float) and abs(number) <= -_UNLIKELY
    is_complete = isinstance(raw, list) and all(type(byte) is int and 0 <= byte < 256 for byte in raw)
    return {
        "token": json_values.as_text(fields.get("token")),
        "logprob": number if known else _UNLIKELY,
        "bytes": raw if is_complete else None,
    }


def read_citations(annotations: object) -> list[dict[str, Any]]:
    """Return the citations of URLs among a message's annotations, in the form of OpenAI's Responses.

    Each has all members: servers leave some out, or write them beside the type. Chat completions have no
    other annotations.
    """
    citations = []
    for entry in json_values.as_sequence(annotations):
        fields = json_values.as_mapping(entry)
        if fields.get("type") == "url_citation":
            citations.append(_to_citation(json_values.as_mapping(fields.get("url_citation")) or fields))
    return citations


def _to_citation(cited: Mapping[str, object]) -> dict[str, Any]:
    places = (cited.get("start_index"), cited.get("end_index"))
    start, end = (place if _is_count(place) else 0 for place in places)
    texts = {name: json_values.as_text(cited.get(name)) for name in ("url", "title")}
    return {"type": "url_citation", **texts, "start_index": start, "end_index": end}
