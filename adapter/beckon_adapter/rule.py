"""The rules of EventTypes, `beckon.dev/http` and `beckon.dev/mcp`: HTTP requests, and tools of MCP servers.

The HTTP rule:

    method: GET                     # default: GET, or POST where there is a body
    url: https://api.example.com/v1/cities/{city}/weather
    query: {units: "{units}", ids: {value: "{ids}", style: form, explode: false}}
    headers: {X-Trace: "{trace}"}
    cookies: {}
    body: {city: "{city}", note: "for {name}"}
    body_type: application/json
    result: "items[].{id: id, name: name}"
    timeout: 10s
    retries: 2
    credential: petstore

`{name}` is replaced by an argument of the call; `{{` and `}}` are literal braces. A field with an absent
argument is left out, except the URL, which needs all of its arguments. A text of only `{name}` keeps the
type of the argument in a JSON body. An MCP rule names a server, or its address, and the tool there.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

import jmespath
import orjson
from jmespath.exceptions import JMESPathError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from beckon_adapter.templates import check_cookie, check_header, parse_target, parse_template
from beckon_contract.catalogue.annotations import HTTP, MCP, parse_timeout
from beckon_contract.fields import FieldProblem, InvalidFields
from beckon_contract.yamltext import NotReadable, read_document

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Style = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "json"]
Scalar = str | bool | int | float

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
"""Methods of which a second request does what the first did (RFC 9110, 9.2.2)."""

_WITHOUT_BODY = frozenset({"GET", "HEAD"})
_PLACE = f"metadata.annotations[{HTTP}]"


class InvalidRule(InvalidFields):
    """A rule has mistakes; `problems` lists their places and cures."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Encoding(_Strict):
    """How a list or an object is written as parameters, in the words of OpenAPI.

    `json` writes it as one JSON text. `explode` is true where it is not said, for `form` and `deepObject`.
    """

    style: Style = "form"
    explode: bool | None = None

    @model_validator(mode="after")
    def _check_exists(self) -> Self:
        if self.style == "deepObject" and self.explode is False:
            raise ValueError("deepObject is always exploded; leave explode out")
        return self

    @property
    def exploded(self) -> bool:
        """True if each value becomes a parameter of its own."""
        return self.style in ("form", "deepObject") if self.explode is None else self.explode


class Parameter(Encoding):
    """A parameter of the query with a style of its own; `value` is a template."""

    value: str


def _kind_of(value: object) -> str:
    return "styled" if isinstance(value, Mapping | Parameter) else "text"


QueryValue = Annotated[
    Annotated[Scalar, Tag("text")] | Annotated[Parameter, Tag("styled")], Discriminator(_kind_of)
]


def read_seconds(value: object) -> object:
    """Read "10s" as `beckon.dev/timeout` is read; a number is seconds."""
    return parse_timeout(str(value)) if isinstance(value, str | int | float) else value


Seconds = Annotated[float, BeforeValidator(read_seconds)]
OwnersName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")]
"""The name that the adapter's owner gave to a credential or a server."""


