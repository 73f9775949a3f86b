"""OpenAPI 3.0 and 3.1: operations as their descriptions have them."""

from collections.abc import Iterator, Mapping
from typing import Any

from beckon_cli.importing.openapi import servers
from beckon_cli.importing.openapi.documents import BadDescription, Node
from beckon_cli.importing.openapi.operations import METHODS, Body, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.servers import ServerChoice

_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_KINDS = {"oauth2": "bearer", "openIdConnect": "bearer"}
_HINTS = {"oauth2": "an OAuth 2 access token", "openIdConnect": "an access token of OpenID Connect"}


def read_operations(root: Node, base: str, choice: ServerChoice) -> Iterator[Operation]:
    """Yield every operation in its order.

    An operation that cannot be read has a `problem`.
    """
    general = servers.read_servers(root.get("servers"), base, choice) or [servers.absolute_url("/", base)]
    for path in root.get_raw("paths").value or {}:
        if path.startswith("x-"):
            continue
        item = root.get_raw("paths").get(path)
        own = servers.read_servers(item.get("servers"), base, choice) or general
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation.value, Mapping):
                yield _read_operation(root, item, operation, (method, path), (base, choice, own))


def read_schemes(root: Node) -> dict[str, Scheme]:
    """Return the security schemes by their names."""
    return {
        name: _read_scheme(name, scheme)
        for name, scheme in root.get("components").get("securitySchemes").entries()
    }


def required_schemes(node: Node) -> tuple[tuple[str, ...], ...] | None:
    """Return the alternatives of `security`, `None` if it is absent."""
    stated = node.value.get("security")
    if not isinstance(stated, list):
        return None
    return tuple(tuple(map(str, style)) for style in stated if isinstance(style, Mapping))


def common_fields(operation: Node, method: str, path: str) -> dict[str, Any]:
    """Return the fields of an operation common to both versions.

    Swagger 2 and OpenAPI 3 spell them in the same way.
    """
    tags = operation.value.get("tags")
    return {
        "method": method,
        "path": path,
        "id": operation.get_text("operationId"),
        "tags": tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        "summary": operation.get_text("summary"),
        "description": operation.get_text("description"),
        "deprecated": operation.get_flag("deprecated"),
    }


def parameters_of(item: Node, operation: Node) -> list[Node]:
    """Return the parameters of a path and of its operation.

    The operation's override the path's of the same name and place.
    """
    found = [*item.get("parameters").items(), *operation.get("parameters").items()]
    named = {(each.get_text("name"), each.get_text("in")): each for each in found}
    return [*named.values()]


def _read_operation(
    root: Node,
    item: Node,
    operation: Node,
    which: tuple[str, str],
    where: tuple[str, ServerChoice, list[str]],
) -> Operation:
    said = common_fields(operation, *which)
    base, choice, outer = where
    try:
        own = servers.read_servers(operation.get("servers"), base, choice) or outer
        stated = required_schemes(operation)
        return Operation(
            **said,
            parameters=tuple(_read_parameters(item, operation)),
            body=_read_body(operation.get("requestBody")),
            security=(required_schemes(root) or ()) if stated is None else stated,
            server=servers.choose_server(own, choice),
            answers=tuple(_answer_types(operation)),
        )
    except BadDescription as error:
        return Operation(**said, problem=str(error))


def _read_parameters(item: Node, operation: Node) -> Iterator[Parameter]:
    for each in parameters_of(item, operation):
        place = each.get_text("in")
        if place not in _STYLES or not each.get_text("name"):
            continue
        content = dict(each.get("content").entries())
        schema = next(iter(content.values())).get_raw("schema") if content else each.get_raw("schema")
        explode = each.value.get("explode")
        yield Parameter(
            each.get_text("name"),
            place,  # type: ignore[arg-type]  # _STYLES holds the places alone
            schema,
            required=each.get_flag("required") or place == "path",
            description=each.get_text("description"),
            style="json" if content else each.get_text("style") or _STYLES[place],
            explode=explode if isinstance(explode, bool) else None,
            example=_read_example(each),
        )


def _read_example(parameter: Node) -> Any:
    """Return a parameter's example beside its schema, the first of several."""
    first = next((example.value for _, example in parameter.get("examples").entries()), None)
    return parameter.value.get("example", first.get("value") if isinstance(first, Mapping) else None)


def _read_body(body: Node) -> Body | None:
    content = dict(body.get("content").entries())
    if not content:
        return None
    encodings = {name: media.get("encoding").value for name, media in content.items()}
    return Body(
        {name: media.get_raw("schema") for name, media in content.items()},
        body.get_flag("required"),
        body.get_text("description"),
        {name: encoding for name, encoding in encodings.items() if isinstance(encoding, Mapping)},
    )


def _answer_types(operation: Node) -> Iterator[str]:
    """Yield the media types of successful and default responses."""
    for status, response in operation.get("responses").entries():
        if status.startswith("2") or status == "default":
            yield from (name for name, _ in response.get("content").entries())


def _read_scheme(name: str, scheme: Node) -> Scheme:
    kind, hint = scheme.get_text("type"), scheme.get_text("description")
    if kind == "apiKey":
        return Scheme(name, scheme.get_text("in"), scheme.get_text("name"), hint)
    if kind == "http":
        return Scheme(name, scheme.get_text("scheme").lower(), "", hint)
    return Scheme(name, _KINDS.get(kind, kind), "", _HINTS.get(kind, hint))
