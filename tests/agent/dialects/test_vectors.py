"""Raw model text of other projects' tests, read by the dialect of its family.

Covered: every claimed family whole and in pieces; every ChatGLM3 vector and the article's
own examples; each family is either claimed or named as unclaimed.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.base import Dialect
from beckon_agent.dialects.registry import DIALECTS, NATIVE, native_dialect
from beckon_agent.model.reasoning import ThinkSplitter
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
    "tc0666": "calls in reasoning that does not end, which the model client divides off",
    "tc0995": "HTML entities: a model that writes HTML into a parameter means them as they stand",
}
"""Vectors of claimed families that expect something that we do not want."""

NOT_RECOVERED = {
    **dict.fromkeys(
        (
            "tc0005", "tc0020", "tc0063", "tc0067", "tc0068", "tc0138", "tc0157", "tc0163", "tc0173",
            "tc0176", "tc0198", "tc0210", "tc0218", "tc0245", "tc0288", "tc0290", "tc0328", "tc0335",
            "tc0349", "tc0411", "tc0436", "tc0441", "tc0816", "tc0864", "tc0891", "tc0917", "tc0935",
        ),
        "the call begins in a line of prose",
    ),
    **dict.fromkeys(
        ("tc0048", "tc0080", "tc0253", "tc0430", "tc0438", "tc0837", "tc0844", "tc0915", "tc0939"),
        "text follows the call",
    ),
    "tc0162": "the call is in a fence",
    "tc0887": "a call of a tool that was not offered follows",
    "tc0889": "the call is within the arguments of another",
}  # fmt: skip
"""Vectors whose calls are no leak by the rules under native tool calling, and why: they are shown as text.

