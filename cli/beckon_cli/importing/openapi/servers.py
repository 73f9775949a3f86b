"""The servers of an API: variables, relative URLs, and the chosen one."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from beckon_cli.importing.openapi.documents import BadDescription, Node

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
    found = [_fill_server(server, choice.variables) for server in servers.items()]
    return list(dict.fromkeys(absolute_url(url, base) for url in found))


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
    return [absolute_url(f"{scheme}://{host}{path}", base) for scheme in schemes] if host else [path]


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
    if found := _VARIABLE.search(server):
        return f"the server's {found[1]!r} has no value; give --server-variable {found[1]}=VALUE"
    return ""


def _fill_server(server: Node, given: Mapping[str, str]) -> str:
    return _fill_variables({**dict(_variable_defaults(server)), **given}, server.get_text("url"))


def _fill_variables(values: Mapping[str, str], url: str) -> str:
    """Return a URL with its variables filled in, as far as their values are known."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), url)


def _variable_defaults(server: Node) -> Iterator[tuple[str, str]]:
    for name, variable in server.get("variables").entries():
        default = variable.value.get("default") if isinstance(variable.value, Mapping) else None
        if isinstance(default, str | int) and default != "":
            yield name, str(default)
