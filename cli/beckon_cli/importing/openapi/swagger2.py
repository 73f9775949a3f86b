"""Swagger 2: operations in the words of OpenAPI 3."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from beckon_cli.importing.documents import BadDescription
from beckon_cli.importing.openapi import openapi3
from beckon_cli.importing.openapi.openapi3 import ServerChoice, common_fields, parameters_of, required_schemes
from beckon_cli.importing.openapi.operations import METHODS, Body, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.references import Node

_FORM, _MULTIPART, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
_PLACES = ("path", "query", "header")
_EXPLODED = {"multi": ("form", True), "csv": ("form", False)}
_FORMATS = {**_EXPLODED, "ssv": ("spaceDelimited", False), "pipes": ("pipeDelimited", False)}
_NOT_SCHEMA = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})
_KINDS = {"basic": "basic", "oauth2": "bearer"}


def host_and_schemes(root: Node, base: str) -> list[str]:
    """Return the server URLs of a Swagger 2 description.

    They are made of its host, basePath and schemes; scheme and host are those of its own URL by default.
    Without any host, basePath is the only one.
    """
    own = urlsplit(base)
    host = root.get_text("host") or (own.netloc if own.scheme.startswith("http") else "")
    stated = root.value.get("schemes")
    listed = stated if isinstance(stated, list) else []
    schemes = [one for one in listed if one in ("https", "http")]
    if not schemes:
        schemes = [own.scheme] if own.scheme.startswith("http") and not root.get_text("host") else ["https"]
    path = root.get_text("basePath")
    return [openapi3.absolute_url(f"{scheme}://{host}{path}", base) for scheme in schemes] if host else [path]


def read_operations(root: Node, base: str, choice: ServerChoice) -> Iterator[Operation]:
    """Yield every operation in its order. An operation that cannot be read has a `problem`."""
    server = openapi3.choose_server(host_and_schemes(root, base), choice)
    for path in root.get_raw("paths").value or {}:
        if path.startswith("x-"):
            continue
        item = root.get_raw("paths").get(path)
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation.value, Mapping):
                yield _read_operation(root, item, operation, (method, path, server))


def read_schemes(root: Node) -> dict[str, Scheme]:
    """Return the security schemes by their names."""
    return {name: _read_scheme(name, scheme) for name, scheme in root.get("securityDefinitions").entries()}


def _read_operation(root: Node, item: Node, operation: Node, which: tuple[str, str, str]) -> Operation:
    method, path, server = which
    fields = common_fields(operation, method, path)
    try:
        parameters = parameters_of(item, operation)
        schemes = required_schemes(operation)
        return Operation(
            **fields,
            parameters=tuple(_read_parameter(each) for each in parameters if each.get_text("in") in _PLACES),
            body=_read_body(parameters, _media_types(root, operation, "consumes")),
            security=(required_schemes(root) or ()) if schemes is None else schemes,
            server=server,
            answers=tuple(_media_types(root, operation, "produces")),
        )
    except BadDescription as error:
        return Operation(**fields, problem=str(error))


def _read_parameter(each: Node) -> Parameter:
    place = each.get_text("in")
    style, explode = _FORMATS.get(each.get_text("collectionFormat") or "csv", ("tsv", False))
    if place != "query":
        style, explode = "simple", False
    return Parameter(
        each.get_text("name"),
        place,  # type: ignore[arg-type]  # only those of _PLACES come here
        _read_schema(each),
        required=each.get_flag("required") or place == "path",
        description=each.get_text("description"),
        style=style,
        explode=explode,
        example=each.value.get("x-example"),
    )


def _read_schema(parameter: Node) -> Node:
    """Return a parameter's schema, made of the keywords beside its name."""
    schema = {key: value for key, value in parameter.value.items() if key not in _NOT_SCHEMA}
    return Node(schema, parameter.resolver)


def _read_body(parameters: list[Node], consumes: list[str]) -> Body | None:
    for each in parameters:
        if each.get_text("in") == "body":
            kinds = [kind for kind in consumes if kind not in (_FORM, _MULTIPART)] or [_JSON]
            schema = each.get_raw("schema")
            return Body(dict.fromkeys(kinds, schema), each.get_flag("required"), each.get_text("description"))
    fields = [each for each in parameters if each.get_text("in") == "formData" and each.get_text("name")]
    return _read_form(fields, consumes) if fields else None


def _read_form(fields: list[Node], consumes: list[str]) -> Body:
    files = any(each.get_text("type") == "file" for each in fields)
    kind = _MULTIPART if files or (_MULTIPART in consumes and _FORM not in consumes) else _FORM
    properties = {each.get_text("name"): _read_field(each) for each in fields}
    required = [each.get_text("name") for each in fields if each.get_flag("required")]
    encoding = {
        each.get_text("name"): _read_encoding(each) for each in fields if each.get_text("type") == "array"
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return Body({kind: Node(schema, fields[0].resolver)}, bool(required), "", {kind: encoding})


def _read_field(field: Node) -> dict[str, Any]:
    schema = {**_read_schema(field).value, "description": field.get_text("description")}
    return {**schema, "type": "string", "format": "binary"} if schema.get("type") == "file" else schema


def _read_encoding(field: Node) -> dict[str, Any]:
    style, explode = _FORMATS.get(field.get_text("collectionFormat") or "csv", ("tsv", False))
    return {"style": style, "explode": explode}


def _media_types(root: Node, operation: Node, key: str) -> list[str]:
    media_types = operation.value.get(key, root.value.get(key))
    return [kind for kind in media_types if isinstance(kind, str)] if isinstance(media_types, list) else []


def _read_scheme(name: str, scheme: Node) -> Scheme:
    kind, hint = scheme.get_text("type"), scheme.get_text("description")
    if kind == "apiKey":
        return Scheme(name, scheme.get_text("in"), scheme.get_text("name"), hint)
    return Scheme(name, _KINDS.get(kind, kind), "", "an OAuth 2 access token" if kind == "oauth2" else hint)
