"""OpenAPI 3.0 and 3.1: servers and operations as their descriptions have them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from beckon_cli.importing.documents import BadDescription
from beckon_cli.importing.openapi.operations import METHODS, Body, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.references import Node

_VARIABLE = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The user's choice of a server.

    `wanted` is a URL for all operations, or a number of the list; `variables` are values for a URL's
    variables.
    """

    wanted: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of the wanted server, 0 if none is given."""
        return int(self.wanted) if self.wanted.isdecimal() else 0

    def check(self, servers: list[str]) -> None:
        """Raise `BadDescription` for a number missing from the description's list."""
        if self.wanted.isdecimal() and not 1 <= self.number <= len(servers):
            count = f"{len(servers)} server{'' if len(servers) == 1 else 's'}"
            raise BadDescription(f"--server {self.wanted}: there is only a list of {count}; --list shows it")


def choose_server(servers: list[str], choice: ServerChoice) -> str:
    """Return the server to call.

    It is the requested one, else the first. Of the first, the https URL is used if the list has it as well.
    """
    if choice.number and choice.number <= len(servers):
        return servers[choice.number - 1]
    if choice.wanted and not choice.number:
        return _fill_variables(choice.variables, choice.wanted)
    first = next(iter(servers), "")
    encrypted = first.replace("http://", "https://", 1)
    return encrypted if encrypted in servers else first


def read_servers(servers: Node, base: str, choice: ServerChoice) -> list[str]:
    """Return the absolute URLs of a list of Server Objects (OpenAPI 3)."""
    urls = [_fill_server(server, choice.variables) for server in servers.items()]
    return list(dict.fromkeys(absolute_url(url, base) for url in urls))


def absolute_url(url: str, base: str) -> str:
    """Return a URL made absolute by the description's own.

    For a description in a file, a relative URL stays without a host.
    """
    url = url.strip()
    if base.startswith(("http:", "https:")):
        url = urljoin(base, url)
    elif url.startswith("//"):
        url = f"https:{url}"
    return url.rstrip("/")


def find_problem(server: str) -> str:
    """Return the reason a server cannot be called, "" if it can."""
    if not server.startswith(("http://", "https://")) or not urlsplit(server).netloc:
        return f"the description names no host ({server or 'no server'}); give --server https://HOST/PATH"
    if match := _VARIABLE.search(server):
        return f"the server's {match[1]!r} has no value; give --server-variable {match[1]}=VALUE"
    return ""


def _fill_server(server: Node, given: Mapping[str, str]) -> str:
    return _fill_variables({**dict(_variable_defaults(server)), **given}, server.get_text("url"))


def _fill_variables(values: Mapping[str, str], url: str) -> str:
    """Return a URL with its variables filled in, as far as their values are known."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), url)


def _variable_defaults(server: Node) -> Iterator[tuple[str, str]]:
    for name, variable in server.get("variables").entries():
        default = variable.value.get("default") if isinstance(variable.value, Mapping) else None
        if isinstance(default, str | int) and default != "":
            yield name, str(default)


_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_KINDS = {"oauth2": "bearer", "openIdConnect": "bearer"}
_HINTS = {"oauth2": "an OAuth 2 access token", "openIdConnect": "an access token of OpenID Connect"}


def read_operations(root: Node, base: str, choice: ServerChoice) -> Iterator[Operation]:
    """Yield every operation in its order. An operation that cannot be read has a `problem`."""
    general = read_servers(root.get("servers"), base, choice) or [absolute_url("/", base)]
    for path in root.get_raw("paths").value or {}:
        if path.startswith("x-"):
            continue
        item = root.get_raw("paths").get(path)
        own = read_servers(item.get("servers"), base, choice) or general
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
    security = node.value.get("security")
    if not isinstance(security, list):
        return None
    return tuple(tuple(map(str, style)) for style in security if isinstance(style, Mapping))


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
    parameters = [*item.get("parameters").items(), *operation.get("parameters").items()]
    by_name = {(each.get_text("name"), each.get_text("in")): each for each in parameters}
    return [*by_name.values()]


def _read_operation(
    root: Node,
    item: Node,
    operation: Node,
    which: tuple[str, str],
    where: tuple[str, ServerChoice, list[str]],
) -> Operation:
    fields = common_fields(operation, *which)
    base, choice, outer = where
    try:
        own = read_servers(operation.get("servers"), base, choice) or outer
        schemes = required_schemes(operation)
        return Operation(
            **fields,
            parameters=tuple(_read_parameters(item, operation)),
            body=_read_body(operation.get("requestBody")),
            security=(required_schemes(root) or ()) if schemes is None else schemes,
            server=choose_server(own, choice),
            answers=tuple(_answer_types(operation)),
        )
    except BadDescription as error:
        return Operation(**fields, problem=str(error))


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
