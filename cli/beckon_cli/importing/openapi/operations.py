"""Operations of a description, and their security as credentials."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_cli.importing.candidates import Credential, Part
from beckon_cli.importing.openapi.references import Node
from beckon_cli.importing.openapi.words import is_version, split_words, to_plain_text

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
    """A security scheme of an API. `kind` is bearer, basic, header, query or cookie, else unknown."""

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


_SECRET_NAMES = frozenset({
    "accesskey", "accesstoken", "apikey", "apitoken", "appid", "appkey", "authtoken", "clientsecret", "key",
    "privatetoken", "secret", "subscriptionkey", "token", "wskey", "xapikey", "xapitoken", "xauthtoken",
})  # fmt: skip
_SECRET_WORDS = re.compile(
    r"\b(?:api|access|auth(?:entication)?|application|developer|subscription|private)[ _-]?(?:key|token)\b|"
    r"\bgetting a token\b",
    re.IGNORECASE,
)
_SURE = _SECRET_NAMES - {"key", "token", "secret", "appid"}
_TITLE_NOISE = frozenset({
    "a", "an", "and", "api", "apis", "by", "documentation", "docs", "for", "http", "interactive", "of",
    "open", "openapi", "public", "rest", "service", "services", "specification", "swagger", "the", "ui",
    "v1", "v2", "v3", "v4", "web",
})  # fmt: skip


def to_slug(title: str, otherwise: str = "api") -> str:
    """Return a short name for an API, of lower-case letters, digits and dashes."""
    parts = re.findall(r"[a-z0-9]+", title.lower())
    words = [word for word in parts if word not in _TITLE_NOISE and not is_version(word)]
    text = "-".join(words or split_words(otherwise) or ["api"])[:30].strip("-")
    return text if text[:1].isalpha() else f"api-{text}"


def credential_for(
    operation: Operation, description: Description, wanted: str, name: str, keep: frozenset[str]
) -> Credential:
    """Return the credential of an operation.

    Its parts come from the first security requirement, and from parameters that are keys or tokens.
    `wanted` is the name given by the user, `name` the default. The security requirement is ignored if the
    operation allows anonymous calls as well and nothing is `wanted`. Parameters that are named in `keep`
    stay arguments.
    """
    is_open = () in operation.security and not wanted
    alternatives = [alternative for alternative in operation.security if alternative] if not is_open else []
    parts = dict.fromkeys(_scheme_parts(alternatives[0], description.schemes) if alternatives else ())
    schemes = {(each.kind, each.name) for each in description.schemes.values()}
    for each in operation.parameters:
        if each.name not in keep and each.place != "path" and _is_secret(each, schemes, parts):
            parts[Part(each.place, each.name, to_plain_text(each.description, 100))] = None
    credentials = _without_duplicates(part for part in parts if part.name not in keep)
    unknown = [
        part for part in credentials if part.kind not in ("bearer", "basic", "header", "query", "cookie")
    ]
    if unknown:
        return Credential(
            problem=f"wants {unknown[0].kind or 'an unknown kind of credential'}, which no rule has"
        )
    return Credential(wanted or name, credentials) if credentials else Credential(wanted)


def _scheme_parts(alternative: tuple[str, ...], schemes: Mapping[str, Scheme]) -> Iterator[Part]:
    for title in alternative:
        scheme = schemes.get(title)
        if scheme is not None:
            yield Part(scheme.kind, scheme.name, to_plain_text(scheme.hint, 100))


def _is_secret(each: Parameter, schemes: set[tuple[str, str]], parts: Mapping[Part, None]) -> bool:
    """Return True if a parameter is a key or a token.

    It belongs to one of the schemes, or is recognised by its name and description.
    """
    if any(part.kind == each.place and part.name == each.name for part in parts):
        return False
    if (each.place, each.name) in schemes:
        return True
    if each.place == "header" and each.name.lower() == "authorization":
        return False
    name = re.sub(r"[^a-z0-9]", "", each.name.lower())
    if name in _SURE:
        return True
    return name in _SECRET_NAMES and bool(_SECRET_WORDS.search(each.description))


def _without_duplicates(parts: Iterator[Part]) -> tuple[Part, ...]:
    unique: dict[tuple[str, str], Part] = {}
    for part in parts:
        unique.setdefault((part.kind, part.name), part)
    return tuple(unique.values())
