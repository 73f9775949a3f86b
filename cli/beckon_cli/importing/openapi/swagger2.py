"""Swagger 2: operations in the words of OpenAPI 3."""

from collections.abc import Iterator, Mapping
from typing import Any

from beckon_cli.importing.openapi import servers
from beckon_cli.importing.openapi.documents import Node
from beckon_cli.importing.openapi.openapi3 import described, parameters_of, required_schemes
from beckon_cli.importing.openapi.operations import METHODS, Body, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.reading import BadDescription
from beckon_cli.importing.openapi.servers import ServerChoice

_FORM, _MULTIPART, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
_PLACES = ("path", "query", "header")
_EXPLODED = {"multi": ("form", True), "csv": ("form", False)}
_FORMATS = {**_EXPLODED, "ssv": ("spaceDelimited", False), "pipes": ("pipeDelimited", False)}
_NOT_SCHEMA = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})
_KINDS = {"basic": "basic", "oauth2": "bearer"}


def read_operations(root: Node, base: str, choice: ServerChoice) -> Iterator[Operation]:
    """Yield every operation in its order.

    An operation that cannot be read has a `problem`.
    """
    server = servers.choose(servers.host_and_schemes(root, base), choice)
    for path in root.raw("paths").value or {}:
        if path.startswith("x-"):
            continue
        item = root.raw("paths").get(path)
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation.value, Mapping):
                yield _operation(root, item, operation, (method, path, server))


def read_schemes(root: Node) -> dict[str, Scheme]:
    """Return the security schemes by their names."""
    return {name: _scheme(name, scheme) for name, scheme in root.get("securityDefinitions").entries()}


def _operation(root: Node, item: Node, operation: Node, which: tuple[str, str, str]) -> Operation:
    method, path, server = which
    said = described(operation, method, path)
    try:
        parameters = parameters_of(item, operation)
        stated = required_schemes(operation)
        return Operation(
            **said,
            parameters=tuple(_parameter(each) for each in parameters if each.text("in") in _PLACES),
            body=_body(parameters, _types(root, operation, "consumes")),
            security=(required_schemes(root) or ()) if stated is None else stated,
            server=server,
            answers=tuple(_types(root, operation, "produces")),
        )
    except BadDescription as error:
        return Operation(**said, problem=str(error))


def _parameter(each: Node) -> Parameter:
    place = each.text("in")
    style, explode = _FORMATS.get(each.text("collectionFormat") or "csv", ("tsv", False))
    if place != "query":
        style, explode = "simple", False
    return Parameter(
        each.text("name"),
        place,  # type: ignore[arg-type]  # only those of _PLACES come here
        _schema(each),
        required=each.flag("required") or place == "path",
        description=each.text("description"),
        style=style,
        explode=explode,
        example=each.value.get("x-example"),
    )


def _schema(parameter: Node) -> Node:
    """Return a parameter's schema, made of the keywords beside its name."""
    said = {key: value for key, value in parameter.value.items() if key not in _NOT_SCHEMA}
    return Node(said, parameter.resolver)


def _body(parameters: list[Node], consumes: list[str]) -> Body | None:
    for each in parameters:
        if each.text("in") == "body":
            kinds = [kind for kind in consumes if kind not in (_FORM, _MULTIPART)] or [_JSON]
            schema = each.raw("schema")
            return Body(dict.fromkeys(kinds, schema), each.flag("required"), each.text("description"))
    fields = [each for each in parameters if each.text("in") == "formData" and each.text("name")]
    return _form(fields, consumes) if fields else None


def _form(fields: list[Node], consumes: list[str]) -> Body:
    files = any(each.text("type") == "file" for each in fields)
    kind = _MULTIPART if files or (_MULTIPART in consumes and _FORM not in consumes) else _FORM
    properties = {each.text("name"): _field(each) for each in fields}
    required = [each.text("name") for each in fields if each.flag("required")]
    encoding = {each.text("name"): _encoding(each) for each in fields if each.text("type") == "array"}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return Body({kind: Node(schema, fields[0].resolver)}, bool(required), "", {kind: encoding})


def _field(field: Node) -> dict[str, Any]:
    said = {**_schema(field).value, "description": field.text("description")}
    return {**said, "type": "string", "format": "binary"} if said.get("type") == "file" else said


def _encoding(field: Node) -> dict[str, Any]:
    style, explode = _FORMATS.get(field.text("collectionFormat") or "csv", ("tsv", False))
    return {"style": style, "explode": explode}


def _types(root: Node, operation: Node, key: str) -> list[str]:
    stated = operation.value.get(key, root.value.get(key))
    return [kind for kind in stated if isinstance(kind, str)] if isinstance(stated, list) else []


def _scheme(name: str, scheme: Node) -> Scheme:
    kind, hint = scheme.text("type"), scheme.text("description")
    if kind == "apiKey":
        return Scheme(name, scheme.text("in"), scheme.text("name"), hint)
    return Scheme(name, _KINDS.get(kind, kind), "", "an OAuth 2 access token" if kind == "oauth2" else hint)