class HttpRule(_Strict):
    """One rule; every field as the annotation has it. `timeout` is in seconds, for each attempt."""

    method: Method
    url: str
    query: Mapping[str, QueryValue] = {}
    headers: Mapping[str, Scalar] = {}
    cookies: Mapping[str, Scalar] = {}
    body: JsonValue = None
    body_type: str = Field(JSON, pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$")
    encoding: Mapping[str, Encoding] = {}
    result: str | None = None
    timeout: Seconds = 10.0
    retries: int = Field(2, ge=0, le=5, strict=True)
    credential: OwnersName | None = None

    @model_validator(mode="before")
    @classmethod
    def _choose_method(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("method") is None:
            return {**values, "method": "POST" if values.get("body") is not None else "GET"}
        return values

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        parse_target(value)
        return value

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, value: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        for name, text in value.items():
            check_header(name, parse_template(str(text)))
        if len({name.lower() for name in value}) < len(value):
            raise ValueError("the same header is named twice; the case of names does not count")
        return value

    @field_validator("cookies")
    @classmethod
    def _are_cookies(cls, value: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        for name in value:
            check_cookie(name)
        return value

    @field_validator("result")
    @classmethod
    def _is_expression(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                jmespath.compile(value)
        except JMESPathError as error:
            lines = str(error).splitlines()
            raise ValueError(f"no JMESPath expression (https://jmespath.org): {lines[0][:200]}") from None
        return value

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.has_body and self.method in _WITHOUT_BODY:
            raise ValueError(f"a {self.method} carries no body; remove body, or write method: POST")
        if self.body_type in (FORM, MULTIPART) and self.has_body and not isinstance(self.body, Mapping):
            raise ValueError(f"a body of {self.body_type} must be a mapping of its fields")
        if not self.is_structured and self.has_body and not isinstance(self.body, str):
            raise ValueError(f"a body of {self.body_type} must be a text; write it in quotes")
        if self.encoding and self.body_type not in (FORM, MULTIPART):
            raise ValueError(f"encoding belongs to a body_type of {FORM} or {MULTIPART}")
        if unknown := sorted(
            self.encoding.keys() - (self.body.keys() if isinstance(self.body, dict) else ())
        ):
            raise ValueError(f"encoding names {unknown[0]!r}, which is no field of the body")
        for _place, text in self.templates():
            parse_template(text)
        return self

    @property
    def has_body(self) -> bool:
        """True if a request by this rule has a body."""
        return self.body is not None

    @property
    def is_json(self) -> bool:
        """True if the body is JSON or in a format based on it."""
        return self.body_type == JSON or self.body_type.endswith("+json")

    @property
    def is_structured(self) -> bool:
        """True if the body is JSON, a form, or multipart."""
        return self.is_json or self.body_type in (FORM, MULTIPART)

    def templates(self) -> Iterator[tuple[str, str]]:
        """Yield the path and text of every field with templates."""
        yield "url", self.url
        for name, parameter in self.query.items():
            text = parameter.value if isinstance(parameter, Parameter) else str(parameter)
            yield f"query[{name}]", text
        for where, values in (("headers", self.headers), ("cookies", self.cookies)):
            yield from ((f"{where}[{name}]", str(value)) for name, value in values.items())
        yield from _iterate_texts("body", self.body)

    @property
    def arguments(self) -> frozenset[str]:
        """The names of all arguments in the rule."""
        return frozenset(name for _, text in self.templates() for name in parse_template(text).names)


def parse_rule(text: str, parameters: Mapping[str, Any] | None = None) -> HttpRule:
    """Read the annotation's YAML or JSON; raise `InvalidRule`.

    The error has every mistake that can be found at once. With `parameters`, the JSON Schema of the tool,
    an argument that does not exist is a mistake as well.
    """
    try:
        document = read_document(text)
    except NotReadable as error:
        raise InvalidRule([FieldProblem(_PLACE, f"not YAML: {error}")]) from None
    if not isinstance(document, dict):
        raise InvalidRule([FieldProblem(_PLACE, "must be a mapping with at least url: https://…")])
    try:
        orjson.dumps(document)
    except TypeError as error:
        raise InvalidRule([FieldProblem(_PLACE, f"holds what JSON cannot say: {error}")]) from None
    try:
        rule = HttpRule.model_validate(document)
    except ValidationError as error:
        problem = [_to_problem(dict(each)) for each in error.errors(include_url=False)]
        raise InvalidRule({problem.path: problem for problem in reversed(problem)}.values()) from None
    if parameters is not None and (strangers := list(_find_unknown(rule, parameters))):
        raise InvalidRule(strangers)
    return rule


def _find_unknown(rule: HttpRule, parameters: Mapping[str, Any]) -> Iterator[FieldProblem]:
    known = parameters.get("properties") or {}
    listed = f"the parameters are {', '.join(sorted(known))}" if known else "the EventType has no parameters"
    for place, text in rule.templates():
        for name in parse_template(text).names:
            if name not in known:
                message = f"names the argument {name!r}, which does not exist; {listed}"
                yield FieldProblem(f"{_PLACE}.{place}", message)


def _iterate_texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _iterate_texts(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _iterate_texts(f"{path}[{index}]", inner)


def _to_problem(error: dict[str, Any]) -> FieldProblem:
    """Return a pydantic error as a mistake in a manifest."""
    steps = [step for step in error["loc"] if step not in ("styled", "text", "str", "bool", "int", "float")]
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        known = Parameter if steps[0] == "query" else Encoding if steps[0] == "encoding" else HttpRule
        message = f"unknown field; the fields here are {', '.join(known.model_fields)}"
    elif steps[:1] == ["query"] and len(steps) == 2:
        message = (
            'must be a text such as "{units}", a number, or {value: "{ids}", style: form, explode: false}'
        )
    elif error["type"] == "missing":
        message = "missing"
    return FieldProblem(".".join([_PLACE, *map(str, steps)]), message)


SETTING = "BECKON_ADAPTER_MCP_SERVERS"
_SHORTEST = 6  # characters of a secret that is looked for; a shorter one is part of ordinary words


class NamedServer(BaseModel):
    """One entry of the setting: a server at a URL, or a command that speaks MCP over its standard streams.

    A command has the environment of `env` and nothing of the adapter's but PATH and HOME. `secret` names
    those of `env` whose values never appear in the log and in results.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: OwnersName
    url: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = Field({}, repr=False)
    secret: frozenset[str] = frozenset()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secret values to hide, the longest first.

        Values shorter than `_SHORTEST` characters are not hidden.
        """
        values = {
            self.env[name] for name in self.secret & self.env.keys() if len(self.env[name]) >= _SHORTEST
        }
        return tuple(sorted(values, key=len, reverse=True))

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise ValueError("a server has either a url or a command")
        return self


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def check_fixed_url(value: str, what: str) -> str:
    """Return a URL; raise `ValueError` if it is none, or has arguments in it."""
    if any(segment.names for segment in parse_target(value).path):
        raise ValueError(f"the URL of {what} has no arguments in it")
    return value


class McpRule(BaseModel):
    """One rule; `timeout` is in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    tool: str = Field(min_length=1, max_length=128)
    timeout: Seconds = 60.0
    credential: OwnersName | None = None

    @field_validator("server")
    @classmethod
    def _is_server(cls, value: str) -> str:
        if "://" in value:
            check_fixed_url(value, "a server")
        elif not _NAME.fullmatch(value):
            raise ValueError("must be the name of a server, or its URL such as https://mcp.example.com/mcp")
        return value


def parse_mcp_rule(text: str) -> McpRule:
    """Read the annotation's YAML or JSON; raise `InvalidRule`."""
    return parse_named_rule(text, McpRule, MCP, "server and tool")


Rule = TypeVar("Rule", bound=BaseModel)


def parse_named_rule(text: str, model: type[Rule], annotation: str, members: str) -> Rule:
    """Read an annotation's YAML or JSON as a rule with these members at least; raise `InvalidRule`."""
    place = f"metadata.annotations[{annotation}]"
    try:
        document = read_document(text)
    except NotReadable as error:
        raise InvalidRule([FieldProblem(place, f"not YAML: {error}")]) from None
    if not isinstance(document, dict):
        raise InvalidRule([FieldProblem(place, f"must be a mapping with {members}")])
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InvalidRule(
            FieldProblem(".".join([place, *map(str, each["loc"])]), each["msg"].removeprefix("Value error, "))
            for each in error.errors(include_url=False)
        ) from None
