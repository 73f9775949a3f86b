"""The parts of a request as one flat object of arguments.

Models handle a flat object best.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beckon_cli.importing.candidates import Credential
from beckon_cli.importing.openapi.bodies import (
    FlatRequest,
    choose_media,
    constant_of,
    flatten_body,
    to_literal,
)
from beckon_cli.importing.openapi.operations import Operation, Parameter
from beckon_cli.importing.openapi.schemas import SchemaBundle, example_of
from beckon_cli.importing.openapi.words import MAX_PARAMETER, argument_name, says_nothing, to_plain_text
from beckon_contract.schema.expansion import Expansion, Stack
from beckon_contract.schema.keywords import Schema, stated_types, without_extensions
from beckon_contract.schema.parameters import normalise

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_ORDER = ("path", "query", "header", "cookie")
_SET_OTHERWISE = frozenset({"accept", "content-type", "authorization", "cookie"})
_OF_THE_CONNECTION = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "forwarded", "host", "http2-settings",
    "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "x-client-ip", "x-forwarded-for", "x-forwarded-host",
    "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-proto", "x-forwarded-server", "x-host",
    "x-http-method", "x-http-method-override", "x-method-override", "x-original-host", "x-original-url",
    "x-real-ip", "x-rewrite-url", "true-client-ip",
})  # fmt: skip
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SPECIAL = frozenset({"spaceDelimited", "pipeDelimited", "deepObject", "json"})


class CannotImport(ValueError):
    """An operation cannot become a tool; the message says why."""


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """The schema of one parameter, in two forms.

    `schema` is in normal form. `shape` is that schema expanded, to look into it.
    """

    schema: Any
    shape: Schema

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types stated by the schema."""
        return stated_types(self.shape)


def flatten_operation(
    operation: Operation, credential: Credential, fixed: Mapping[str, str], max_depth: int
) -> tuple[FlatRequest, Schema]:
    """Return the flat request of an operation and the JSON Schema of its arguments.

    `fixed` are values of parameters that the user has given; they are no arguments then.
    Raises `CannotImport`, `BadDescription` for references that lead nowhere, and `SchemaError`.
    """
    flat = FlatRequest()
    parameters = [
        each for each in _sort_parameters(operation) if not _is_covered(operation, each, credential, flat)
    ]
    media = choose_media(operation)
    bundle = SchemaBundle(max_depth)
    described = {str(number): bundle.add_schema(each.schema) for number, each in enumerate(parameters)}
    if media is not None:
        described["body"] = bundle.add_schema(media.schema)
    schema = normalise({"type": "object", "properties": described, "$defs": bundle.definitions()})
    expansion = Expansion(schema)
    for number, each in enumerate(parameters):
        node = schema["properties"][str(number)]
        _place_parameter(flat, each, ParameterSchema(node, expansion.expand(node, Stack())[0]), fixed)
    _fill_path(flat, operation.path)
    if media is not None:
        node = schema["properties"]["body"]
        flatten_body(flat, media, node, expansion.expand(node, Stack())[0])
    flat.notes += bundle.repaired
    if bundle.cut:
        flat.notes.append(f"levels of the body below the first {max_depth} are not described")
    return flat, _arguments_schema(flat, schema.get("$defs", {}))


def _sort_parameters(operation: Operation) -> list[Parameter]:
    return sorted(operation.parameters, key=lambda each: _ORDER.index(each.place))


def _is_covered(operation: Operation, each: Parameter, credential: Credential, flat: FlatRequest) -> bool:
    """Return True if a parameter is not an argument.

    The credential sends it, or it is not for a model to set; parameters left out are noted in `flat`.
    Raises `CannotImport` for a required header that no call may set.
    """
    if credential.sends(each.place, each.name):
        return True
    if _is_jsonp(operation, each):
        flat.notes.append(
            f"the query parameter {each.name!r} is left out: it would make a script of the answer"
        )
        return True
    if each.place != "header":
        return False
    name = each.name.lower()
    if name in _SET_OTHERWISE:
        return True
    if name not in _OF_THE_CONNECTION and _HEADER.fullmatch(each.name):
        return False
    if each.required:
        raise CannotImport(f"needs the header {each.name!r}, which no call may set")
    flat.notes.append(f"the header {each.name!r} is left out: no call may set it")
    return True


def _is_jsonp(operation: Operation, each: Parameter) -> bool:
    return (
        operation.method == "get"
        and each.place == "query"
        and not each.required
        and each.name.lower() in ("callback", "jsonp")
        and "url" not in each.description.lower()
    )