The text dialect of their family reads all of them, where the family has one.
"""

READ_IN_TEXT_DIALECTS = (130, 150)
READ_AS_LEAKS = {
    "deepseek": (7, 7), "glm4": (14, 17), "hermes": (12, 14), "llama3": (8, 8), "mistral": (7, 8),
    "native": (33, 37), "pythonic": (21, 24), "qwen3_coder": (34, 37),
}  # fmt: skip
"""How many vectors have calls that are read, and how many calls, by the dialect of their families."""

OWN_NAMES = {
    "deepseek_v3": "deepseek-ai/DeepSeek-V3", "deepseekv3": "deepseek-ai/DeepSeek-V3",
    "deepseekv31": "deepseek-ai/DeepSeek-V3.1", "deepseekv32": "deepseek-ai/DeepSeek-V3.2",
    "gigachat3": "ai-sage/GigaChat3-10B-A1.8B", "glm47_moe": "zai-org/GLM-4.7", "glm4_moe": "zai-org/GLM-4.5",
    "granite": "ibm-granite/granite-3.1-8b-instruct",
    "granite-20b-fc": "ibm-granite/granite-20b-functioncalling",
    "hermes": "NousResearch/Hermes-3-Llama-3.1-8B", "hunyuan_a13b": "tencent/Hunyuan-A13B-Instruct",
    "internlm": "internlm/internlm2_5-7b-chat", "jamba": "ai21labs/AI21-Jamba-1.5-Mini",
    "kimi_k2": "moonshotai/Kimi-K2-Instruct", "lfm2": "LiquidAI/LFM2-1.2B",
    "llama3_json": "meta-llama/Llama-3.1-8B-Instruct", "llama4_pythonic": "meta-llama/Llama-4-Scout-17B",
    "longcat": "meituan-longcat/LongCat-Flash-Chat", "minimax": "MiniMaxAI/MiniMax-M1-80k",
    "mistral": "mistralai/Mistral-7B-Instruct-v0.3", "olmo3": "allenai/Olmo-3-7B-Instruct",
    "parser_engine": "Qwen/Qwen3-8B", "pythonic": "meta-llama/Llama-3.2-1B", "qwen3": "Qwen/Qwen3-8B",
    "qwen3_xml": "Qwen/Qwen3-Coder-30B-A3B", "qwen3coder": "Qwen/Qwen3-Coder-30B-A3B",
    "smg:Cohere": "CohereLabs/c4ai-command-a-03-2025", "smg:KimiK2": "moonshotai/Kimi-K2-Instruct",
    "smg:Llama": "meta-llama/Llama-3.2-3B-Instruct", "smg:MinimaxM2": "MiniMaxAI/MiniMax-M2",
    "smg:Mistral": "mistralai/Mistral-Nemo-Instruct-2407", "smg:Pythonic": "meta-llama/Llama-4-Scout-17B",
    "smg:Qwen": "Qwen/Qwen3-8B", "smg:QwenCoder": "Qwen/Qwen3-Coder-30B-A3B",
    "smg:QwenXml": "Qwen/Qwen3.5-4B", "smg:Step3": "stepfun-ai/step3", "step3": "stepfun-ai/step3",
    "step3p5": "stepfun-ai/Step-3.5-Flash", "xlam": "Salesforce/xLAM-2-8b-fc-r",
}  # fmt: skip
"""Names of models whose servers leak the markup of a family; the vectors of templates have their own."""


def _vectors() -> list[Vector]:
    lines = shared_data("toolcall-parsing", "vectors.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _claimed() -> Iterator[tuple[str, Vector]]:
    dialect_of = {family: name for name, families in CLAIMED.items() for family in families}
    for vector in _vectors():
        if vector["family"] in dialect_of and vector["id"] not in DIFFERENT:
            yield dialect_of[vector["family"]], vector


CASES = list(_claimed())
READ = [(name, vector) for name, vector in CASES if name != "native" or vector["id"] not in NOT_RECOVERED]
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


def _read_leak(dialect: Dialect, vector: Vector) -> Read:
    """Read the answer as the agent does: the model client divides off the reasoning."""
    splitter = ThinkSplitter()
    pieces = [*splitter.feed(_raw(vector)), *splitter.close()]
    return read(dialect, [piece.text for piece in pieces if isinstance(piece, TextDelta)], _tools(vector))


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
    """The content is the text before the first call: upstream drops the rest, we show it."""
    content = vector.get("content", vector.get("partial", {}).get("content"))
    if content is None or content.endswith(vector["raw"]):  # a text whose beginning was prefilled
        return
    content = content.rpartition("</think>")[2]  # the model client divides off the reasoning
    assert content.strip() in (found.before.strip(), found.text.strip())


@pytest.mark.parametrize(("name", "vector"), READ, ids=[f"{name}-{vector['id']}" for name, vector in READ])
def test_a_vector_of_a_claimed_family_is_read_as_its_authors_expect(name: str, vector: Vector) -> None:
    found = read(DIALECTS[name], [_raw(vector)], _tools(vector))
    if name == "native":
        found = _read_leak(DIALECTS[name], vector)

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
    leaks: dict[str, list[int]] = {name: [] for name in CLAIMED}
    for name, vector in CASES:
        leaks[name].append(len(_read_leak(NATIVE, vector).calls))

    assert (sum(map(bool, own)), sum(map(len, own))) == READ_IN_TEXT_DIALECTS
    assert {name: (sum(map(bool, found)), sum(found)) for name, found in leaks.items()} == READ_AS_LEAKS


def test_the_name_of_the_model_loses_no_leak_of_its_family() -> None:
    for _, vector in CASES:
        family = vector["family"]
        model = OWN_NAMES.get(family) or family.removeprefix("tmpl:").removesuffix(".jinja")
        own = native_dialect(model, "http://a-server/v1", "own")

        assert _read_leak(own, vector).calls == _read_leak(NATIVE, vector).calls, vector["id"]


@pytest.mark.parametrize("vector", [vector for _, vector in CASES if vector["id"] in NOT_RECOVERED])
def test_a_call_that_is_no_leak_by_the_rules_stays_in_the_text(vector: Vector) -> None:
    found = _read_leak(NATIVE, vector)

    expected = [call["name"] for call in vector.get("calls", [])] or [
        *vector["partial"].get("names_at", {}).values()
    ]
    assert len(found.calls) < max(len(expected), vector.get("partial", {}).get("n", 1))
    made = [name for name, _ in found.calls]
    assert all(name in found.text for name in expected if name not in made or expected.count(name) > 1)
    assert found.calls or found.text.strip() in vector["raw"] or "_RESPONSE" in vector["raw"]


def test_parallel_calls_of_llama_are_recovered_if_both_tools_were_offered() -> None:
    (vector,) = (vector for _, vector in CASES if vector["id"] == "tc0887")

    found = read(NATIVE, [vector["raw"]], declare("get_weather", "get_tourist_attractions"))

    assert [name for name, _ in found.calls] == ["get_weather", "get_tourist_attractions"]


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
