"""The tools of the demo model, from native declarations or from a prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beckon_demo.words import words


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    `schema` is its JSON Schema, `hints` the words of its name and description.
    """

    name: str
    required: bool
    schema: Mapping[str, object]
    hints: frozenset[str]

    @property
    def type(self) -> str:
        """The JSON type, string by default.

        Of several types it is the first that is not null.
        """
        kind = self.schema.get("type")
        for one in kind if isinstance(kind, list) else [kind]:
            if isinstance(one, str) and one != "null":
                return one
        return "string"

    @property
    def choices(self) -> list[object]:
        """The values of an enum; empty if any value is allowed."""
        found = self.schema.get("enum")
        return list(found) if isinstance(found, list) else []

    def about(self, *topics: str) -> bool:
        """Return True if the name or description has one of these words."""
        return not self.hints.isdisjoint(topics)

    def named(self, *topics: str) -> bool:
        """Return True if the name alone has one of these words."""
        return not set(topics).isdisjoint(words(self.name))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool to choose."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


def read_tools(declarations: Sequence[object]) -> list[Tool]:
    """Read OpenAI's `tools` entries or bare function objects.

    Entries without a name are left out.
    """
    found = (_read(_mapping(entry)) for entry in declarations)
    return [tool for tool in found if tool.name]


def _read(entry: Mapping[str, object]) -> Tool:
    function = _mapping(entry.get("function")) or entry
    schema = _mapping(function.get("parameters"))
    required = schema.get("required")
    parameters = tuple(
        _parameter(name, _mapping(one), isinstance(required, list) and name in required)
        for name, one in _mapping(schema.get("properties")).items()
    )
    return Tool(str(function.get("name") or ""), str(function.get("description") or ""), parameters)


def _parameter(name: str, schema: Mapping[str, object], required: bool) -> Parameter:
    hints = frozenset([*words(name), *words(str(schema.get("description") or ""))])
    return Parameter(name, required, schema, hints)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
