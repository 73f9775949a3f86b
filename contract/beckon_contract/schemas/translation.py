"""A document in any accepted spelling, translated into one normal form.

The normal form is JSON Schema 2020-12 with only those keywords that mean something to validation or to a
reader. Every `$ref` is `#/$defs/NAME`; `$defs` is at the root and holds what is referred to, nothing else.
There are no `$id` and no anchors.
"""

import re
from typing import Any

from beckon_contract.schemas.errors import refuse
from beckon_contract.schemas.keywords import Path, Schema, rebuild
from beckon_contract.schemas.notation import read_type
from beckon_contract.schemas.references import References
from beckon_contract.schemas.respelling import respell

_REF_ALONE = re.compile(r"draft-0[4-7]/")
_TOO_OLD = re.compile(r"draft-0[0-3]/")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def translate(document: Schema) -> Schema:
    """Return the normal form of a schema, whatever instances it describes.

    Raises `SchemaError` for references that lead nowhere and for keywords without a counterpart in 2020-12.
    """
    return _Translation(document).run()


class _Translation:
    def __init__(self, document: Schema) -> None:
        stated = document.get("$schema")
        draft = stated if isinstance(stated, str) else ""
        if _TOO_OLD.search(draft):
            raise refuse(
                "UnsupportedDialect", ("$schema",), f"{draft} is too old; write the schema in 2020-12"
            )
        self._document = document
        self._openapi = not draft
        self._alone = bool(_REF_ALONE.search(draft))
        self._references = References(document, ref_stands_alone=self._alone)
        self._names: dict[Path, str] = {}
        self._pending: list[tuple[str, Path, Any, str]] = []

    def run(self) -> Schema:
        """Translate the root, then whatever it refers to, each once."""
        root = self._object(self._document, (), "")
        definitions: Schema = {}
        while self._pending:
            name, path, node, base = self._pending.pop(0)
            definitions[name] = self._schema(node, path, base)
        return {**root, "$defs": definitions} if definitions else root

    def _schema(self, node: Any, path: Path, outer: str) -> Schema | bool:
        if isinstance(node, bool):
            return node
        if isinstance(node, str):
            return self._shorthand(node, path)
        if node is None:
            return {}
        if not isinstance(node, dict):
            raise refuse("NotASchema", path, 'expected a schema such as {"type": "string"}')
        return self._object(node, path, outer)

    def _object(self, node: Schema, path: Path, outer: str) -> Schema:
        base = self._references.base(node, outer)
        if self._alone and "$ref" in node:
            node = {"$ref": node["$ref"]}
        return self._members(respell(node, path, openapi=self._openapi), path, base)

    def _members(self, schema: Schema, path: Path, base: str) -> Schema:
        def inner(at: Path, child: Any) -> Schema | bool:
            return self._schema(child, path + at, base)

        translated: Schema = {}
        for keyword, value in schema.items():
            if keyword == "$defs":
                continue  # what is referred to comes back under the names of this translation
            if keyword == "$ref":
                translated[keyword] = self._reference(value, path, base)
            else:
                translated[keyword] = rebuild(keyword, value, inner)
        return translated

    def _shorthand(self, name: str, path: Path) -> Schema:
        found = read_type(name)
        if found is None:
            raise refuse("NotASchema", path, f'{name[:40]!r} is no schema; write {{"type": "string"}}')
        return found

    def _reference(self, ref: Any, path: Path, base: str) -> str:
        if not isinstance(ref, str):
            raise refuse("InvalidSchema", (*path, "$ref"), "a reference is a string such as #/$defs/NAME")
        location, node, outer = self._references.locate(ref, base, path)
        if location not in self._names:
            name = self._free_name(location)
            self._names[location] = name
            self._pending.append((name, location, node, outer))
        return f"#/$defs/{self._names[location]}"

    def _free_name(self, location: Path) -> str:
        wanted = _UNSAFE.sub("_", location[-1]) if location else "root"
        taken = set(self._names.values())
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name
