"""The types of values that a markup writes as bare text, decided by the tool's schema."""

from collections.abc import Mapping, Sequence
from typing import Final

from beckon_agent.dialects.jsontext import load
from beckon_agent.model.types import Declaration

_MAX_BRANCHES: Final = 200
"""Alternatives and references of one parameter that are looked through."""

_OF_VALUE: Mapping[type, str] = {
    bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip


class Toolbox:
    """The declared tools by name, for dialects that must know a name or a parameter's type."""

    def __init__(self, tools: Sequence[Declaration]) -> None:
        self._schemas: dict[str, Mapping[str, object]] = {}
        for tool in tools:
            function = tool.get("function", tool)
            self._schemas[str(function.get("name"))] = _mapping(function.get("parameters"))

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def typed(self, tool: str, parameter: str, text: str) -> object:
        """Return `text` as the schema of this parameter wants it; as it stands where nothing fits.

        JSON where a type other than string is allowed (or none is told), and text otherwise.
        """
        schema = self._schemas.get(tool, {})
        allowed = _types(_mapping(schema.get("properties")).get(parameter), schema)
        if allowed == {"string"}:
            return text
        value = _python_words(text)
        fits = not allowed or _OF_VALUE.get(type(value), "string") in allowed
        return value if fits and not isinstance(value, str) else text


def _python_words(text: str) -> object:
    words: dict[str, object] = {"True": True, "False": False, "None": None}
    if text.strip() in words:
        return words[text.strip()]
    try:
        return load(text)
    except ValueError:
        return text


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _types(schema: object, root: Mapping[str, object]) -> set[str]:
    """Return the JSON types that a schema allows, "number" for integers; none where it does not say."""
    types: set[str] = set()
    waiting, seen = [schema], set[int]()
    while waiting and len(seen) < _MAX_BRANCHES:
        found = _mapping(waiting.pop())
        if id(found) in seen:
            continue
        seen.add(id(found))
        types.update(_own_types(found))
        for keyword in ("anyOf", "oneOf", "allOf"):
            waiting.extend(_list(found.get(keyword)))
        if isinstance(found.get("$ref"), str):
            waiting.append(_pointed(str(found["$ref"]), root))
    return types


def _own_types(schema: Mapping[str, object]) -> set[str]:
    kind = schema.get("type")
    if kind is not None:
        names = {name for name in _list(kind) or [kind] if isinstance(name, str)}
        return {"number" if name == "integer" else name for name in names}
    choices = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    return {_OF_VALUE.get(type(choice), "string") for choice in choices}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _pointed(reference: str, root: Mapping[str, object]) -> object:
    """Follow a local `#/$defs/name`; anything else tells nothing."""
    target: object = root
    for step in reference.removeprefix("#/").split("/"):
        target = _mapping(target).get(step)
    return target
