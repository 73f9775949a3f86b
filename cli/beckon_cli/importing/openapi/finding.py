"""The operations of an API's description, selected by id, name, tag, method and path."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx

from beckon_cli.importing.candidates import ImportSource, Source, choose_things, matches_pattern
from beckon_cli.importing.documents import BadDescription, Documents, FileDocuments, Report, UrlDocuments
from beckon_cli.importing.openapi import openapi3, swagger2
from beckon_cli.importing.openapi.importer import Imported, OpenApiOptions, api_name, import_operations
from beckon_cli.importing.openapi.naming import name_operations
from beckon_cli.importing.openapi.openapi3 import ServerChoice
from beckon_cli.importing.openapi.operations import METHODS, Description, Operation
from beckon_cli.importing.openapi.references import open_root

MAX_OPERATIONS = 5000


def read_description(documents: Documents, choice: ServerChoice) -> Description:
    """Return an API's description; raise `BadDescription` if it is unreadable."""
    root = open_root(documents)
    if not isinstance(root.value, Mapping):
        raise BadDescription(f"{documents.name} is no description of an API but {_kind_of(root.value)}")
    version = str(root.value.get("swagger") or root.value.get("openapi") or "")
    if not version.startswith(("2.", "3.0", "3.1", "3.2")):
        problem = f"says {version[:40]!r}" if version else "says neither swagger: '2.0' nor openapi: 3.x"
        raise BadDescription(f"{documents.name} {problem}; Swagger 2 and OpenAPI 3 can be imported")
    if not isinstance(root.value.get("paths"), Mapping):
        raise BadDescription(f"{documents.name} has no paths, and so nothing that could be called")
    dialect = swagger2 if version.startswith("2.") else openapi3
    known = (
        swagger2.host_and_schemes(root, documents.start)
        if dialect is swagger2
        else openapi3.read_servers(root.get("servers"), documents.start, choice)
    )
    choice.check(known)
    operations = tuple(dialect.read_operations(root, documents.start, choice))
    if len(operations) > MAX_OPERATIONS:
        raise BadDescription(f"{documents.name} has more than {MAX_OPERATIONS} operations")
    title = root.get("info").get_text("title").strip()
    return Description(title, version, operations, dialect.read_schemes(root), tuple(known))


def _kind_of(value: object) -> str:
    return "a list" if isinstance(value, list) else "nothing" if value is None else "plain text"


def select_operations(
    operations: Sequence[Operation], names: Sequence[str], wanted: Sequence[str]
) -> list[bool]:
    """Return one boolean for each operation: True if any word matches.

    Without words all are True. A word is a method, a path (`/pets/*`, `/pets/**`), `tag:NAME`, an
    operationId or a tool's name, each with `*` for any text; a method before another word narrows it: "GET
    /pets/*". Raises `NoSource` for a word that matches nothing.
    """
    pairs = list(zip(operations, names, strict=True))
    known = [text for each in operations for text in (each.id, each.path, *each.tags) if text]
    return choose_things(
        pairs, wanted, lambda word, pair: _matches_word(word, *pair), noun="operation", known=[*known, *names]
    )


def _matches_word(word: str, operation: Operation, name: str) -> bool:
    first, _, rest = word.strip().partition(" ")
    if first.lower() in METHODS:
        return operation.method == first.lower() and (
            not rest.strip() or _matches_word(rest, operation, name)
        )
    if word.startswith("tag:"):
        return any(matches_pattern(tag, word.removeprefix("tag:").strip()) for tag in operation.tags)
    if word.startswith("/"):
        return _path_pattern(word).fullmatch(operation.path) is not None
    return any(matches_pattern(text, word) for text in (operation.id, name, *operation.tags) if text)


def _path_pattern(pattern: str) -> re.Pattern[str]:
    """Return a path glob as a regular expression. `*` stays inside a segment, `**` does not."""
    parts = re.split(r"(\*\*|\*)", pattern.rstrip())
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts))


def find_operations(
    source: str, chosen: Iterable[str], options: OpenApiOptions, choice: ServerChoice, reading: "Reading"
) -> ImportSource[Imported]:
    """Read a description and return the results of the import.

    Raises `BadDescription`, and `NoSource` for a word that matches nothing.
    """
    with httpx.Client(follow_redirects=False) as client:
        documents = reading.open_documents(source, client)
        description = read_description(documents, choice)
        names = name_operations(description.operations, options.prefix)
        meant = select_operations(description.operations, names, list(chosen))
        # References are followed as they are met, so the connection stays until everything is read.
        results = tuple(import_operations(description, options, meant))
    title = f"{description.title} in " if description.title else ""
    described = Source(f"{title}{documents.name}", "--prefix")
    return ImportSource(
        importer="openapi",
        noun="operation",
        title=description.title or described.name,
        name=api_name(description, options),
        origin=described,
        present=frozenset(map(str, description.operations)),
        results=results,
        servers=description.servers,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading a description.

    `root` is the folder that its references may not leave. `report` receives a line for each redirect.
    """

    root: Path | None
    report: Report

    def open_documents(self, source: str, client: httpx.Client) -> Documents:
        """Return the documents of a file or a URL; raise `BadDescription`."""
        if source.startswith(("http://", "https://")):
            documents = UrlDocuments(source, client, self.report)
            documents.name = _without_secrets(source)
            return documents
        path = Path(source)
        if not path.is_file():
            raise BadDescription(f"there is no file {source}; name one, or a URL with https://")
        return FileDocuments(path, self.root)


def _without_secrets(url: str) -> str:
    """Return a URL without possible secrets: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
