"""Which operations are meant: by id, name, tag, method and path."""

import re
from collections.abc import Sequence

from beckon_cli.importing.openapi.operations import METHODS, Operation
from beckon_cli.importing.selection import choose, matches


def select(operations: Sequence[Operation], names: Sequence[str], wanted: Sequence[str]) -> list[bool]:
    """Return for every operation whether any of the words means it; all are meant where there is no word.

    A word is a method, a path (`/pets/*`, `/pets/**`), `tag:NAME`, an operationId or a tool's name, each with
    `*` for any text; a method before another word narrows it: "GET /pets/*". Raises `NoSource` for a word
    that means nothing.
    """
    pairs = list(zip(operations, names, strict=True))
    known = [text for each in operations for text in (each.id, each.path, *each.tags) if text]
    return choose(
        pairs, wanted, lambda word, pair: _means(word, *pair), noun="operation", known=[*known, *names]
    )


def _means(word: str, operation: Operation, name: str) -> bool:
    first, _, rest = word.strip().partition(" ")
    if first.lower() in METHODS:
        return operation.method == first.lower() and (not rest.strip() or _means(rest, operation, name))
    if word.startswith("tag:"):
        return any(matches(tag, word.removeprefix("tag:").strip()) for tag in operation.tags)
    if word.startswith("/"):
        return _path(word).fullmatch(operation.path) is not None
    return any(matches(text, word) for text in (operation.id, name, *operation.tags) if text)


def _path(pattern: str) -> re.Pattern[str]:
    """Return a path glob as an expression: `*` stays inside a segment, `**` does not."""
    parts = re.split(r"(\*\*|\*)", pattern.rstrip())
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts))
