"""The URL of a rule: a fixed host, and a path with arguments.

Every argument stays in its path segment.
"""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote

from beckon_adapter.templates import Arguments, Slot, Template, UnfitArgument, parse_template, plain

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[^/?#]*)(?P<path>/[^?#]*)?(\?(?P<query>[^#]*))?(?P<rest>#.*)?"
)
_HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PIECES = re.compile(r"[/\\]")
_IN_PATHS = "%:@!$&'()*+,;=~"  # what RFC 3986 lets stand in a segment
_IN_QUERIES = _IN_PATHS + "/?"
_DECODINGS = 5


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart: `origin` is scheme, host and port, `query` a fixed one."""

    origin: str
    path: tuple[Template, ...]
    query: str

    def url(self, arguments: Arguments) -> str:
        """Return the URL for these arguments, without the rule's query; raise `UnfitArgument`."""
        path = "/".join(_segment(segment, arguments) for segment in self.path)
        return self.origin + path + (f"?{self.query}" if self.query else "")


def parse_target(text: str) -> Target:
    """Take the URL of a rule apart; raise `ValueError` with the cure."""
    found = _URL.fullmatch(text)
    if found is None or _CONTROL.search(text) or " " in text:
        raise ValueError("must be a URL such as https://api.example.com/v1/cities/{city}")
    if found["rest"] is not None:
        raise ValueError("a request has no fragment; remove # and what follows, or write it as %23")
    host = _checked_host(found["host"])
    path = tuple(parse_template(found["path"] or "/").split("/"))
    if any(unquote(segment.fixed or "") in (".", "..") for segment in path):
        raise ValueError("write the path as it is meant, without . and ..")
    query = parse_template(found["query"] or "")
    if query.fixed is None:
        raise ValueError("an argument in the query is written under query, not into the URL")
    return Target(f"{found['scheme']}://{host}", path, quote(query.fixed, safe=_IN_QUERIES))


def _checked_host(host: str) -> str:
    """Return the host and the port of a URL in small letters; raise `ValueError` with the cure."""
    if "{" in host or "}" in host:
        raise ValueError(
            "the host is fixed; an argument may stand in the path, the query, headers and the body"
        )
    if "@" in host:
        raise ValueError("a URL holds no credentials; write credential: NAME")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host[:80]!r} is no host; write an international name in ASCII, as xn--…")
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not 0 < int(port) <= 65535:
        raise ValueError(f"{port} is no port; write a number from 1 to 65535")
    return host.lower()


def _segment(template: Template, arguments: Arguments) -> str:
    if template.fixed is not None:
        return quote(template.fixed, safe=_IN_PATHS)
    written = template.fill(arguments, plain)
    if written is None:
        missing = next(name for name in template.names if arguments.get(name) is None)
        raise UnfitArgument(f"the argument {missing!r} is needed: it is part of the address")
    _check(template, written)
    return "".join(
        quote(plain(part.name, arguments[part.name]), safe="")
        if isinstance(part, Slot)
        else quote(part, safe=_IN_PATHS)
        for part in template.parts
    )


def _check(template: Template, written: str) -> None:
    """Refuse a segment readable as a different path.

    It is checked as it is, and after each of several decodings. Servers differ in when they decode %2F,
    fold look-alikes, and cut parameters after a semicolon.
    """
    names = " and ".join(repr(name) for name in template.names)
    if _CONTROL.search(written):
        raise UnfitArgument(f"the argument {names} is part of the address: no control characters")
    for _ in range(_DECODINGS):
        pieces = [piece.partition(";")[0] for piece in _PIECES.split(unicodedata.normalize("NFKC", written))]
        if any(piece.strip() in ("", ".", "..") for piece in pieces):
            raise UnfitArgument(
                f"the argument {names} is part of the address: it may not be empty, nor hold an empty part, "
                ". or .. between slashes"
            )
        written = unquote(written)
