"""What the demo model makes of questions: tools by words, arguments by type and hint.

Covered: the questions that the documentation shows, parts of a question, every type of
parameter, tools that no one shipped, questions that nothing fits.
"""

import re
from pathlib import Path
from typing import Any

import pytest

import beckon_demo
from beckon_demo.conversation import Conversation, Result, read_tools
from beckon_demo.reply import Rules, reply


def _tool(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TEXT = {"type": "string"}
SHIPPED = [
    _tool(
        "calculator",
        "Calculate an arithmetic expression exactly: sums, percentages.",
        ("expression",),
        expression=TEXT,
    ),
    _tool(
        "current_time",
        "Tell the current date, time and weekday in a time zone or a city.",
        timezone={
            "type": "string",
            "default": "UTC",
            "description": 'An IANA time zone, or a city that names one ("Oslo")',
        },
    ),
    _tool(
        "get_current_weather",
        "Get the current weather in a given location.",
        ("location",),
        location={"type": "string", "description": "The city and state or country, e.g. San Francisco, CA"},
        unit={"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
    ),
    _tool(
        "sql",
        "Query a database of the chemical elements in SQL. Table elements (number, name, melting_point_k).",
        ("query",),
        query={"type": "string", "description": "One SELECT in SQLite's dialect"},
    ),
    _tool(
        "text_to_speech",
        "Convert text to speech; the answer is a WAV sound.",
        ("text",),
        text={"type": "string", "description": "The text to speak"},
        voice={"type": "string", "default": "male"},
        speed={"enum": ["slow", "medium", "fast"], "description": "How fast to speak"},
    ),
    _tool(
        "track",
        "Track the latest price of a stock by its symbol.",
        ("symbol",),
        symbol={"description": "The ticker symbol: AAPL, SAP.DE"},
    ),
]


def _calls(
    question: str, tools: list[dict[str, Any]], rules: Rules | None = None
) -> list[tuple[str, dict[str, object]]]:
    request = Conversation(question, tuple(read_tools(tools)), (), "native")
    return [(call.name, call.arguments) for call in reply(request, rules or Rules(), "seed").calls]


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("What is 17% of 2340?", [("calculator", {"expression": "17% of 2340"})]),
        ("How much is 12 times 12?", [("calculator", {"expression": "12 * 12"})]),
        ("What is the square root of 144?", [("calculator", {"expression": "sqrt(144)"})]),
        ("What time is it in Tokyo?", [("current_time", {"timezone": "Asia/Tokyo"})]),
        ("What time is it?", [("current_time", {})]),
        ("What is the weather in Paris?", [("get_current_weather", {"location": "Paris"})]),
        ("what is the weather in paris", [("get_current_weather", {"location": "paris"})]),
        (
            "Run SELECT name FROM elements WHERE number > 3 AND number < 9; please",
            [("sql", {"query": "SELECT name FROM elements WHERE number > 3 AND number < 9; please"})],
        ),
        (
            "What has the database on `select name from elements limit 3`?",
            [("sql", {"query": "select name from elements limit 3"})],
        ),
        (
            "Query the database: which metal is it?",
            [("sql", {"query": "Query the database: which metal is it?"})],
        ),
        (
            "What is 2+2 and what time is it in Europe/Paris?",
            [("calculator", {"expression": "2+2"}), ("current_time", {"timezone": "Europe/Paris"})],
        ),
        (
            "What's the weather in New York and Rome in fahrenheit?",
            [
                ("get_current_weather", {"location": "New York", "unit": "fahrenheit"}),
                ("get_current_weather", {"location": "Rome", "unit": "fahrenheit"}),
            ],
        ),
        (
            "What is the time in Tokyo; and the weather there?",
            [("current_time", {"timezone": "Asia/Tokyo"}), ("get_current_weather", {"location": "Tokyo"})],
        ),
        ('Say "hello world" slow', [("text_to_speech", {"text": "hello world", "speed": "slow"})]),
        ("Read aloud: good morning", [("text_to_speech", {"text": "good morning"})]),
        ("Read aloud: bread and butter", [("text_to_speech", {"text": "bread and butter"})]),
        ("Track 10111", [("track", {"symbol": "10111"})]),
        (
            "What is the price of AAPL and MSFT?",
            [("track", {"symbol": "AAPL"}), ("track", {"symbol": "MSFT"})],
        ),
        ("Tell me a joke", []),
        ("Hello!", []),
        ("", []),
    ],
)
def test_the_questions_of_the_documentation_find_the_shipped_tools(
    question: str, calls: list[tuple[str, dict[str, object]]]
) -> None:
    assert _calls(question, SHIPPED) == calls


