"""Arguments for a tool, found in a question.

They are found by the type of each parameter and the words around it.
"""

import functools
import re
import zoneinfo
from collections.abc import Mapping
from typing import Final

from beckon_demo.tools import Parameter, Tool
from beckon_demo.words import ARITHMETIC, DATE, words

_DIGITS: Final = r"-?\d{1,15}(?:\.\d{1,15})?"
_NUMBER = re.compile(rf"(?<![\w.]){_DIGITS}(?!\w)")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)")
_PLACE = re.compile(r"\b(?:in|at|near|for|from|of)\s+([A-Z][\w'’.-]*(?:,?\s+[A-Z][\w'’.-]*)*)")
_LOWER_PLACE = re.compile(r"\b(?:in|at|near)\s+([\w'’-]+(?:\s+[\w'’-]+)?)\s*[?.!]*$")
_CAPITALS = re.compile(r"(?<!^)(?<![.?!]\s)\b[A-Z][\w'’-]+(?:,?\s+[A-Z][\w'’-]+)*")
_ALONE = re.compile(r"^[A-Z][\w'’-]*(?:[ ,]+[A-Z][\w'’-]*)*(?=[?.!]*$)")
_ZONE = re.compile(r"\b(?:[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?|UTC(?:[+-]\d{1,2})?|GMT)\b")
_TICKER = re.compile(r"\b(?:[A-Z]{2,5}(?:\.[A-Z]{1,3})?|\d{3,6})\b")
_QUOTED_SPEECH = re.compile(
    r"^.*?\b(?:say|speak|read(?: aloud| out)?|pronounce|translate|send|write|convert|turn)\b[:,]?\s+"
    r"(?:the (?:text|words?)\s+)?(.+?)"
    r"(?:\s+(?:in|into|to|as|with|using)\s+(?:a\s+|an\s+)?(?:\w+\s+)?(?:speech|audio|voice))?$",
    re.IGNORECASE | re.DOTALL,
)
_NO = re.compile(r"\b(?:no|not|without|never|don't)\b", re.IGNORECASE)
_WHOLE: Final = ("question", "query", "prompt", "request", "input", "search", "sql", "instruction", "task")
_SAID: Final = ("text", "message", "content", "sentence", "speech", "body", "title", "words")
_PLACES: Final = ("city", "location", "place", "town", "country", "address", "region", "destination", "where")


def fill(tool: Tool, text: str, whole: str) -> dict[str, object]:
    """Return arguments for `tool` from its part of the question.

    A value missing in this part is looked for in the whole question. If it is missing there as well, it is
    left out, unless the tool requires it: then the first choice, a part of the text or an empty value is
    given, for the tool to refuse.
    """
    arguments: dict[str, object] = {}
    bare, bare_whole = _without_choices(tool, text), _without_choices(tool, whole)
    numbers = [float(one) if "." in one else int(one) for one in _NUMBER.findall(DATE.sub(" ", text))]
    for parameter in tool.parameters:
        if parameter.choices:
            value = _chosen(parameter.choices, text) or _chosen(parameter.choices, whole)
        else:
            value = _value(parameter, bare, numbers)
            value = _value(parameter, bare_whole, []) if value is None else value
        if value is None and parameter.required:
            value = _last_resort(parameter, text)
        if value is not None:
            arguments[parameter.name] = value
    return arguments


def has_value_for(tool: Tool, text: str) -> bool:
    """Return True if a text has a typical value for a parameter.

    It is a value of the kind expected by one of the tool's strings, such as a place.
    """
    strings = (one for one in tool.parameters if one.type == "string" and not one.choices)
    return any(_special(one, _without_choices(tool, text)) is not None for one in strings)


def _without_choices(tool: Tool, text: str) -> str:
    """Remove the choice of an enum value, such as "in fahrenheit".

    Otherwise another parameter might take it.
    """
    choices = [re.escape(str(choice)) for parameter in tool.parameters for choice in parameter.choices]
    if not choices:
        return text
    return re.sub(rf"\s*\b(?:in|as|with)\s+(?:{'|'.join(choices)})\b", "", text, flags=re.IGNORECASE)


def _value(parameter: Parameter, text: str, numbers: list[int | float]) -> object:
    match parameter.type:
        case "boolean":
            return _truth(parameter, text)
        case "integer" | "number":
            return _number(parameter, text, numbers)
        case "array":
            return _list(parameter, text)
        case "string":
            return _special(parameter, text)
    return None


