"""What is said of a tool, in the parts that count differently."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from beckon_agent.retrieval.words import terms
from beckon_contract.tools import Tool

_DEEPEST: Final = 8
_MOST_PROPERTIES: Final = 200
_MOST_CHARACTERS: Final = 4_000  # of a description; whole manuals would make every index slow
_MOST_EXPLAINED: Final = 8_000  # characters, of all parameters together
_PART_OF: Final = "app.kubernetes.io/part-of"


class Terms(NamedTuple):
    """The terms of a tool, by where they stand."""

    name: list[str]
    description: list[str]
    parameters: list[str]
    explanations: list[str]


def terms_of(tool: Tool) -> Terms:
    """Return the terms of a tool: of its name, its description, its parameters' names, what these mean."""
    names: list[str] = []
    texts: list[str] = []
    for number, (name, schema) in enumerate(_properties(tool.parameters)):
        if number == _MOST_PROPERTIES:
            break
        names.append(name)
        texts.extend(_texts(schema))
    return Terms(
        terms(_plain_name(tool)),
        terms(tool.description[:_MOST_CHARACTERS]),
        terms(" ".join(names)),
        terms(" ".join(texts)[:_MOST_EXPLAINED]),
    )


def family_of(tool: Tool) -> str:
    """Return what tools of one service have in common.

    That is the label `app.kubernetes.io/part-of`, or else the CloudEvents type without its last segment:
    the specification asks for a prefix that names who defines the event.
    """
    return tool.labels.get(_PART_OF) or f"{tool.namespace} {tool.type.rpartition('.')[0]}"


def _plain_name(tool: Tool) -> str:
    """A name that carries a hash says nothing with it."""
    return tool.name.rpartition("__")[0] or tool.name


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the properties of an object, and those of the objects in it."""
    definitions = schema.get("$defs")
    return _walk(schema, definitions if isinstance(definitions, Mapping) else {}, frozenset(), 0)


def _walk(
    schema: object, definitions: Mapping[str, Any], seen: frozenset[str], depth: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    target = str(schema.get("$ref", "")).rpartition("/")[2]
    if target in definitions and target not in seen:
        yield from _walk(definitions[target], definitions, seen | {target}, depth + 1)
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        yield name, one if isinstance(one, Mapping) else {}
        yield from _walk(one, definitions, seen, depth + 1)
    for one in _parts(schema):
        yield from _walk(one, definitions, seen, depth + 1)


def _parts(schema: Mapping[str, Any]) -> Iterator[object]:
    yield schema.get("items")
    yield schema.get("additionalProperties")
    for keyword in ("anyOf", "oneOf", "allOf"):
        several = schema.get(keyword)
        yield from several if isinstance(several, list) else ()


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    description, values = schema.get("description"), schema.get("enum")
    if isinstance(description, str):
        yield description[:_MOST_CHARACTERS]
    yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
