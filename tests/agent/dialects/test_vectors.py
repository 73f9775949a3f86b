"""Raw model text of other projects' tests, read by the dialect of its family.

Covered: every claimed family whole and in pieces; every ChatGLM3 vector and the article's
own examples; each family is either claimed or named as unclaimed.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from beckon_agent.dialects.registry import DIALECTS
from tests.agent.dialects.reading import Read, declare, read
from tests.shared_data import shared_data

Vector = dict[str, Any]

CLAIMED = {
    "hermes": [
        "hermes", "parser_engine", "smg:Qwen",
        "tmpl:NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", "tmpl:Qwen-QwQ-32B.jinja",
        "tmpl:Reka-Edge.jinja", "tmpl:ibm-granite-granite-4.0.jinja",
    ],
    "qwen3_coder": [
        "qwen3", "qwen3_xml", "qwen3coder", "smg:QwenCoder", "smg:QwenXml", "step3p5",
        "tmpl:Qwen3-Coder.jinja", "tmpl:Qwen3.5-4B.jinja", "tmpl:StepFun3.5-Flash.jinja",
        "tmpl:NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja",
    ],
    "glm4": [
        "glm47_moe", "glm4_moe", "hy_v3", "ling3", "poolside_v1", "tmpl:GLM-4.7-Flash.jinja",
        "tmpl:Spark2.5.jinja", "tmpl:inclusionai-ling-3.0-flash.jinja",
        "tmpl:meetkai-functionary-medium-v3.2.jinja",
    ],
    "llama3": [
        "llama3_json", "smg:Json", "smg:Llama",
    ],
    "mistral": [
        "mistral", "smg:Mistral", "tmpl:mistralai-Ministral-3-14B-Reasoning-2512.jinja",
        "tmpl:mistralai-Mistral-Nemo-Instruct-2407.jinja",
    ],
    "pythonic": [
        "lfm2", "llama4_pythonic", "olmo3", "pythonic", "smg:Pythonic", "tmpl:?",
    ],
    "deepseek": [
        "deepseek_v3", "deepseekv3", "deepseekv31", "deepseekv32",
        "tmpl:deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja",
        "tmpl:deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "tmpl:deepseek-ai-DeepSeek-V3.1.jinja",
        "tmpl:deepseek-ai-DeepSeek-V3.2.jinja", "tmpl:deepseek-ai-DeepSeek-V4.jinja",
        "tmpl:llama-cpp-deepseek-r1.jinja",
    ],
    "native": [
        "gigachat3", "granite", "granite-20b-fc", "hunyuan_a13b", "internlm", "jamba", "kimi_k2",
        "longcat", "minimax", "smg:Cohere", "smg:KimiK2", "smg:MinimaxM2", "smg:Step3", "step3",
        "tmpl:GigaChat3-10B-A1.8B.jinja", "tmpl:GigaChat3.1-10B-A1.8B.jinja",
        "tmpl:Kimi-K2-Instruct.jinja", "tmpl:Kimi-K2-Thinking.jinja", "tmpl:Kimi-K3.jinja",
        "tmpl:MiniMax-M2.jinja", "xlam",
    ],
}  # fmt: skip

UNCLAIMED = {
    "apertus": "objects whose key is the tool's name",
    "functiongemma": "Gemma's own value syntax",
    "gemma4": "Gemma's own value syntax",
    "gemma4_streaming_reasoning": "Gemma's own value syntax",
    "minicpm5xml": "`<function name=…><param name=…>`",
    "minimax_m3": "MiniMax-M3's element per parameter; its only vector here is plain text",
    "phi4_mini_json": "the bare word `functools` as an opener",
    "seed_oss": "reasoning in the content that holds examples of calls",
    "tool_calls": "Mistral text that upstream reads as a call without a name; we never make one",
    "tmpl:ByteDance-Seed-OSS.jinja": "Seed's reasoning tags in the content",
    "tmpl:Cohere2MoE.jinja": "Cohere's reasoning tags in the content",
    "tmpl:CohereForAI-c4ai-command-r-plus-tool_use.jinja": "Cohere's turn tokens in the content",
    "tmpl:CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja": "Cohere's reasoning tags in the content",
    "tmpl:MiniMax-M3.jinja": "MiniMax-M3's element per parameter",
    "tmpl:google-gemma-4-31B-it.jinja": "Gemma's own value syntax",
    "tmpl:muse-glimmer.jinja": "channels, as gpt-oss",
    "tmpl:openai-gpt-oss-120b.jinja": "channels (harmony)",
    "tmpl:openbmb-MiniCPM5-1B.jinja": "`<function name=…><param name=…>`",
    # Plain text only: they say nothing about a dialect.
    "ernie45_moe": "plain text only",
    "tmpl:Apriel-1.6-15b-Thinker-fixed.jinja": "plain text only",
    "tmpl:fireworks-ai-llama-3-firefunction-v2.jinja": "plain text only",
    "tmpl:google-gemma-2-2b-it.jinja": "plain text only",
    "tmpl:ibm-granite-granite-3.3-2B-Instruct.jinja": "plain text only",
    "tmpl:ibm-granite-granite-4.1.jinja": "plain text only",
    "tmpl:meta-llama-Llama-3.1-8B-Instruct.jinja": "a response schema that upstream unwraps",
    "tmpl:unsloth-Apriel-1.5.jinja": "plain text only",
}

DIFFERENT = {
    "tc0435": "upstream's arguments at a moment within the stream",
    "tc0652": "K3's reasoning in the content, which a server divides off",
    "tc0995": "HTML entities: a model that writes HTML into a parameter means them as they stand",
}
"""Vectors of claimed families that expect something that we do not want."""

NOT_RECOVERED = {
    **dict.fromkeys(
        ("tc0015", "tc0020", "tc0063", "tc0067", "tc0068", "tc0163", "tc0176", "tc0198", "tc0441", "tc0816"),
        "the call begins in a line of prose",
    ),
    "tc0161": "the call follows reasoning that a server divides off",
    "tc0162": "the call is in a fence",
    "tc0666": "the call is in reasoning that a server divides off",
    **dict.fromkeys(("tc0048", "tc0837", "tc0844"), "text follows the call"),
}
"""Vectors of native servers whose calls are no leak by the rules, and why: they are shown as text."""

READ_IN_TEXT_DIALECTS = (130, 150)
READ_AS_LEAKS = (134, 150)
"""How many vectors have calls that are read, and how many calls."""


def _vectors() -> list[Vector]:
    lines = shared_data("toolcall-parsing", "vectors.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _claimed() -> Iterator[tuple[str, Vector]]:
    dialect_of = {family: name for name, families in CLAIMED.items() for family in families}
    for vector in _vectors():
        if vector["family"] in dialect_of and vector["id"] not in DIFFERENT:
            yield dialect_of[vector["family"]], vector


CASES = list(_claimed())
READ = [(name, vector) for name, vector in CASES if vector["id"] not in NOT_RECOVERED]
IDS = [f"{name}-{vector['id']}" for name, vector in CASES]


def _tools(vector: Vector) -> list[dict[str, Any]]:
    """The declared tools; where the vector has none, those that it expects to be called."""
    if "tools" in vector:
        return list(vector["tools"])
    partial = vector.get("partial", {})
    called = [call["name"] for call in vector.get("calls", [])]
    return declare(*called, *partial.get("names", []), *partial.get("names_at", {}).values())


def _raw(vector: Vector) -> str:
    """The text after the reasoning, which the model client has taken off (templates' tests only)."""
    raw: str = vector["raw"]
    return raw.rpartition("</think>")[2] if vector["family"].startswith("tmpl:") else raw


def _check_calls(vector: Vector, found: Read) -> None:
    partial = vector.get("partial", {})
    if "calls" in vector:
        assert found.parsed == vector["calls"]
    if "tools_called" in partial:
        assert bool(found.calls) == partial["tools_called"]
    if "n" in partial:
        assert len(found.calls) == partial["n"]
    if "names" in partial:
        assert [name for name, _ in found.calls] == partial["names"]
    for index, name in partial.get("names_at", {}).items():
        assert found.calls[int(index)][0] == name
    for index, arguments in partial.get("args_at", {}).items():
        assert found.parsed[int(index)]["arguments"] == arguments
    if "args_0_has" in partial:
        arguments = found.parsed[0]["arguments"]
        assert isinstance(arguments, dict)
        assert partial["args_0_has"].items() <= arguments.items()


def _check_text(vector: Vector, found: Read) -> None:
    """The content is what stands before the first call: upstream drops the rest, we show it."""
    content = vector.get("content", vector.get("partial", {}).get("content"))
    if content is None or content.endswith(vector["raw"]):  # a text whose beginning was prefilled
        return
    assert content.strip() in (found.before.strip(), found.text.strip())


@pytest.mark.parametrize(("name", "vector"), READ, ids=[f"{name}-{vector['id']}" for name, vector in READ])
def test_a_vector_of_a_claimed_family_is_read_as_its_authors_expect(name: str, vector: Vector) -> None:
    found = read(DIALECTS[name], [_raw(vector)], _tools(vector))

    _check_calls(vector, found)
    _check_text(vector, found)


@pytest.mark.parametrize(("name", "vector"), CASES, ids=IDS)
def test_the_cut_into_pieces_changes_nothing(name: str, vector: Vector) -> None:
    raw, tools, dialect = _raw(vector), _tools(vector), DIALECTS[name]
    whole = read(dialect, [raw], tools)
    random_cuts = random.Random(vector["id"])

    assert read(dialect, raw, tools) == whole
    for _ in range(10):
        cuts = sorted(random_cuts.randrange(len(raw) + 1) for _ in range(4))
        pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
        assert read(dialect, pieces, tools) == whole


def test_as_many_recorded_calls_are_read_as_the_rules_allow() -> None:
    own = [
        read(DIALECTS[name], [_raw(vector)], _tools(vector)).calls
        for name, vector in CASES
        if name != "native"
    ]
    leaks = [read(DIALECTS["native"], [_raw(vector)], _tools(vector)).calls for _, vector in CASES]

    assert (sum(map(bool, own)), sum(map(len, own))) == READ_IN_TEXT_DIALECTS
    assert (sum(map(bool, leaks)), sum(map(len, leaks))) == READ_AS_LEAKS


@pytest.mark.parametrize("vector", [vector for _, vector in CASES if vector["id"] in NOT_RECOVERED])
def test_a_call_that_is_no_leak_by_the_rules_stays_in_the_text(vector: Vector) -> None:
    found = read(DIALECTS["native"], [_raw(vector)], _tools(vector))

    expected = len(vector.get("calls", [])) or vector["partial"]["n"]
    assert len(found.calls) < expected
    assert not found.calls or len(found.text) > 100
    assert found.calls or found.text.strip() in vector["raw"] or "_RESPONSE" in vector["raw"]


def test_every_family_is_claimed_or_named_as_unclaimed() -> None:
    claimed = [family for families in CLAIMED.values() for family in families]
    families = {vector["family"] for vector in _vectors()}

    assert sorted([*claimed, *UNCLAIMED]) == sorted(families)
    assert {vector["id"] for vector in _vectors()} >= set(DIFFERENT)


def _chatglm3() -> list[Vector]:
    lines = shared_data("chatglm3", "vectors.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["chatglm3", "native"])
@pytest.mark.parametrize("vector", _chatglm3(), ids=lambda vector: vector["id"])
def test_a_chatglm3_vector_is_read_whole_and_letter_by_letter(name: str, vector: Vector) -> None:
    dialect, tools = DIALECTS[name], vector.get("tools", [])
    found = read(dialect, [vector["raw"]], tools)

    assert found.parsed == vector["calls"]
    assert found.text.strip() == vector.get("text", found.text.strip())
    assert "<|assistant|>" not in found.text
    assert read(dialect, vector["raw"], tools) == found


def _examples() -> list[Vector]:
    examples: list[Vector] = json.loads(shared_data("examples", "chatglm3-outputs.json").read_text("utf-8"))
    return examples


@pytest.mark.parametrize("example", _examples(), ids=lambda example: example["case"])
def test_the_articles_examples_of_chatglm3_are_read(example: Vector) -> None:
    found = read(DIALECTS["chatglm3"], example["output"])

    assert found.parsed == example["calls"]
    assert found.text.strip() == "".join(example["text"])


def test_the_prompted_answer_schema_is_the_one_of_the_recipe() -> None:
    notes = json.loads(shared_data("examples", "declaration-notes.json").read_text("utf-8"))
    rendered = DIALECTS["prompted"].render([{"role": "user", "content": "hi"}], declare("f"))

    assert json.dumps(notes["prompted_answer_schema"]) in rendered.messages[0]["content"]