def _chosen(choices: list[object], text: str) -> object:
    said = words(text)
    return next((choice for choice in choices if set(words(str(choice))) & set(said)), None)


def _truth(parameter: Parameter, text: str) -> object:
    if not set(words(parameter.name)) & set(words(text)):
        return None
    return _NO.search(text) is None


def _number(parameter: Parameter, text: str, numbers: list[int | float]) -> object:
    """Return the number beside the parameter's name.

    Without one, a required parameter takes the next number left.
    """
    for word in words(parameter.name):
        after, before = rf"\b{word}\w*\W{{1,3}}({_DIGITS})", rf"({_DIGITS})\W{{1,2}}{word}"
        beside = re.search(f"{after}|{before}", text, re.IGNORECASE)
        if beside:
            numbers[:] = [one for one in numbers if one != float(beside[1] or beside[2])]
            return _typed(parameter, float(beside[1] or beside[2]))
    return _typed(parameter, numbers.pop(0)) if parameter.required and numbers else None


def _typed(parameter: Parameter, number: float) -> int | float:
    return int(number) if parameter.type == "integer" or number == int(number) else number


def _list(parameter: Parameter, text: str) -> object:
    items = _mapping(parameter.schema.get("items"))
    if items.get("type") in ("integer", "number"):
        return [float(one) if "." in one else int(one) for one in _NUMBER.findall(text)] or None
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    if quoted or not parameter.required:
        return quoted or None
    return [one.strip() for one in _plain(parameter, text).split(",") if one.strip()]


def _special(parameter: Parameter, text: str) -> str | None:
    """Return a value of the kind described by the parameter's name and description."""
    if parameter.about("timezone", "zone", "tz"):
        return _zone(text)
    if parameter.named("expression", "formula", "calculation", "equation", "arithmetic"):
        found = ARITHMETIC.search(text)
        return found.group().strip() if found else None
    if parameter.named(*_WHOLE, *_SAID):
        return None
    if parameter.about("ticker", "stock"):
        found = _TICKER.search(text)
        return found.group() if found else None
    if parameter.named(*_PLACES) or parameter.about("city"):
        return _place(text)
    if parameter.named("date", "day", "when") or parameter.schema.get("format") in ("date", "date-time"):
        found = DATE.search(text)
        return found.group() if found else None
    return _pair(parameter, text)


def _plain(parameter: Parameter, text: str) -> str:
    """Return the text for a free-text parameter."""
    if parameter.named(*_WHOLE):
        return text
    quoted = _QUOTED.search(text)
    if quoted:
        return str(next(filter(None, quoted.groups())))
    speech = _QUOTED_SPEECH.match(text.strip().rstrip("?")) if parameter.named(*_SAID) else None
    return speech[1] if speech else text


def _last_resort(parameter: Parameter, text: str) -> object:
    if parameter.choices:
        return parameter.choices[0]
    if parameter.type == "string":
        return _plain(parameter, text)
    return {"boolean": False, "object": {}, "array": [], "integer": 0, "number": 0}.get(parameter.type, text)


def _pair(parameter: Parameter, text: str) -> str | None:
    """Find `name is value`, `name: value` or `name=value`."""
    name = r"\W".join(words(parameter.name)) or re.escape(parameter.name)
    found = re.search(rf"\b{name}\b\s*(?:is|=|:|as)\s*[\"']?([\w.@+/-]+)", text, re.IGNORECASE)
    return found[1] if found else None


def _place(text: str) -> str | None:
    for pattern in (_PLACE, _ALONE, _LOWER_PLACE, _CAPITALS):
        found = pattern.search(text)
        if found:
            return found.group(found.re.groups).rstrip(" .,?!'")
    return None


def _zone(text: str) -> str | None:
    """Return the time zone named in a text, or a city's.

    A place without a time zone is returned as it is.
    """
    found = _ZONE.search(text)
    if found:
        return found.group()
    place = _place(text)
    if place is None:
        return None
    return _zones().get(place.partition(",")[0].replace(" ", "_").lower(), place)


@functools.cache
def _zones() -> Mapping[str, str]:
    """The time zones of this machine by the city in their name."""
    return {
        zone.rpartition("/")[2].lower(): zone
        for zone in sorted(zoneinfo.available_timezones())
        if "/" in zone
    }


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
