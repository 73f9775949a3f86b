"""A whole description: its version told, its operations read."""

from collections.abc import Mapping

from beckon_cli.importing.openapi import openapi3, servers, swagger2
from beckon_cli.importing.openapi.documents import open_root
from beckon_cli.importing.openapi.operations import Description
from beckon_cli.importing.openapi.reading import BadDescription, Documents
from beckon_cli.importing.openapi.servers import ServerChoice

MAX_OPERATIONS = 5000


def read_description(documents: Documents, choice: ServerChoice) -> Description:
    """Return an API's description; raise `BadDescription` where it is none that can be read."""
    root = open_root(documents)
    if not isinstance(root.value, Mapping):
        raise BadDescription(f"{documents.name} is no description of an API but {_kind(root.value)}")
    version = str(root.value.get("swagger") or root.value.get("openapi") or "")
    if not version.startswith(("2.", "3.0", "3.1", "3.2")):
        said = f"says {version[:40]!r}" if version else "says neither swagger: '2.0' nor openapi: 3.x"
        raise BadDescription(f"{documents.name} {said}; Swagger 2 and OpenAPI 3 can be imported")
    if not isinstance(root.value.get("paths"), Mapping):
        raise BadDescription(f"{documents.name} has no paths, and so nothing that could be called")
    dialect = swagger2 if version.startswith("2.") else openapi3
    known = (
        servers.host_and_schemes(root, documents.start)
        if dialect is swagger2
        else servers.read_servers(root.get("servers"), documents.start, choice)
    )
    choice.check(known)
    operations = tuple(dialect.read_operations(root, documents.start, choice))
    if len(operations) > MAX_OPERATIONS:
        raise BadDescription(f"{documents.name} has more than {MAX_OPERATIONS} operations")
    title = root.get("info").text("title").strip()
    return Description(title, version, operations, dialect.read_schemes(root), tuple(known))


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else "nothing" if value is None else "plain text"
