"""Arguments for a tool, found in a question by the type and the name of each parameter."""

import functools
import re
import zoneinfo
from collections.abc import Mapping
from typing import Final

from beckon_demo.conversation import OfferedTool, Parameter, read_parameters, words

_OPERAND = r"(?:[-(]\s*)*(?:(?:sqrt|abs|log2?|ln|exp|sin|cos|tan)\s*\(\s*[-(]*\s*)?\d+(?:\.\d+)?[)!]*"
ARITHMETIC: Final = re.compile(
    rf"{_OPERAND}(?:\s*(?:%\s*of\b|%\s*[-+]|\*\*|[-+*/^×÷])\s*{_OPERAND})+%?|sqrt\s*\(\s*\d[\d.]*\s*\)",
    re.IGNORECASE,
)
"""A sum as people write it: `17% of 2340`, `2+2`, `(3.5 + 4) * 2^10`."""

DATE: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?\b|\b(?:today|tomorrow|yesterday)\b"
)
_SQL = re.compile(r"\bSELECT\s.+\sFROM\s.+[^\s?.`]", re.IGNORECASE | re.DOTALL)
_DIGITS: Final = r"-?\d{1,15}(?:\.\d{1,15})?"
_NUMBER = re.compile(rf"(?<![\w.]){_DIGITS}(?!\w)")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)")
_PLACES: Final = (
    re.compile(r"\b(?:in|at|near|for|from|of)\s+([A-Z][\w'’.-]*(?:,?\s+[A-Z][\w'’.-]*)*)"),
    re.compile(r"^([A-Z][\w'’-]*(?:[ ,]+[A-Z][\w'’-]*)*)(?=[?.!]*$)"),
    re.compile(r"\b(?:in|at|near)\s+([\w'’-]+(?:\s+[\w'’-]+)?)\s*[?.!]*$"),
    re.compile(r"(?<!^)(?<![.?!]\s)\b([A-Z][\w'’-]+(?:,?\s+[A-Z][\w'’-]+)*)"),
)
_ZONE = re.compile(r"\b(?:[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?|UTC(?:[+-]\d{1,2})?|GMT)\b")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAME = re.compile(r"\b[A-Z]\w+")
_TICKER = re.compile(r"\b(?:[A-Z]{2,5}(?:\.[A-Z]{1,3})?|\d{3,6})\b")
_SPEECH = re.compile(
    r"^.*?\b(?:say|speak|read(?: aloud| out)?|pronounce|translate|send|write|convert|turn)\b[:,]?\s+"
    r"(?:the (?:text|words?)\s+)?(.+?)"
    r"(?:\s+(?:in|into|to|as|with|using)\s+(?:a\s+|an\s+)?(?:\w+\s+)?(?:speech|audio|voice))?$",
    re.IGNORECASE | re.DOTALL,
)
_NO = re.compile(r"\b(?:no|not|without|never|don't)\b", re.IGNORECASE)
_FREE_TEXT: Final = (
    "question",
    "query",
    "prompt",
    "request",
    "input",
    "search",
    "sql",
    "instruction",
    "task",
)
_MAX_DEPTH: Final = 4
_MESSAGE: Final = ("text", "message", "content", "sentence", "speech", "body", "title", "words")
_PLACE_NAMES: Final = ("city", "location", "place", "town", "country", "address", "region", "destination")


def find_arguments(tool: OfferedTool, text: str, question: str) -> dict[str, object]:
    """Return arguments for `tool` from `text`, its part of the question.

    A value missing in this part is looked for in the whole question. If it is missing there as well, it is
    left out, unless the tool requires it: then the first choice, a part of the text or an empty value is
    given, for the tool to refuse.
    """
    arguments: dict[str, object] = {}
    numbers = [_read_number(one) for one in _NUMBER.findall(DATE.sub(" ", text))]
    for parameter in tool.parameters:
        if parameter.choices:
            value = _find_choice(parameter.choices, text) or _find_choice(parameter.choices, question)
        else:
            value = _find_value(parameter, _without_choices(tool, text), numbers)
            if value is None:
                value = _find_value(parameter, _without_choices(tool, question), [])
        if value is None and parameter.required:
            value = _default_value(parameter, text)
        if value is not None:
            arguments[parameter.name] = value
    return arguments


def has_value_for(tool: OfferedTool, text: str) -> bool:
    """Return True if a text has a typical value, such as a place, for a string of the tool."""
    strings = (one for one in tool.parameters if one.type == "string" and not one.choices)
    return any(_find_string(one, _without_choices(tool, text)) is not None for one in strings)


def _without_choices(tool: OfferedTool, text: str) -> str:
    """Remove the choice of an enum value, such as "in fahrenheit", which another parameter might take."""
    choices = [re.escape(str(choice)) for parameter in tool.parameters for choice in parameter.choices]
    pattern = rf"\s*\b(?:in|as|with)\s+(?:{'|'.join(choices)})\b"
    return re.sub(pattern, "", text, flags=re.IGNORECASE) if choices else text


