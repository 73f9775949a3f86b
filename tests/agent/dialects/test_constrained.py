"""The constrained form of the prompted dialect: its schema, its prompt, and the reading of its answers."""

from typing import Any

import jsonschema
import pytest

from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.constrained import CONSTRAINED, answer_format, example_arguments
from tests.agent.dialects.reading import declare, read

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}},
        }
    },
}
LIST = {
    "type": "object",
    "properties": {"of": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": "array"}},
}
TOOLS = [
    {"type": "function", "function": {"name": "tree", "parameters": TREE}},
    {"type": "function", "function": {"name": "list", "parameters": LIST}},
    {"type": "function", "function": {"name": "now"}},
]


def accepts(value: object, choice: object = None) -> bool:
    schema = answer_format(TOOLS, choice)["json_schema"]["schema"]
    return jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"answer": "Hello."}, True),
        ({"answer": 5}, False),
        ({"answer": "Hello.", "tool": "now"}, False),
        ({"tool": "now", "arguments": {}}, True),
        ({"tool": "now"}, False),
        ({"tool": "never", "arguments": {}}, False),
        ({"tool": "tree", "arguments": {"root": {"next": {"value": 1}}}}, True),
        ({"tool": "tree", "arguments": {"root": {"next": {"value": "one"}}}}, False),
        ({"tool": "list", "arguments": {"of": []}}, True),
        ({"tool": "list", "arguments": {"of": {"value": 1}}}, False),
        ("Hello.", False),
    ],
)
def test_the_schema_takes_an_answer_or_a_valid_call_of_one_tool(value: object, valid: bool) -> None:
    assert accepts(value) is valid


@pytest.mark.parametrize(
    ("choice", "tools", "answers"),
    [
        ("auto", True, True),
        ("required", True, False),
        ("none", False, True),
        ({"type": "function", "function": {"name": "list"}}, False, False),
    ],
)
def test_the_choice_of_the_request_narrows_the_schema(choice: object, tools: bool, answers: bool) -> None:
    assert accepts({"tool": "now", "arguments": {}}, choice) is tools
    assert accepts({"tool": "list", "arguments": {"of": []}}, choice) is (choice != "none")
    assert accepts({"answer": "Hello."}, choice) is answers


def test_the_text_of_an_answer_comes_out_as_it_arrives() -> None:
    reader = CONSTRAINED.make_reader(declare("now"))
    pieces = ['{"answ', 'er": "One', " tw", "o \\u00e9 \\ud83d", '\\ude00 \\"three\\"', '"}']

    shown = [reader.feed(piece) for piece in pieces]

    texts = [[item.text for item in items if isinstance(item, TextDelta)] for items in shown]
    assert texts == [[], ["One"], [" tw"], ["o é "], ['😀 "three"'], []]
    assert reader.finish() == []


@pytest.mark.parametrize(
    ("raw", "text", "calls"),
    [
        ('{"tool": "now", "arguments": {"a": 1}}', "", (("now", '{"a": 1}'),)),
        (' {"tool": "now", "arguments": {}}\n', "", (("now", "{}"),)),
        ('{"answer": "cut o', "cut o", ()),
        ('{"answer": "two\nlines"}', "two\nlines", ()),
        (
            '{"answer": "{\\"tool\\": \\"now\\", \\"arguments\\": {}}"}',
            '{"tool": "now", "arguments": {}}',
            (),
        ),
        ('{"answer": "x", "tool": "now", "arguments": {}}', "x", ()),
        # Of a server that ignores the schema.
        ("Hello.", "Hello.", ()),
        ('{"tool": "now", "argum', '{"tool": "now", "argum', ()),
        ('{"tool": "now", "arguments": {}} or so', '{"tool": "now", "arguments": {}} or so', ()),
        ('{"answer": 5}', '{"answer": 5}', ()),
        ('{"functionCall": {"name": "now", "args": {}}}', "", (("now", "{}"),)),
        ('{"answer": "\\ud83d!"}', "\ufffd!", ()),
    ],
)
@pytest.mark.parametrize("size", [1, 1000], ids=["letter by letter", "at once"])
def test_an_object_is_an_answer_or_a_call_and_all_else_is_text(
    raw: str, text: str, calls: tuple[tuple[str, str], ...], size: int
) -> None:
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]

    found = read(CONSTRAINED, pieces, declare("now"))

    assert (found.text, found.calls) == (text, calls)


def test_a_refused_call_stays_text() -> None:
    raw = '{"tool": "now", "arguments": {}}'
    reader = CONSTRAINED.make_reader(declare("now"), allows=lambda calls, markup: False)

    assert [*reader.feed(raw), *reader.finish()] == [TextDelta(raw)]


def test_where_the_server_gave_calls_of_its_own_the_text_holds_none() -> None:
    reader = CONSTRAINED.make_reader(declare("now"))
    reader.feed('{"tool": "now", "arguments": {}}')

    assert not [item for item in reader.finish(called=True) if isinstance(item, ToolCall)]


def test_the_history_is_written_in_the_form_of_the_answers() -> None:
    call = {"id": "1", "function": {"name": "now", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "The time?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"time": "ten"}'},
    ]

    rendered = CONSTRAINED.render(history, TOOLS)

    assert [message["content"] for message in rendered.messages[2:]] == [
        '{"answer": "Hello."}',
        "The time?",
        '{"tool": "now", "arguments": {}}',
        'Result of now:\n{"time": "ten"}',
    ]
    assert rendered.tools == ()


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({}, {}),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]}, {"b": 1}),
        ({"properties": {"a": {"type": "string"}, "b": {}}}, {"a": "…"}),
        ({"properties": {"a": {"type": ["number", "null"]}}}, {"a": 1}),
        ({"properties": {"a": {"enum": ["x", "y"]}}}, {"a": "x"}),
        ({"properties": {"a": {"type": "string", "examples": ["Oslo"]}}}, {"a": "Oslo"}),
        ({"properties": {"a": {"type": "array", "items": {"type": "boolean"}}}}, {"a": [True]}),
        (
            {"properties": {"a": {"type": "object", "properties": {"c": {"const": 2}}}}},
            {"a": {"c": 2}},
        ),
    ],
)
def test_an_example_has_the_required_parameters_or_the_first(
    schema: dict[str, Any], example: dict[str, Any]
) -> None:
    assert example_arguments(schema) == example


@pytest.mark.parametrize(
    "raw", ['{"answer": "a \ud800 b"}', '{"answer": "a \ud800', '{"answer": "\ud83d\ude00!"}']
)
def test_halves_of_characters_are_read_the_same_in_any_pieces(raw: str) -> None:
    whole = read(CONSTRAINED, [raw], declare("now"))

    assert read(CONSTRAINED, raw, declare("now")) == whole
    assert "\ud800" not in whole.text
    assert ("\U0001f600!" in whole.text) == ("!" in raw)