@pytest.mark.parametrize(
    ("schema", "question", "value"),
    [
        ({"type": "integer"}, "Book a table for 4", 4),
        ({"type": "number"}, "Book a table at 7.5", 7.5),
        ({"type": "integer"}, "Book a table, guests: 3, not 9", 3),
        ({"type": "boolean"}, "Book a table with guests", True),
        ({"type": "boolean"}, "Book a table without guests", False),
        ({"enum": ["few", "many"]}, "Book a table for many", "many"),
        ({"enum": ["few", "many"]}, "Book a table", "few"),
        ({"type": "array", "items": {"type": "string"}}, 'Book a table for "Ada" and "Bob"', ["Ada", "Bob"]),
        ({"type": "array", "items": {"type": "integer"}}, "Book a table for 1, 2", [1, 2]),
        ({"type": ["null", "string"]}, "Book a table, guests: Ada", "Ada"),
        ({"type": "string", "format": "date"}, "Book a table on 2026-11-20", "2026-11-20"),
        ({"type": "object"}, "Book a table", {}),
        ({}, "Book a table please", "Book a table please"),
    ],
)
def test_a_required_parameter_of_a_tool_never_seen_is_filled_by_its_type(
    schema: dict[str, Any], question: str, value: object
) -> None:
    tool = _tool("book_table", "Book a table.", ("guests",), guests=schema)

    assert _calls(question, [tool]) == [("book_table", {"guests": value})]


def test_an_optional_parameter_that_the_question_does_not_show_is_left_out() -> None:
    tool = _tool(
        "book_table", "Book a table.", guests={"type": "integer"}, note=TEXT, quiet={"type": "boolean"}
    )

    assert _calls("Book a table", [tool]) == [("book_table", {})]


def test_a_number_too_long_to_be_one_is_no_number() -> None:
    tool = _tool("book_table", "Book a table.", ("guests",), guests={"type": "integer"})

    assert _calls(f"Book a table for {'9' * 3000} or 5", [tool]) == [("book_table", {"guests": 5})]


def test_the_tool_choice_of_the_request_is_obeyed() -> None:
    both = "What is 2+2 and what time is it in Tokyo?"

    assert _calls(both, SHIPPED, Rules(calls=False)) == []
    assert len(_calls(both, SHIPPED, Rules(parallel=False))) == 1
    assert _calls("Hello", SHIPPED, Rules(required=True, allowed=frozenset(["track"])))[0][0] == "track"
    assert len(_calls("Hello", SHIPPED, Rules(required=True))) == 1
    assert _calls(both, SHIPPED, Rules(allowed=frozenset(["calculator"]))) == [
        ("calculator", {"expression": "2+2"})
    ]


