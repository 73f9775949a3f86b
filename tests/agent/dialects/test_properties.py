"""What holds for every dialect and any text.

Covered: the cut into pieces, arbitrary text never raises, text without markup is unchanged,
what a dialect renders it reads back, hold-back is bounded, time is linear.
"""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.constrained import CONSTRAINED
from beckon_agent.dialects.registry import DIALECTS as NAMED
from tests.agent.dialects.reading import declare, read

TOOLS = declare("f", "get_weather")
DIALECTS = {**NAMED, CONSTRAINED.name: CONSTRAINED}
TEXT_DIALECTS = [name for name, dialect in NAMED.items() if not dialect.native]

MARKUP = [
    "{", "}", "[", "]", '"', "'", "\\", "f", "(", ")", "=", "a", ",", ":", "1", ";", ">", "<", "<|",
    "```", "<tool_call>", "</tool_call>", "<function=", "<parameter=", "</parameter>", "</function>",
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "[TOOL_CALLS]", "[ARGS]", "```python",
    "tool_call(", "<|assistant|>", '{"name":', '"functionCall":', '"arguments":', '"parameters":',
    "<｜DSML｜invoke", "<｜DSML｜parameter", 'name="', "</｜DSML｜parameter>", "</｜DSML｜invoke>",
    "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>", "<|open|>call", 'tool="', "<|sep|>", "<|close|>call<|sep|>",
    "<|python_tag|>", "<tool_calls>",
]  # fmt: skip

hostile = st.lists(st.sampled_from([*MARKUP, " ", "\n", "\ud800", "\0"]) | st.text(max_size=5), max_size=30)
plain = st.text(string.ascii_letters + string.digits + " .,!?-äé你好\n", max_size=200).filter(
    lambda text: text == text.lstrip()
)


@given(hostile.map("".join), st.lists(st.integers(0, 150), max_size=5))
def test_any_text_is_read_the_same_in_any_pieces_and_never_raises(raw: str, cuts: list[int]) -> None:
    edges = sorted(min(cut, len(raw)) for cut in cuts)
    pieces = [raw[start:end] for start, end in zip([0, *edges], [*edges, len(raw)], strict=True)]
    for dialect in DIALECTS.values():
        whole = read(dialect, [raw], TOOLS)
        assert read(dialect, pieces, TOOLS) == whole
        assert read(dialect, raw, TOOLS) == whole


@given(plain)
def test_text_without_markup_is_passed_unchanged(text: str) -> None:
    for dialect in DIALECTS.values():
        found = read(dialect, [text], TOOLS)
        assert (found.text, found.calls) == (text, ())


@pytest.mark.parametrize("name", DIALECTS)
def test_prose_is_shown_as_it_comes(name: str) -> None:
    reader = DIALECTS[name].make_reader(TOOLS)
    prose = (
        "Well, the answer is 42, since [1] a < b and {x} holds; see `code` and (that).\nMore follows here. "
        * 5
    )
    shown = ""
    for position, letter in enumerate(prose, start=1):
        shown += "".join(item.text for item in reader.feed(letter) if isinstance(item, TextDelta))
        assert position - len(shown) <= 16


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
# Elements have no escapes, so their values are texts that cannot be taken for markup.
texts = st.text("abc xyz,.{}[]()'äé1", max_size=20).map(str.strip)


def _declared(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    properties = {name: {"type": "string"} for name in arguments}
    return [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]


@pytest.mark.parametrize("name", TEXT_DIALECTS)
@given(data=st.data())
def test_what_a_dialect_renders_it_reads_back(name: str, data: st.DataObject) -> None:
    values = texts if name in ("qwen3_coder", "deepseek") else json_values
    calls = data.draw(st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=3))
    wire = [
        {"id": str(i), "function": {"name": "f", "arguments": json.dumps(c)}} for i, c in enumerate(calls)
    ]
    history = [{"role": "assistant", "content": "One moment.", "tool_calls": wire}]
    tools = _declared({key: None for call in calls for key in call})

    rendered = DIALECTS[name].render(history, tools)
    found = read(DIALECTS[name], [str(rendered.messages[-1]["content"])], tools)

    assert found.parsed == [{"name": "f", "arguments": call} for call in calls]
    assert found.text.strip() == "One moment."


FLOODS = [
    ("pythonic", "[" * 60_000),
    ("llama3", "{" * 60_000),
    ("hermes", "<tool_call>{" * 5_000),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "' + "x" * 60_000),
    ("chatglm3", "f\n" * 30_000),
    ("hermes", "<tool_call>" + " " * 60_000),
    ("chatglm3", "f\n```python\ntool_call(a=" + "(" * 60_000),
    ("chatglm3", "f\n```python\n" + "tool_call(x```" * 5_000),
    ("pythonic", "[f(a='" + "' " * 30_000),
    ("deepseek", '<｜DSML｜invoke name="' * 4_000),
    ("prompted", '{"functionCall": {"name": ' * 3_000),
    ("glm4", "<tool_call>f" + "<arg_key>a</arg_key><arg_value>b</arg_value>" * 1_500),
]


@pytest.mark.parametrize(("name", "flood"), FLOODS, ids=range(len(FLOODS)))
def test_a_flood_of_markup_is_neither_recursed_into_nor_read_again_and_again(name: str, flood: str) -> None:
    # A reader that looked at everything again with each piece would meet the time limit.
    pieces = [flood[start : start + 3] for start in range(0, len(flood), 3)]
    for dialect in (DIALECTS[name], DIALECTS["native"]):
        assert len(read(dialect, pieces, TOOLS).text) <= len(flood)
