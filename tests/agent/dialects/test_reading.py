"""How readers treat what models really write: damage, half calls, text around calls, look-alikes.

Covered: raw markup of native servers, ambiguous formats and known names, keyword arguments,
tuples, types by schema, unfinished markup, blanks around calls, ids.
"""

import json

import pytest

from beckon_agent.core.model_types import ToolCall, call_id
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.registry import DIALECTS
from tests.agent.dialects.reading import declare, read

WEATHER = declare("get_weather")
CITY = {"city": "Paris"}


@pytest.mark.parametrize(
    "raw",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        '<｜DSML｜function_calls><｜DSML｜invoke name="get_weather">'
        '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter></｜DSML｜invoke>',
        "get_weather\n```python\ntool_call(city='Paris')\n```",
        'get_weather\n{"city": "Paris"}',
        '{"name": "get_weather", "parameters": {"city": "Paris"}}',
        "[get_weather(city='Paris')]",
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]',
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}',
        '<|open|>toolscall tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"'
        "<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|>",
    ],
)
def test_raw_markup_in_the_text_of_a_native_server_is_a_call(raw: str) -> None:
    found = read(DIALECTS["native"], raw, WEATHER)

    assert found.parsed == [{"name": "get_weather", "arguments": CITY}]
    assert found.text == ""


@pytest.mark.parametrize(
    "raw",
    [
        '{"name": "Ada", "parameters": {"city": "Paris"}}',
        'Ada\n{"city": "Paris"}',
        "[greet(name='Ada')]",
        '[{"name": "Ada", "arguments": {}}]',
        '```json\n{"name": "Ada", "arguments": {}}\n```',
        '{"name": "get_weather"}',
        "[link](https://example.org) and [get_weather](x) and [get_weather('Paris')]",
        "Use <tool_call> to call tools, {braces} and ```python\nprint(1)\n``` as you like.",
        "get_weather",
        "get_weather\n```python\nprint(1)\n```",
    ],
)
def test_what_only_looks_like_a_call_stays_text_of_a_native_server(raw: str) -> None:
    found = read(DIALECTS["native"], raw, WEATHER)

    assert (found.text, found.calls) == (raw, ())


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("class='x', from=1, import=None", {"class": "x", "from": 1, "import": None}),
        (
            "range=(0, 100), one=(1,), none=(), same=(1)",
            {"range": [0, 100], "one": [1], "none": [], "same": 1},
        ),
        ("a=true, b=False, c=null", {"a": True, "b": False, "c": None}),
        ("a={'k': [1.5, -2]}, b={1, 2}", {"a": {"k": [1.5, -2]}, "b": [1, 2]}),
        (r"a='it\'s', b=" + '"é\\n"', {"a": "it's", "b": "é\n"}),
        ("a='it's done'", {"a": "it's done"}),
        ("a='''two\nlines'''", {"a": "two\nlines"}),
        ("a='', b=''", {"a": "", "b": ""}),
        ("code=007", {"code": "007"}),
        (r"path='C:\dir'", {"path": r"C:\dir"}),
        ("**{'class': 'x'}", {"class": "x"}),
        ("", {}),
    ],
)
def test_python_arguments_are_read_and_never_evaluated(code: str, arguments: dict[str, object]) -> None:
    found = read(DIALECTS["chatglm3"], f"f\n```python\ntool_call({code})\n```")

    assert found.parsed == [{"name": "f", "arguments": arguments}]


@pytest.mark.parametrize(
    "code", ["open('/etc/passwd')", "a=__import__('os').getcwd()", "a=1+", "a=[x for x in y]"]
)
def test_arguments_that_are_no_literals_go_on_as_text_so_that_the_model_sees_it(code: str) -> None:
    found = read(DIALECTS["chatglm3"], f"f\n```python\ntool_call({code})\n```\ndone")

    assert found.calls == (("f", code),)
    assert found.text == "done"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "8080", "8080"),
        ({"type": "integer"}, "8080", 8080),
        ({"type": ["string", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "8080", "8080"),
        ({"type": ["string", "integer"]}, "8080", 8080),
        ({"type": "boolean"}, "True", True),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"$ref": "#/$defs/text"}, "1", "1"),
        ({"type": "integer"}, "eight", "eight"),
        ({}, "8080", 8080),
        ({}, "plain", "plain"),
    ],
)
def test_the_value_of_an_element_has_the_type_that_the_schema_wants(
    schema: dict[str, object], text: str, value: object
) -> None:
    parameters = {"properties": {"p": schema}, "$defs": {"text": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    found = read(
        DIALECTS["qwen3_coder"],
        f"<tool_call><function=f><parameter=p>\n{text}\n</parameter></function></tool_call>",
        tools,
    )

    assert found.parsed == [{"name": "f", "arguments": {"p": value}}]


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1'),
        ("chatglm3", "f\n```python\ntool_call(a='x"),
        ("mistral", '[TOOL_CALLS][{"name": "f", "arg'),
        ("prompted", '{"functionCall": {"name": "f"'),
        ("deepseek", '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true">x'),
        ("qwen3_coder", "<tool_call><function=f><parameter=a>x</parameter>"),
        ("glm4", "<tool_call>f<arg_key>a</arg_key><arg_value>x"),
    ],
)
def test_half_a_call_is_not_made_and_shown_as_the_text_that_it_is(name: str, raw: str) -> None:
    found = read(DIALECTS[name], f"Wait.\n{raw}")

    assert (found.text, found.calls) == (f"Wait.\n{raw}", ())


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("hermes", "<tool_call><function=f>junk</function></tool_call>"),
        ("qwen3_coder", "<tool_call><function>x</function></tool_call>"),
        ("glm4", "<tool_call>f<arg_key>a</arg_key>junk</tool_call>"),
        ("deepseek", '<｜DSML｜invoke name="f">junk</｜DSML｜invoke>'),
        ("mistral", '[TOOL_CALLS][{"name": 1}]'),
        ("prompted", '{"functionCall": "f"}'),
    ],
)
def test_damaged_markup_is_shown_whole(name: str, raw: str) -> None:
    found = read(DIALECTS[name], f"Wait.\n{raw}\nOn.")

    assert (found.text, found.calls) == (f"Wait.\n{raw}\nOn.", ())