HOROSCOPE = _tool(
    "get_horoscope",
    "Get today's horoscope for an astrological sign.",
    ("sign",),
    sign={"type": "string", "description": "An astrological sign like Taurus or Aquarius"},
)
WEATHER = _tool(
    "get_weather",
    "Get the current weather for a location",
    ("location", "units"),
    location={"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
    units={"type": ["string", "null"], "enum": ["celsius", "fahrenheit"]},
)
EMAIL = _tool(
    "send_email",
    "Send an email to a recipient.",
    ("to", "body"),
    to={"type": "string", "description": "The recipient's email address."},
    body=TEXT,
)


@pytest.mark.parametrize(
    ("function", "question", "arguments"),
    [
        (HOROSCOPE, "What is my horoscope? I am an Aquarius.", {"sign": "Aquarius"}),
        (
            WEATHER,
            "What's the weather like in San Francisco?",
            {"location": "San Francisco", "units": "celsius"},
        ),
        (EMAIL, 'Send an email to ada@example.com: "hi"', {"to": "ada@example.com", "body": "hi"}),
    ],
)
def test_a_function_of_the_client_goes_before_an_equal_tool(
    function: dict[str, Any], question: str, arguments: dict[str, object]
) -> None:
    assert _calls(question, [*SHIPPED, function]) == [(function["function"]["name"], arguments)]


def test_a_forced_function_gets_arguments_that_fit_its_schema() -> None:
    nested = {
        "type": "function",
        "function": {
            "name": "final_result",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"$ref": "#/$defs/City"},
                    "next": {"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}]},
                    "degrees": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]},
                },
                "required": ["city", "next", "degrees"],
                "$defs": {
                    "City": {
                        "type": "object",
                        "properties": {"warm": {"type": "boolean"}, "twin": {"$ref": "#/$defs/City"}},
                        "required": ["warm", "twin"],
                    }
                },
            },
        },
    }

    ((name, arguments),) = _calls("Hello", [nested], Rules(required=True))

    assert (name, arguments["degrees"]) == ("final_result", 1)
    assert isinstance(city := arguments["city"], dict)
    assert city["warm"] is False


def test_a_required_call_after_a_result_is_of_a_tool_without_one() -> None:
    tools = tuple(read_tools([WEATHER, HOROSCOPE]))
    request = Conversation("How is the weather in Rome?", tools, (Result("get_weather", "{}"),), "native")

    assert [call.name for call in reply(request, Rules(required=True), "").calls] == ["get_horoscope"]
    assert reply(request, Rules(), "").calls == ()


def test_ids_are_nine_letters_and_digits_and_the_same_for_the_same_request() -> None:
    request = Conversation(
        "What is 2+2 and what time is it in Tokyo?", tuple(read_tools(SHIPPED)), (), "native"
    )
    first, second = (reply(request, Rules(), "a").calls for _ in range(2))

    assert first == second
    assert len({call.id for call in first}) == 2
    assert all(len(call.id) == 9 and call.id.isalnum() for call in first)
    assert reply(request, Rules(), "b").calls[0].id != first[0].id


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"result": 397.8}', "f: 397.8"),
        ('{"city": "Oslo", "degrees": 3}', "f: city Oslo; degrees 3"),
        (
            '{"error": {"reason": "timeout", "message": "no answer in 5 s"}}',
            "f failed: timeout: no answer in 5 s",
        ),
        ('{"error": "broken"}', "f failed: broken"),
        ("[1, 2]", "f: [1, 2]"),
        ("plain text", "f: plain text"),
        ('"' + "x" * 1000 + '"', "f: " + "x" * 150 + "… (1000 characters)"),
        ("", "f: "),
    ],
)
def test_a_result_is_quoted_readably_and_a_failure_as_one(content: str, said: str) -> None:
    answered = Conversation("q", (), (Result("f", content),), "native")

    assert reply(answered, Rules(), "").text == f"[demo model] {said}"


def test_where_nothing_fits_it_says_what_it_is_and_what_it_can_do() -> None:
    text = reply(Conversation("Tell me a joke", tuple(read_tools(SHIPPED)), (), "native"), Rules(), "").text

    assert text.startswith("[demo model] ")
    assert "not a language model" in text
    assert all(tool["function"]["name"] in text for tool in SHIPPED)
    assert "no tools" in reply(Conversation("Hi", (), (), "native"), Rules(), "").text


def test_it_is_a_program_of_its_own_that_imports_nothing_of_the_agent() -> None:
    sources = [path.read_text("utf-8") for path in Path(beckon_demo.__path__[0]).glob("*.py")]
    imported = re.findall(r"^(?:from|import) (beckon_[\w.]+)", "\n".join(sources), re.MULTILINE)

    assert "beckon_demo.app" in imported
    allowed = ("beckon_demo.", "beckon_contract.", "beckon_runtime.")
    assert all(name.startswith(allowed) for name in imported)
