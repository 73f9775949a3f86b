"""The targets of the `$ref`s of a document.

They are JSON Pointers, anchors and `$id`s, all inside the document.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from beckon_contract.schemas.errors import refuse
from beckon_contract.schemas.keywords import MANY, NAMED, ONE, Path, Schema

_ONE = ONE | {"additionalItems"}
_NAMED = NAMED | {"definitions", "dependencies"}


class References:
    """An index of a document's `$ref` targets (JSON Schema core, 8.2)."""

    def __init__(self, document: Schema, *, ref_stands_alone: bool = False) -> None:
        """Index a document.

        `ref_stands_alone` is for draft 7 and older, where `$ref` hides its siblings.
        """
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
                f"{ref!r} lies outside this document; copy what it names under `$defs`, write #/$defs/NAME",
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
        there = f"; there are {', '.join(map(repr, known[:10]))}" if known else "; add it under `$defs`"
        return refuse(
            "UnresolvableReference", (*path, "$ref"), f"nothing in this document is at {ref!r}{there}"
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
