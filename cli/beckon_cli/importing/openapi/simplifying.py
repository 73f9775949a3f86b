"""Simplification of a schema in normal form.

Definitions that are small, or used once, replace their references, as people would write them.
"""

from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

from beckon_contract.schemas.keywords import Schema, children, rebuild
from beckon_contract.schemas.recursion import definition

_SMALL = 3  # keywords of a definition that is shorter than the reference to it


def simplify_schema(schema: Schema) -> Schema:
    """Return the same schema with fewer definitions.

    Definitions that are small, or used once, replace their references; recursive ones stay.
    """
    definitions: Schema = schema.get("$defs", {})
    uses = Counter(
        name for node in (_simplify_root(schema), *definitions.values()) for name in _iterate_references(node)
    )
    inner = {name: set(_iterate_references(node)) for name, node in definitions.items()}
    recursive = set(_recursive_definitions(inner))
    moved = {
        name
        for name, node in definitions.items()
        if name not in recursive and (uses[name] == 1 or _is_small(node))
    }
    if not moved:
        return schema

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "$ref" in node and definition(node["$ref"]) in moved:
            target = change(definitions[definition(node["$ref"])])
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return _merge_beside(target, {key: _changed(key, value) for key, value in beside.items()})
        return {key: _changed(key, value) for key, value in node.items()}

    def _changed(keyword: str, value: Any) -> Any:
        return rebuild(keyword, value, lambda _, child: change(child))

    simplified = {name: change(node) for name, node in definitions.items() if name not in moved}
    return {**change(_simplify_root(schema)), **({"$defs": simplified} if simplified else {})}


def _merge_beside(target: Any, beside: Schema) -> Any:
    """Return a referenced schema merged with the keywords beside its reference.

    If both have the same keyword, both apply. Description, default and examples beside the reference take
    precedence.
    """
    if not beside:
        return target
    if not isinstance(target, dict):
        return {**beside, "allOf": [target]}
    words = {key: value for key, value in beside.items() if key in ("description", "default", "examples")}
    rest = {key: value for key, value in beside.items() if key not in words}
    if rest.keys() & target.keys():
        return {**words, "allOf": [target, rest]}
    return {**target, **rest, **words}


def _simplify_root(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "$defs"}


def _is_small(node: Any) -> bool:
    return not isinstance(node, dict) or (len(node) <= _SMALL and not any(True for _ in children(node)))


def _iterate_references(node: Any) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield definition(node["$ref"])
    for _, child in children(node):
        yield from _iterate_references(child)


def _recursive_definitions(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield the definitions with references to themselves, direct or indirect."""
    left = dict(graph)
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle = set(error.args[1])
            yield from cycle
            left = {name: found - cycle for name, found in left.items() if name not in cycle}
        else:
            return
