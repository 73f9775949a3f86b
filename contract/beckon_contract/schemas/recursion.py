"""Schemas with references to themselves: bounded and unbounded recursion.

A tree, a nested filter, a linked list are recursive and useful: an instance ends them by leaving out an
optional property, by an empty array, by another branch. Validators, OpenAI and llama.cpp take them as they
are, and lowering cuts them where a provider does not. Unbounded is the recursion that nothing can end, and
it is refused:

- a schema that applies itself to the same instance (`{"$ref": "#/$defs/a"}` as `a`): a validator never
  returns;
- a schema that requires an instance of itself inside each instance: nothing can satisfy it.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from beckon_contract.schemas.errors import refuse
from beckon_contract.schemas.keywords import IN_PLACE, Schema, children, stated_types

_PREFIX = "#/$defs/"


def definition(ref: str) -> str:
    """Return the name in a normal form's reference."""
    return ref.removeprefix(_PREFIX)


def check_recursion(schema: Schema) -> None:
    """Raise `SchemaError` for unbounded recursion in a schema in normal form."""
    definitions: Schema = schema.get("$defs", {})
    try:
        TopologicalSorter({name: set(_in_place(node)) for name, node in definitions.items()}).prepare()
    except CycleError as error:
        name = min(error.args[1])
        raise refuse(
            "UnboundedRecursion",
            ("$defs", name),
            f"{name!r} refers to itself without going into a property or an item; remove that reference",
        ) from None
    endless = definitions.keys() - _endable(definitions)
    if endless:
        name = min(endless)
        raise refuse(
            "UnboundedRecursion",
            ("$defs", name),
            f"each instance of {name!r} requires another inside it; make the property on the way optional",
        )


def _in_place(node: object) -> Iterator[str]:
    """Yield the definitions applied to the schema's own instance."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield definition(node["$ref"])
    for path, child in children(node):
        if path[0] in IN_PLACE:
            yield from _in_place(child)


def _endable(definitions: Schema) -> set[str]:
    """Return the definitions satisfiable by a finite instance.

    They are the least fixed point. Definitions are in the order in which they are reached, so one pass
    backwards settles nearly all.
    """
    endable: set[str] = set()
    before = -1
    while len(endable) > before:
        before = len(endable)
        for name in reversed(definitions):
            if name not in endable and _ends(definitions[name], endable):
                endable.add(name)
    return endable


def _ends(node: object, endable: set[str]) -> bool:
    if not isinstance(node, dict):
        return True
    if "$ref" in node and definition(node["$ref"]) not in endable:
        return False
    if not all(_ends(part, endable) for part in _list(node, "allOf")):
        return False
    for keyword in ("anyOf", "oneOf"):
        branches = _list(node, keyword)
        if branches and not any(_ends(branch, endable) for branch in branches):
            return False
    return all(_ends(inner, endable) for inner in _unavoidable(node))


def _unavoidable(node: Schema) -> Iterator[object]:
    """Yield the schemas for unavoidable parts of an instance.

    Some part of each instance must satisfy them.
    """
    types = stated_types(node)
    if types == ("object",):
        properties = node.get("properties", {})
        yield from (properties[name] for name in _list(node, "required") if name in properties)
    if types == ("array",) and isinstance(node.get("minItems"), int):
        leading = _list(node, "prefixItems")[: node["minItems"]]
        yield from leading
        if node["minItems"] > len(leading) and "items" in node:
            yield node["items"]


def _list(node: Schema, keyword: str) -> list[object]:
    value = node.get(keyword)
    return value if isinstance(value, list) else []
