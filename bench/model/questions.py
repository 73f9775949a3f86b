"""Fifty questions over the example tools: the right tool of each, and what its arguments have to hold."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from beckon_agent.core import json_values


@dataclass(frozen=True)
class Question:
    """A question, its tool, and a pattern for each argument that it determines."""

    text: str
    tool: str
    arguments: Mapping[str, str]

    def has_right_arguments(self, arguments: str) -> bool:
        """True if each determined argument of a call is there and fits."""
        given = json_values.as_mapping(json.loads(arguments))
        return all(
            re.search(pattern, str(given.get(name, "")), re.IGNORECASE) is not None
            for name, pattern in self.arguments.items()
        )


def _questions(tool: str, *rows: tuple[str, Mapping[str, str]]) -> list[Question]:
    return [Question(text, tool, arguments) for text, arguments in rows]


QUESTIONS = [
    *_questions(
        "calculator",
        ("What is 17% of 2340?", {"expression": r"17 ?%.*2340|0?\.17 ?\* ?2340|2340 ?\* ?0?\.17"}),
        ("What is 12 times 34?", {"expression": r"12 ?\* ?34|34 ?\* ?12"}),
        ("Calculate 1250 divided by 8.", {"expression": r"1250 ?/ ?8"}),
        ("What is the square root of 1764?", {"expression": r"sqrt\(1764\)|1764 ?\^ ?\(?(0?\.5|1 ?/ ?2)"}),
        ("How much is 45 plus 389?", {"expression": r"45 ?\+ ?389|389 ?\+ ?45"}),
        ("What is 2 to the power of 20?", {"expression": r"2 ?(\^|\*\*) ?20"}),
        ("Subtract 187 from 1000.", {"expression": r"1000 ?- ?187"}),
        ("What is 5% of 80?", {"expression": r"5 ?%.*80|0?\.05 ?\* ?80|80 ?\* ?0?\.05"}),
        ("Compute (3.5 + 4) * 2.", {"expression": r"\(3\.5 ?\+ ?4\) ?\* ?2"}),
    ),
    *_questions(
        "current_time",
        ("What time is it in Tokyo?", {"timezone": "Tokyo"}),
        ("What is the current time in Berlin?", {"timezone": "Berlin"}),
        ("Tell me the time in New York.", {"timezone": "New.York"}),
        ("What day of the week is it in London now?", {"timezone": "London"}),
        ("What is today's date in Sydney?", {"timezone": "Sydney"}),
        ("How late is it in Paris?", {"timezone": "Paris"}),
        ("What time is it in UTC+2?", {"timezone": r"UTC\+2"}),
    ),
    *_questions(
        "get_current_weather",
        ("What is the weather in San Francisco?", {"location": "San Francisco"}),
        ("How is the weather in Berlin today?", {"location": "Berlin"}),
        ("Is it raining in London?", {"location": "London"}),
        ("What is the temperature in Madrid in celsius?", {"location": "Madrid", "unit": "celsius"}),
        ("How warm is it in Boston in fahrenheit?", {"location": "Boston", "unit": "fahrenheit"}),
        ("Get the weather in Oslo, Norway.", {"location": "Oslo"}),
        ("Do I need an umbrella in Seattle?", {"location": "Seattle"}),
        ("Tell me the current weather in Rome.", {"location": "Rome"}),
    ),
    *_questions(
        "find_books",
        ("Find books about physics.", {"subject": "physics"}),
        ("Which books on chemistry does the library have?", {"subject": "chemistry"}),
        ("Find books by the author Darwin.", {"author": "Darwin"}),
        ("Are there books of Newton in the library?", {"author": "Newton"}),
        ("Find a book about biology.", {"subject": "biology"}),
        ("Search the library for books about astronomy.", {"subject": "astronomy"}),
    ),
    *_questions(
        "reserve_book",
        ("Reserve the book 3 for Ann.", {"id": "^3$", "reader": "Ann"}),
        ("Please reserve book number 7 for Bob.", {"id": "^7$", "reader": "Bob"}),
        ("Reserve the book with the id 12 for Maria.", {"id": "^12$", "reader": "Maria"}),
        ("Ann wants book 5. Reserve it for her.", {"id": "^5$", "reader": "Ann"}),
        ("Put book 2 aside for the reader Tom.", {"id": "^2$", "reader": "Tom"}),
    ),
    *_questions(
        "sql",
        ("Run SELECT name FROM elements LIMIT 3", {"query": "SELECT name FROM elements LIMIT 3"}),
        ("Query the database: SELECT symbol FROM elements", {"query": "SELECT symbol FROM elements"}),
        ("How many chemical elements are in the database?", {"query": r"SELECT.*COUNT.*FROM elements"}),
        ("List the names of all chemical elements by SQL.", {"query": r"SELECT.*name.*FROM elements"}),
        ("Which chemical element has the highest density?", {"query": r"SELECT.*FROM elements.*density"}),
    ),
    *_questions(
        "text_to_speech",
        ("Say hello world aloud.", {"text": "hello world"}),
        ("Convert the text good morning to speech.", {"text": "good morning"}),
        ("Read this aloud: the train is late.", {"text": "the train is late"}),
        ("Speak the words welcome home.", {"text": "welcome home"}),
        ("Make a sound file that says thank you.", {"text": "thank you"}),
    ),
    *_questions(
        "track",
        ("What is the price of the AAPL stock?", {"symbol": "AAPL"}),
        ("Track the stock MSFT.", {"symbol": "MSFT"}),
        ("What is the latest quote of SAP.DE?", {"symbol": r"SAP\.DE"}),
        ("How is the stock of NVDA today?", {"symbol": "NVDA"}),
        ("Get me the day range of the TSLA stock.", {"symbol": "TSLA"}),
    ),
]
