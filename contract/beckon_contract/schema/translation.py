"""A document in any accepted spelling, translated into one normal form.

The targets of `$ref`s are JSON Pointers, anchors and `$id`s, all inside the document.

The normal form is JSON Schema 2020-12 with only those keywords that mean something to validation or to a
reader. Every `$ref` is `#/$defs/NAME`; `$defs` is at the root and holds what is referred to, nothing else.
There is no `$id`. `$schema` is at the root, where the document states one, and names 2020-12. Each `$anchor`
occurs once, and no `$ref` uses it.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from beckon_contract.schema.keywords import (
    DIALECT,
    EXTENSIONS,
    MANY,
    NAMED,
    ONE,
    Path,
    Schema,
    rebuild,
    refuse,
)
from beckon_contract.schema.respelling import read_type, respell

_ONE = ONE | {"additionalItems"}
_NAMED = NAMED | {"definitions", "dependencies"}


class References:
    """An index of a document's `$ref` targets (JSON Schema core, 8.2)."""

    def __init__(self, document: Schema, *, ref_stands_alone: bool = False) -> None:
        """Index a document. `ref_stands_alone` is for draft 7 and older, where `$ref` hides its siblings."""
        self._document = document
        self._alone = ref_stands_alone
        self._resources: dict[str, Path] = {"": ()}
        self._anchors: dict[tuple[str, str], Path] = {}
        self._index()

    def base(self, node: Schema, outer: str) -> str:
        """Return the base URI inside a schema, given the one around it."""
        identity = node.get("$id")
        if not isinstance(identity, str) or identity.startswith("#") or (self._alone and "$ref" in node):
            return outer
        return urldefrag(urljoin(outer, identity)).url

    def locate(self, ref: str, base: str, path: Path) -> tuple[Path, Any, str]:
        """Return the target of a `$ref`.

        It is the location, the value there, and the base URI around it. `path` is the place of the `$ref`.
        Raises `SchemaError` for a target that is outside the document or missing.
        """
        target = urldefrag(base + ref if ref.startswith("#") else urljoin(base, ref))
        start = self._resources.get(target.url)
        if start is None:
            raise refuse(
                "RemoteReference",
                (*path, "$ref"),
                f"{ref!r} is outside this document; copy what it names under `$defs`, write #/$defs/NAME",
            )
        fragment = unquote(target.fragment)
        if fragment and not fragment.startswith("/"):
            start, fragment = self._anchored(target.url, fragment, ref, path), ""
        tokens = tuple(token.replace("~1", "/").replace("~0", "~") for token in fragment.split("/")[1:])
        return self._walk(start, tokens, ref, path)

    def _anchored(self, url: str, name: str, ref: str, path: Path) -> Path:
        if (url, name) not in self._anchors:
            raise self._missing(ref, path)
        return self._anchors[url, name]

    def _walk(self, start: Path, tokens: Path, ref: str, path: Path) -> tuple[Path, Any, str]:
        node: Any = self._document
        base = ""
        for token in (*start, *tokens):
            if isinstance(node, dict):
                base = self.base(node, base)
            try:
                node = _step(node, token)
            except LookupError:
                raise self._missing(ref, path) from None
        return (*start, *tokens), node, base

    def _missing(self, ref: str, path: Path) -> Exception:
        known = [name for keyword in ("$defs", "definitions") for name in self._document.get(keyword) or ()]
        hint = f"; there are {', '.join(map(repr, known[:10]))}" if known else "; add it under `$defs`"
        return refuse(
            "UnresolvableReference", (*path, "$ref"), f"nothing in this document is at {ref!r}{hint}"
        )

    def _index(self) -> None:
        pending: list[tuple[Path, object, str]] = [((), self._document, "")]
        while pending:
            path, node, outer = pending.pop()
            if not isinstance(node, dict):
                continue
            base = self.base(node, outer)
            if base != outer:
                self._resources.setdefault(base, path)
            self._note_anchors(node, base, path)
            pending.extend((path + inner, child, base) for inner, child in _raw_children(node))

    def _note_anchors(self, node: Schema, base: str, path: Path) -> None:
        names = [node.get("$anchor"), node.get("$dynamicAnchor")]
        identity = node.get("$id")
        if isinstance(identity, str) and identity.startswith("#"):
            names.append(identity[1:])  # how draft 6 and 7 write an anchor
        for name in names:
            if isinstance(name, str):
                self._anchors.setdefault((base, name), path)


def _raw_children(node: Schema) -> Iterator[tuple[Path, object]]:
    """Yield the direct subschemas in any draft's spelling."""
    for keyword, value in node.items():
        if keyword in _ONE and not isinstance(value, list):
            yield (keyword,), value
        elif (keyword in MANY or keyword == "items") and isinstance(value, list):
            for number, entry in enumerate(value):
                yield (keyword, str(number)), entry
        elif keyword in _NAMED and isinstance(value, dict):
            for name, entry in value.items():
                yield (keyword, name), entry


def _step(node: Any, token: str) -> Any:
    if isinstance(node, dict):
        return node[token]
    if isinstance(node, list) and token.isascii() and token.isdecimal():
        return node[int(token)]
    raise LookupError(token)


_REF_ALONE = re.compile(r"draft-0[4-7]/")
_TOO_OLD = re.compile(r"draft-0[0-3]/")
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")  # core, 8.2.2
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def translate(document: Schema, *, sent: bool = True) -> Schema:
    """Return the normal form of a schema, whatever instances it describes.

    `sent` says that the instances go to the service: OpenAPI's `readOnly` properties need not be sent.
    Raises `SchemaError` for references that lead nowhere and for keywords without a counterpart in 2020-12.
    """
    return _Translation(document, sent=sent).run()


class _Translation:
    def __init__(self, document: Schema, *, sent: bool) -> None:
        dialect = document.get("$schema")
        draft = dialect if isinstance(dialect, str) else ""
        if _TOO_OLD.search(draft):
            raise refuse(
                "UnsupportedDialect", ("$schema",), f"{draft} is too old; write the schema in 2020-12"
            )
        self._document = document
        self._openapi = not draft and sent
        self._alone = bool(_REF_ALONE.search(draft))
        self._references = References(document, ref_stands_alone=self._alone)
        self._names: dict[Path, str] = {}
        self._anchors: set[str] = set()
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
            elif keyword in EXTENSIONS:
                translated |= self._extension(keyword, value, path)
            else:
                translated[keyword] = rebuild(keyword, value, inner)
        return translated

    def _extension(self, keyword: str, value: Any, path: Path) -> Schema:
        """Return `$schema` or `$anchor` as the normal form has it, or nothing.

        A schema that is referred to may be in the normal form twice, its anchor only once.
        """
        if keyword == "$schema":
            return {} if path else {keyword: DIALECT}
        if not isinstance(value, str) or value in self._anchors or not _ANCHOR.fullmatch(value):
            return {}
        self._anchors.add(value)
        return {keyword: value}

    def _shorthand(self, name: str, path: Path) -> Schema:
        type_read = read_type(name)
        if type_read is None:
            raise refuse("NotASchema", path, f'{name[:40]!r} is no schema; write {{"type": "string"}}')
        return type_read

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
        names = set(self._names.values())
        name, number = wanted, 1
        while name in names:
            number += 1
            name = f"{wanted}_{number}"
        return name
