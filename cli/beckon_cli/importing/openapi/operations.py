"""The operations of an API in one model for all versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_cli.importing.openapi.documents import Node

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
Place = Literal["path", "query", "header", "cookie"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request, outside its body.

    `style` is one of OpenAPI 3's, `json` for a JSON text, or `tsv` for values separated by tabs.
    """

    name: str
    place: Place
    schema: Node
    required: bool = False
    description: str = ""
    style: str = ""
    explode: bool | None = None
    example: Any = None


@dataclass(frozen=True, slots=True)
class Body:
    """The possible bodies of a request: a schema for each media type.

    `encodings` are those of its fields, by media type.
    """

    schemas: Mapping[str, Node]
    required: bool = False
    description: str = ""
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme of an API.

    `kind` is bearer, basic, header, query or cookie, else unknown.
    """

    title: str
    kind: str
    name: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `security` lists the alternatives, each with the names of the schemes that are needed together; an empty
    one allows anonymous calls. `problem` says why this operation cannot be read at all.
    """

    method: str
    path: str
    id: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    description: str = ""
    deprecated: bool = False
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[str, ...], ...] = ()
    server: str = ""
    answers: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        """Return the method and the path: GET /pets."""
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class Description:
    """An API: its title, version, operations, security schemes and servers."""

    title: str
    version: str
    operations: tuple[Operation, ...]
    schemes: Mapping[str, Scheme]
    servers: tuple[str, ...]