@pytest.mark.parametrize("name", ["llama3", "qwen3_coder", "native"])
def test_an_opener_that_is_only_mentioned_hides_nothing(name: str) -> None:
    raw = 'Write <function= or <function=f> or <tool_call> here, and <invoke name="x" to call.'

    assert read(DIALECTS[name], raw, WEATHER).text == raw


def test_damaged_arguments_go_on_as_they_are_for_repair() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"a": 5 tall}}</tool_call> ok'
    found = read(DIALECTS["hermes"], raw)

    assert found.calls == (("f", '{"a": 5 tall}'),)
    assert found.text == " ok"


def test_a_quote_that_was_not_escaped_belongs_to_its_string() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"a": "5" tall"}}</tool_call>'

    assert read(DIALECTS["hermes"], raw).parsed == [{"name": "f", "arguments": {"a": '5" tall'}}]


def test_arguments_in_pythons_spelling_are_understood() -> None:
    raw = "{\"functionCall\": {'name': 'f', 'args': {'a': True, 'b': None,},}}"

    assert read(DIALECTS["prompted"], raw).parsed == [{"name": "f", "arguments": {"a": True, "b": None}}]


@pytest.mark.parametrize(
    "raw",
    [
        '{"functionCall": {"name": "f", "args": {"a": 1}}}\n{"functionCall": {"name": "g", "args": {}}}',
        '[{"functionCall": {"name": "f", "args": {"a": 1}}}, {"functionCall": {"name": "g", "args": {}}}]',
        '```json\n[{"functionCall": {"name": "f", "args": {"a": 1}}},\n'
        '{"functionCall": {"name": "g", "args": {}}}]\n```',
    ],
)
def test_several_prompted_calls_stand_one_after_the_other_or_in_a_list(raw: str) -> None:
    found = read(DIALECTS["prompted"], raw)

    assert found.calls == (("f", '{"a": 1}'), ("g", "{}"))
    assert found.text == ""


def test_arguments_encoded_twice_are_handed_on_decoded_once() -> None:
    raw = '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>'

    assert read(DIALECTS["hermes"], raw).calls == (("f", '{"a": 1}'),)


def test_a_closing_tag_within_a_string_does_not_end_a_call() -> None:
    arguments = {"text": "about </tool_call> and }"}
    raw = f"<tool_call>{json.dumps({'name': 'f', 'arguments': arguments})}</tool_call>"

    assert read(DIALECTS["hermes"], raw).parsed == [{"name": "f", "arguments": arguments}]


def test_blanks_between_calls_are_not_shown_and_blanks_in_a_text_are() -> None:
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'

    assert read(DIALECTS["hermes"], f"\n\n{call}\n\n{call}\n").text == ""
    assert read(DIALECTS["hermes"], f"\n a\n\n{call}\n b \n").text == "\n a\n\n\n b \n"
    assert read(DIALECTS["hermes"], "\n \n").text == "\n \n"


def test_a_call_is_handed_out_as_soon_as_it_is_whole() -> None:
    reader = DIALECTS["hermes"].make_reader(WEATHER, lambda: "id0000000")

    assert reader.feed('Yes. <tool_call>{"name": "get_weather", "arguments": {}}</tool_') == [
        TextDelta("Yes. ")
    ]
    assert reader.feed("call>") == [ToolCall("id0000000", "get_weather", "{}", origin="dialect")]
    assert reader.finish() == []


def test_an_unpaired_surrogate_in_arguments_stays_text_that_can_be_sent() -> None:
    found = read(DIALECTS["hermes"], '<tool_call>{"name": "f", "arguments": {"a": "\\ud800"}}</tool_call>')

    assert found.calls[0][1].encode()


def test_ids_are_nine_letters_and_digits_and_differ() -> None:
    ids = {call_id() for _ in range(1000)}

    assert len(ids) == 1000
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in ids)
