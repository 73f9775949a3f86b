"""A schema with `$ref`, `allOf` and booleans written out, and the check of its recursion.

The merging of several schemas into one accepts at least what they accepted. It is loose on purpose: what
cannot be said in one schema is left out, since arguments are checked against the original.

A tree, a nested filter, a linked list are recursive and useful: an instance ends them by leaving out an
optional property, by an empty array, by another branch. Validators, OpenAI and llama.cpp take them as they
are, and lowering cuts them where a provider does not. Unbounded is the recursion that nothing can end, and
it is refused:

- a schema that applies itself to the same instance (`{"$ref": "#/$defs/a"}` as `a`): a validator never
  returns;
- a schema that requires an instance of itself inside each instance: nothing can satisfy it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from beckon_contract.schema.keywords import IN_PLACE, Schema, children, refuse, stated_types

_LINKED = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
)
"""Keywords that mean something only beside each other, so that two schemas' must not be mixed."""


def conjunction(parts: Sequence[Schema]) -> Schema:
    """Return one schema for the conjunction of all parts.

    The first part's words and order win.

    The parts hold no `$ref` and no `allOf` of their own (`schemas.expansion` sees to that).
    """
    merged: Schema = {}
    for part in parts:
        merged = _both(merged, part)
    return merged


def absorb(base: Schema, branches: Sequence[Schema]) -> Schema:
    """Return an object schema for `base` with one of the branches, without saying `anyOf`.

    Each property that any branch has becomes one of the object; required is what all branches require. A
    property that only some branches describe is taken as they describe it.
    """
    members: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in _map(branch, "properties").items():
            if schema not in members.setdefault(name, []):
                members[name].append(schema)
    offered = {
        name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas} for name, schemas in members.items()
    }
    merged = _both(base, {"properties": offered} if offered else {})
    everywhere = [name for name in _names(branches[0]) if all(name in _names(branch) for branch in branches)]
    required = list(dict.fromkeys([*_names(base), *everywhere]))
    if required:
        merged["required"] = required
    closed = all(branch.get("additionalProperties") is False for branch in branches)
    if closed and not any("patternProperties" in branch for branch in branches):
        merged["additionalProperties"] = False
    return merged


def _both(first: Schema, second: Schema) -> Schema:
    merged = dict(first)
    for keyword, value in _drop_linked(first, second).items():
        if keyword not in merged:
            merged[keyword] = value
        elif keyword in _COMBINE:
            merged[keyword] = _COMBINE[keyword](merged[keyword], value)
    return merged


def _drop_linked(first: Schema, second: Schema) -> Schema:
    """Drop the first schema's groups of keywords from the second."""
    keywords = {keyword for group in _LINKED if first.keys() & set(group) for keyword in group}
    return {keyword: value for keyword, value in second.items() if keyword not in keywords}