def _find_choice(choices: list[object], text: str) -> object:
    return next((choice for choice in choices if set(words(str(choice))) & set(words(text))), None)


def _find_value(parameter: Parameter, text: str, numbers: list[int | float]) -> object:
    match parameter.type:
        case "boolean":
            return _NO.search(text) is None if parameter.named(*words(text)) else None
        case "integer" | "number":
            return _find_number(parameter, text, numbers)
        case "array":
            return _find_items(parameter, text)
        case "string":
            return _find_string(parameter, text)
    return None


def _find_number(parameter: Parameter, text: str, numbers: list[int | float]) -> object:
    """Return the number beside the parameter's name; a required parameter takes the next one left."""
    for word in words(parameter.name):
        after, before = rf"\b{word}\w*\W{{1,3}}({_DIGITS})", rf"({_DIGITS})\W{{1,2}}{word}"
        if beside := re.search(f"{after}|{before}", text, re.IGNORECASE):
            number = float(beside[1] or beside[2])
            numbers[:] = [one for one in numbers if one != number]
            return int(number) if parameter.type == "integer" or number.is_integer() else number
    if not parameter.required or not numbers:
        return None
    number = numbers.pop(0)
    return int(number) if parameter.type == "integer" else number


def _read_number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _find_items(parameter: Parameter, text: str) -> object:
    items = parameter.schema.get("items")
    if isinstance(items, Mapping) and items.get("type") in ("integer", "number"):
        return [_read_number(one) for one in _NUMBER.findall(text)] or None
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    if quoted or not parameter.required:
        return quoted or None
    return [one.strip() for one in _find_text(parameter, text).split(",") if one.strip()]


def _find_string(parameter: Parameter, text: str) -> str | None:
    """Return a value of the kind that the parameter's name and description say."""
    if parameter.hints & {"timezone", "zone", "tz"}:
        return _find_zone(text)
    if parameter.named("expression", "formula", "calculation", "equation", "arithmetic"):
        return _first(ARITHMETIC, text)
    if parameter.named("sql", "query") and _SQL.search(text):
        return _first(_SQL, text)
    if parameter.named(*_FREE_TEXT, *_MESSAGE):
        return None
    if parameter.hints & {"ticker", "stock"}:
        return _first(_TICKER, text)
    if parameter.named(*_PLACE_NAMES, "where") or "city" in parameter.hints:
        return _find_place(text)
    if parameter.named("date", "day", "when") or parameter.schema.get("format") in ("date", "date-time"):
        return _first(DATE, text)
    return _find_named(parameter, text)


def _find_named(parameter: Parameter, text: str) -> str | None:
    """Return an address, a value beside the parameter's name, or one of its description's examples."""
    if parameter.hints & {"email", "mail"}:
        return _first(_EMAIL, text)
    name = r"\W".join(words(parameter.name)) or re.escape(parameter.name)
    pair = re.search(rf"\b{name}\b\s*(?:is|=|:|as)\s*[\"']?([\w.@+/-]+)", text, re.IGNORECASE)
    examples = parameter.hints - set(words(parameter.name))
    return pair[1] if pair else next((one for one in _NAME.findall(text) if one.lower() in examples), None)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match.group().strip() if match else None


def _find_text(parameter: Parameter, text: str) -> str:
    """Return the text for a free-text parameter."""
    if parameter.named(*_FREE_TEXT):
        return text
    if quoted := _QUOTED.search(text):
        return str(next(filter(None, quoted.groups())))
    speech = _SPEECH.match(text.strip().rstrip("?")) if parameter.named(*_MESSAGE) else None
    return speech[1] if speech else text


def _default_value(parameter: Parameter, text: str, depth: int = 0) -> object:
    """Return a value of the parameter's type; an object has its required members, to a limit."""
    if parameter.choices:
        return parameter.choices[0]
    least = parameter.schema.get("minimum", 0)
    empty = {"boolean": False, "array": [], "integer": least, "number": least}
    if parameter.type == "object":
        members = read_parameters(parameter.schema) if depth < _MAX_DEPTH else ()
        return {one.name: _default_value(one, text, depth + 1) for one in members if one.required}
    return empty[parameter.type] if parameter.type in empty else _find_text(parameter, text)


def _find_place(text: str) -> str | None:
    match = next(filter(None, (pattern.search(text) for pattern in _PLACES)), None)
    return match[1].rstrip(" .,?!'") if match else None


def _find_zone(text: str) -> str | None:
    """Return the time zone named in a text, a city's, or a place without one as it is."""
    if match := _ZONE.search(text):
        return match.group()
    place = _find_place(text)
    return place and _zones().get(place.partition(",")[0].replace(" ", "_").lower(), place)


@functools.cache
def _zones() -> Mapping[str, str]:
    """The time zones of this machine by the city in their name."""
    zones = (zone for zone in sorted(zoneinfo.available_timezones()) if "/" in zone)
    return {zone.rpartition("/")[2].lower(): zone for zone in zones}
