"""OpenAPI 3.0 and 3.1: operations as their descriptions have them."""

from collections.abc import Iterator, Mapping
from typing import Any

from beckon_cli.importing.openapi import servers
from beckon_cli.importing.openapi.documents import Node
from beckon_cli.importing.openapi.operations import METHODS, Body, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.reading import BadDescription
from beckon_cli.importing.openapi.servers import ServerChoice

_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_KINDS = {"oauth2": "bearer", "openIdConnect": "bearer"}
_HINTS = {"oauth2": "an OAuth 2 access token", "openIdConnect": "an access token of OpenID Connect"}


def read_operations(root: Node, base: str, choice: ServerChoice) -> Iterator[Operation]:
    """Yield every operation in its order.

    An operation that cannot be read has a `problem`.
    """
    general = servers.read_servers(root.get("servers"), base, choice) or [servers.absolute("/", base)]
    for path in root.raw("paths").value or {}:
        if path.startswith("x-"):
            continue
        item = root.raw("paths").get(path)
        own = servers.read_servers(item.get("servers"), base, choice) or general
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation.value, Mapping):
                yield _operation(root, item, operation, (method, path), (base, choice, own))


def read_schemes(root: Node) -> dict[str, Scheme]:
    """Return the security schemes by their names."""
    return {
        name: _scheme(name, scheme)
        for name, scheme in root.get("components").get("securitySchemes").entries()
    }


def required_schemes(node: Node) -> tuple[tuple[str, ...], ...] | None:
    """Return the alternatives of `security`, `None` if it is absent."""
    stated = node.value.get("security")
    if not isinstance(stated, list):
        return None
    return tuple(tuple(map(str, style)) for style in stated if isinstance(style, Mapping))


def described(operation: Node, method: str, path: str) -> dict[str, Any]:
    """Return the fields of an operation common to both versions.

    Swagger 2 and OpenAPI 3 spell them in the same way.
    """
    tags = operation.value.get("tags")
    return {
        "method": method,
        "path": path,
        "id": operation.text("operationId"),
        "tags": tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        "summary": operation.text("summary"),
        "description": operation.text("description"),
        "deprecated": operation.flag("deprecated"),
    }


def parameters_of(item: Node, operation: Node) -> list[Node]:
    """Return the parameters of a path and of its operation.

    The operation's override the path's of the same name and place.
    """
    found = [*item.get("parameters").items(), *operation.get("parameters").items()]
    named = {(each.text("name"), each.text("in")): each for each in found}
    return [*named.values()]


def _operation(
    root: Node,
    item: Node,
    operation: Node,
    which: tuple[str, str],
    where: tuple[str, ServerChoice, list[str]],
) -> Operation:
    said = described(operation, *which)
    base, choice, outer = where
    try:
        own = servers.read_servers(operation.get("servers"), base, choice) or outer
        stated = required_schemes(operation)
        return Operation(
            **said,
            parameters=tuple(_parameters(item, operation)),
            body=_body(operation.get("requestBody")),
            security=(required_schemes(root) or ()) if stated is None else stated,
            server=servers.choose(own, choice),
            answers=tuple(_answers(operation)),
        )
    except BadDescription as error:
        return Operation(**said, problem=str(error))


def _parameters(item: Node, operation: Node) -> Iterator[Parameter]:
    for each in parameters_of(item, operation):
        place = each.text("in")
        if place not in _STYLES or not each.text("name"):
            continue
        content = dict(each.get("content").entries())
        schema = next(iter(content.values())).raw("schema") if content else each.raw("schema")
        explode = each.value.get("explode")
        yield Parameter(
            each.text("name"),
            place,  # type: ignore[arg-type]  # _STYLES holds the places alone
            schema,
            required=each.flag("required") or place == "path",
            description=each.text("description"),
            style="json" if content else each.text("style") or _STYLES[place],
            explode=explode if isinstance(explode, bool) else None,
            example=_example(each),
        )


def _example(parameter: Node) -> Any:
    """Return a parameter's example beside its schema, the first of several."""
    first = next((example.value for _, example in parameter.get("examples").entries()), None)
    return parameter.value.get("example", first.get("value") if isinstance(first, Mapping) else None)


def _body(body: Node) -> Body | None:
    content = dict(body.get("content").entries())
    if not content:
        return None
    encodings = {name: media.get("encoding").value for name, media in content.items()}
    return Body(
        {name: media.raw("schema") for name, media in content.items()},
        body.flag("required"),
        body.text("description"),
        {name: encoding for name, encoding in encodings.items() if isinstance(encoding, Mapping)},
    )


def _answers(operation: Node) -> Iterator[str]:
    """Yield the media types of successful and default responses."""
    for status, response in operation.get("responses").entries():
        if status.startswith("2") or status == "default":
            yield from (name for name, _ in response.get("content").entries())


def _scheme(name: str, scheme: Node) -> Scheme:
    kind, hint = scheme.text("type"), scheme.text("description")
    if kind == "apiKey":
        return Scheme(name, scheme.text("in"), scheme.text("name"), hint)
    if kind == "http":
        return Scheme(name, scheme.text("scheme").lower(), "", hint)
    return Scheme(name, _KINDS.get(kind, kind), "", _HINTS.get(kind, hint))