def _place_parameter(
    flat: FlatRequest, each: Parameter, known: ParameterSchema, fixed: Mapping[str, str]
) -> None:
    """Make one parameter an argument, or a fixed value, or leave it out."""
    if each.name in fixed:
        _write_parameter(flat, each, known, str(to_literal(fixed[each.name])))
        return
    if each.place == "query" and _is_spread(each, known):
        _spread_object(flat, each, known)
        return
    if reason := _unwritable_reason(each, known):
        if each.required:
            raise CannotImport(f"needs the {each.place} parameter {each.name!r}, {reason}")
        flat.notes.append(f"the {each.place} parameter {each.name!r} is left out: {reason}")
        return
    only = constant_of(known.shape)
    if each.required and isinstance(only, str | int | float):
        written = str(to_literal(only)) if isinstance(only, str) else _write_scalar(only)
    else:
        schema = _with_description(
            known.schema, "" if says_nothing(each.description, each.name) else each.description
        )
        if isinstance(schema, Mapping) and "examples" not in schema:
            schema = {**schema, **example_of({"example": each.example})}
        if each.required and known.kinds == ("array",):
            schema = {"minItems": 1, **schema}  # of an empty list no parameter is written
        argument = flat.take_argument(argument_name(each.name), each.place, schema, required=each.required)
        written = f"{{{argument}}}"
    _write_parameter(flat, each, known, written)


def _write_parameter(flat: FlatRequest, each: Parameter, known: ParameterSchema, written: str) -> None:
    match each.place:
        case "path":
            flat.path[each.name] = f".{written}" if each.style == "label" else written
        case "query":
            flat.query[each.name] = _styled_query(each, known, written)
        case "header":
            flat.headers[each.name] = written
        case "cookie":
            flat.cookies[each.name] = written


def _styled_query(each: Parameter, known: ParameterSchema, written: str) -> Any:
    """Return a query parameter as the rule writes it. Its style is added if it is not the usual one."""
    kinds = set(known.kinds)
    several = bool(kinds & {"array", "object"}) or not kinds
    style = each.style if each.style in _SPECIAL else "form"
    if style == "json":
        return {"value": written, "style": "json"}
    if (
        not several
        or (style != "deepObject" and each.explode is True)
        or (style == "form" and each.explode is None)
    ):
        return written
    if style == "deepObject":
        return {"value": written, "style": "deepObject"}
    return {"value": written, "style": style, "explode": False}


def _unwritable_reason(each: Parameter, known: ParameterSchema) -> str:
    """Return the reason a rule cannot write a parameter. It is "" if a rule can."""
    kinds = set(known.kinds)
    if each.style == "matrix" or (each.style == "label" and "array" in kinds and each.explode is not False):
        return f"whose style {each.style!r} no rule can write"
    if each.style == "tsv" and "array" in kinds:
        return "which is separated by tabs"
    if kinds == {"object"} and (each.place != "query" or each.style in ("spaceDelimited", "pipeDelimited")):
        return f"an object in the {each.place}"
    if each.place in ("path", "header") and each.style == "json":
        return f"a JSON text in the {each.place}"
    return ""


def _is_spread(each: Parameter, known: ParameterSchema) -> bool:
    """Return True if an object's properties are separate parameters.

    In OpenAPI this is the style form, exploded.
    """
    return (
        each.style in ("form", "")
        and each.explode is not False
        and known.kinds == ("object",)
        and bool(known.shape.get("properties"))
    )


def _spread_object(flat: FlatRequest, each: Parameter, known: ParameterSchema) -> None:
    needed = known.shape.get("required", []) if each.required else []
    for name, schema in known.shape["properties"].items():
        argument = flat.take_argument(argument_name(name), each.place, schema, required=name in needed)
        flat.query[name] = f"{{{argument}}}"


def _fill_path(flat: FlatRequest, path: str) -> None:
    """Write the path with arguments for its placeholders.

    A placeholder that is not described becomes a string argument. A query in the path becomes query
    parameters.
    """
    path, _, query = path.partition("?")

    def fill_template(match: re.Match[str]) -> str:
        if match[1] not in flat.path:
            argument = flat.take_argument(argument_name(match[1]), "path", {"type": "string"}, required=True)
            flat.notes.append(f"the path asks for {match[1]!r}, which is not described: a text")
            flat.path[match[1]] = f"{{{argument}}}"
        return flat.path[match[1]]

    flat.url_path = _PLACEHOLDER.sub(fill_template, path)
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        flat.query[name] = _PLACEHOLDER.sub(fill_template, value)


def _with_description(schema: Any, description: str) -> Any:
    text = to_plain_text(description, MAX_PARAMETER)
    if not text:
        return schema
    return {**(schema if isinstance(schema, Mapping) else {}), "description": text}


def _arguments_schema(flat: FlatRequest, definitions: Schema) -> Schema:
    """Return the JSON Schema of the arguments. It allows no other properties."""
    schema: Schema = {"type": "object", "properties": flat.properties}
    if flat.required:
        schema["required"] = list(dict.fromkeys(flat.required))
    if flat.alternatives:
        schema["anyOf"] = flat.alternatives
    complete = {**schema, "additionalProperties": False, **({"$defs": definitions} if definitions else {})}
    return without_extensions(normalise(complete))  # a vendor's extensions are of no use to a caller


def _write_scalar(value: object) -> str:
    """Return a fixed value as written in a URL."""
    return str(value).lower() if isinstance(value, bool) else str(value)
