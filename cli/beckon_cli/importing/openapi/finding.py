"""From what was asked of an API's description to what becomes of its operations."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx

from beckon_cli.importing.candidates import Found
from beckon_cli.importing.files import Source
from beckon_cli.importing.openapi.description import read_description
from beckon_cli.importing.openapi.importer import Imported, Wishes, api_name, import_operations
from beckon_cli.importing.openapi.naming import name_operations
from beckon_cli.importing.openapi.reading import BadDescription, Documents, FileDocuments, Tell, UrlDocuments
from beckon_cli.importing.openapi.selection import select
from beckon_cli.importing.openapi.servers import ServerChoice


def find(
    source: str, chosen: Iterable[str], wishes: Wishes, choice: ServerChoice, reading: "Reading"
) -> Found[Imported]:
    """Read a description and return what becomes of it; raise `BadDescription`."""
    with httpx.Client(follow_redirects=False) as client:
        documents = reading.open(source, client)
        description = read_description(documents, choice)
        names = name_operations(description.operations, wishes.prefix)
        meant = select(description.operations, names, list(chosen))
        # References are followed as they are met, so the connection stays until everything is read.
        results = tuple(import_operations(description, wishes, meant))
    title = f"{description.title} in " if description.title else ""
    named = Source(f"{title}{documents.name}", "--prefix")
    return Found(
        importer="openapi",
        noun="operation",
        title=description.title or named.name,
        name=api_name(description, wishes),
        source=named,
        present=frozenset(map(str, description.operations)),
        results=results,
        servers=description.servers,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """How a description may be read: `root` is the folder that its references may not leave."""

    root: Path | None
    tell: Tell

    def open(self, source: str, client: httpx.Client) -> Documents:
        """Return the documents of a file or a URL; raise `BadDescription`."""
        if source.startswith(("http://", "https://")):
            documents = UrlDocuments(source, client, self.tell)
            documents.name = _public(source)
            return documents
        path = Path(source)
        if not path.is_file():
            raise BadDescription(f"there is no file {source}; name one, or a URL with https://")
        return FileDocuments(path, self.root)


def _public(url: str) -> str:
    """Return a URL without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
