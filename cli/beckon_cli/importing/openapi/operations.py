"""The operations of an API in one model, whichever version its description is written in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_cli.importing.openapi.documents import Node

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
Place = Literal["path", "query", "header", "cookie"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a request carries beside its body; `style` in the words of OpenAPI 3, `json` for a JSON text."""

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
    """What a request's body may be: a schema for each media type; `encodings` of its fields by media type."""

    schemas: Mapping[str, Node]
    required: bool = False
    description: str = ""
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scheme:
    """How an API wants to know who calls: `kind` is bearer, basic, header, query or cookie, else unknown."""

    title: str
    kind: str
    name: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `security` lists the ways in, each a set of scheme names that are needed together; an empty one is open to
    everybody. `problem` says why this operation cannot be read at all.
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
        """Return what people call it by: GET /pets."""
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class Description:
    """An API: what it is called, where it is, how it knows its callers, and what it can do."""

    title: str
    version: str
    operations: tuple[Operation, ...]
    schemes: Mapping[str, Scheme]
    servers: tuple[str, ...]