def _named(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for name, schema in second.items():
        merged[name] = _schemas(merged[name], schema) if name in merged else schema
    return merged


def _schemas(first: Any, second: Any) -> Any:
    if first == second or second is True:
        return first
    if first is True:
        return second
    return {"allOf": [first, second]}


def _combine_closed(first: Any, second: Any) -> Any:
    """Combine `additionalProperties`: whichever closes the object."""
    return False if second is False else first


def _types(first: Any, second: Any) -> Any:
    one, other = stated_types({"type": first}), stated_types({"type": second})
    common = [name for name in one if name in other or (name == "integer" and "number" in other)]
    common += [name for name in other if name == "integer" and "number" in one and name not in common]
    if not common:
        return first
    return common[0] if len(common) == 1 else common


def _values(first: list[Any], second: list[Any]) -> list[Any]:
    common = [value for value in first if any(_same(value, other) for other in second)]
    return common or first


def _same(one: Any, other: Any) -> bool:
    """Return True if two values are equal as JSON; `true` is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _names_of_both(first: list[str], second: list[str]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "additionalProperties": _combine_closed,
    "enum": _values,
    "exclusiveMaximum": min,
    "exclusiveMinimum": max,
    "items": _schemas,
    "maxItems": min,
    "maxLength": min,
    "maxProperties": min,
    "maximum": min,
    "minItems": max,
    "minLength": max,
    "minProperties": max,
    "minimum": max,
    "patternProperties": _named,
    "properties": _named,
    "required": _names_of_both,
    "type": _types,
}


def _map(schema: Schema, keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _names(schema: Schema) -> list[str]:
    value = schema.get("required")
    return value if isinstance(value, list) else []


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
            f"each instance of {name!r} requires another inside it; make a property between them optional",
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


MAX_SCHEMAS = 5000  # a few definitions that name each other twice would otherwise grow without end
MAX_LEVELS = 32  # and a long chain of them deeper than a provider, or Python's stack, takes


@dataclass(frozen=True, slots=True)
class Stack:
    """The context of a schema: its open definitions and depth.

    Open definitions are those that are being written out.
    """

    names: frozenset[str] = frozenset()
    level: int = 0

    def inside(self, names: Iterable[str] = ()) -> "Stack":
        """Return the stack one level deeper, inside these definitions, too."""
        return Stack(self.names.union(names), self.level + 1)

    def beside(self, others: Iterable["Stack"]) -> "Stack":
        """Return a stack of all the definitions of several, as deep as the deepest."""
        several = (self, *others)
        return Stack(self.names.union(*(one.names for one in several)), max(one.level for one in several))


class Expansion:
    """Writes out the references of one schema, within a budget."""

    def __init__(self, schema: Schema) -> None:
        """Take the definitions of a schema in normal form."""
        definitions = schema.get("$defs")
        self.definitions: Schema = definitions if isinstance(definitions, dict) else {}
        self._left = MAX_SCHEMAS
        self._referred: dict[str, None] = {}

    def expand(self, node: object, stack: Stack) -> tuple[Schema, Stack]:
        """Return a schema without `$ref` and `allOf`, and the new stack.

        The schema accepts what the node accepts.

        A definition that is already being written out, and everything once the budget is spent, becomes the
        loosest schema of its type.
        """
        self._left -= 1
        if node is False:
            return {"not": {}}, stack
        if not isinstance(node, dict) or self._left < 0 or stack.level >= MAX_LEVELS:
            return {}, stack
        if "$ref" not in node and "allOf" not in node:
            return node, stack.inside()
        entered: set[str] = set()
        merged = conjunction(list(self._parts(node, stack, entered)))
        return merged, stack.inside(entered)

    def reference(self, node: object) -> Schema | None:
        """Return a plain reference to a definition and record it, else `None`."""
        if not isinstance(node, dict) or node.keys() != {"$ref"}:
            return None
        name = definition(node["$ref"])
        if name not in self.definitions:
            return None
        self._referred[name] = None
        return {"$ref": node["$ref"]}

    def lowered(self, node: object, stack: Stack, members: Callable[[Schema, Stack], Schema]) -> Schema:
        """Return a node lowered by `members`, a plain reference unchanged."""
        return self.reference(node) or members(*self.expand(node, stack))

    def lowered_definitions(self, members: Callable[[Schema, Stack], Schema]) -> Schema:
        """Return `{"$defs": …}` with the lowered definitions still in use.

        The result is empty if there are none.
        """
        lowered: Schema = {}
        while missing := [name for name in self._referred if name not in lowered]:
            for name in missing:
                lowered[name] = members(*self.expand(self.definitions[name], Stack(frozenset({name}))))
        return {"$defs": lowered} if lowered else {}

    def _parts(self, node: object, stack: Stack, entered: set[str]) -> Iterator[Schema]:
        self._left -= 1
        if node is False:
            yield {"not": {}}
        if not isinstance(node, dict) or self._left < 0:
            return
        yield {keyword: value for keyword, value in node.items() if keyword not in ("$ref", "allOf")}
        if "$ref" in node:
            yield from self._target(definition(node["$ref"]), stack, entered)
        for part in node.get("allOf", ()):
            yield from self._parts(part, stack, entered)

    def _target(self, name: str, stack: Stack, entered: set[str]) -> Iterator[Schema]:
        target = self.definitions.get(name)
        if name not in stack.names and len(entered) < MAX_LEVELS:
            entered.add(name)
            yield from self._parts(target, stack, entered)
        elif isinstance(target, dict):
            yield _outline(target)


def _outline(target: Schema) -> Schema:
    """Return the loosest schema for the same kind of value."""
    expanded: dict[str, Any] = {
        name: target[name] for name in ("type", "description", "title") if name in target
    }
    return expanded
