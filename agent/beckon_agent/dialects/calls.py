"""Calls as models write them in JSON: `{"name": …, "arguments": {…}}` and its relatives."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from beckon_agent.dialects.jsontext import dump, load
from beckon_agent.dialects.pytext import value
from beckon_agent.dialects.source import Damaged, Source

_NAME_KEYS: Final = ("name", "tool_name", "function")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args")
_DAMAGED_NAME = re.compile(r"[\"'](?:name|tool_name)[\"']\s*:\s*[\"']([^\"'\s]{1,256})[\"']")
_DAMAGED_ARGUMENTS = re.compile(r"[\"'](?:arguments|parameters|args)[\"']\s*:\s*")


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call without an id; `arguments` is text that may still need repair."""

    name: str
    arguments: str

    @classmethod
    def of(cls, name: str, arguments: object) -> "RawCall":
        """Make a call of parsed arguments; a string is taken for arguments encoded twice."""
        return cls(name, arguments if isinstance(arguments, str) else dump(arguments))


def calls_in(text: str) -> list[RawCall]:
    """Return the calls in a JSON object or a list of them.

    Python's way of writing is understood. Of text damaged beyond that the name is still
    found, and its arguments are handed on as they are: the model is told what is wrong with them.
    """
    found = loosely(text)
    if found is None:
        return _of_damaged(text)
    items = found if isinstance(found, list) else [found]
    return [call for item in items if isinstance(item, Mapping) for call in _of_object(item)]


def loosely(text: str) -> object:
    """Parse JSON or, where it is none, a Python literal; None where it is neither."""
    try:
        return load(text)
    except ValueError:
        pass
    source = Source()
    source.feed(text)
    source.ended = True
    steps = value(source, 0)
    try:
        next(steps)
    except StopIteration as stop:
        found: object = stop.value
        return found
    except Damaged:
        return None
    return None


def _of_object(item: Mapping[str, object]) -> list[RawCall]:
    """Read one object; one without arguments is no call."""
    inner = item.get("function")
    if isinstance(inner, Mapping):
        return _of_object(inner)
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), None)
    arguments = next((item[key] for key in _ARGUMENT_KEYS if key in item), None)
    if isinstance(name, str) and name and isinstance(arguments, Mapping | str):
        return [RawCall.of(name, arguments)]
    return []


def _of_damaged(text: str) -> list[RawCall]:
    name, arguments = _DAMAGED_NAME.search(text), _DAMAGED_ARGUMENTS.search(text)
    if name is None or arguments is None:
        return []
    return [RawCall(name[1], text[arguments.end() :].rstrip().removesuffix("}"))]
