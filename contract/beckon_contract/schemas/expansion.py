"""A schema with `$ref`, `allOf` and booleans written out.

These are the parts that apply in place.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from beckon_contract.schemas.keywords import Schema
from beckon_contract.schemas.merging import conjunction
from beckon_contract.schemas.recursion import definition

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
        found = schema.get("$defs")
        self.definitions: Schema = found if isinstance(found, dict) else {}
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
