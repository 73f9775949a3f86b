"""Templates of URLs and headers, filled with the arguments of a call."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from beckon_contract.jsontext import dumps

Arguments = Mapping[str, object]
"""The arguments of a call, as orjson reads them."""
Write = Callable[[str, object], str]
"""Writes an argument, given by name and value, as text; raises `UnfitArgument`."""

_EXACT = 2.0**53  # every whole number below it is itself as a float
_TOKEN = re.compile(r"(\{\{|\}\}|\{[^{}]+\}|[{}])")


class UnfitArgument(ValueError):
    """An argument unfit for its place in the rule. The message is for the caller."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one argument in a text."""

    name: str


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text: literal parts, with slots between them."""

    parts: tuple[str | Slot, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(part.name for part in self.parts if isinstance(part, Slot))

    @property
    def only(self) -> str | None:
        """The argument of a text with nothing else in it, or `None`."""
        match self.parts:
            case (Slot(name),):
                return name
        return None

    @property
    def fixed(self) -> str | None:
        """The text of a template without arguments."""
        return None if self.names else "".join(part for part in self.parts if isinstance(part, str))

    def split(self, separator: str) -> Iterator["Template"]:
        """Yield the parts between separators in the literal text. The name of a slot is never split."""
        current: list[str | Slot] = []
        for part in self.parts:
            if isinstance(part, Slot):
                current.append(part)
                continue
            first, *others = part.split(separator)
            current.append(first)
            for piece in others:
                yield Template(tuple(current))
                current = [piece]
        yield Template(tuple(current))

    def fill(self, arguments: Arguments, write: Write) -> str | None:
        """Return the text with its arguments written by `write`. Returns `None` if one of them is absent."""
        if any(is_absent(arguments, name) for name in self.names):
            return None
        return "".join(
            write(part.name, arguments[part.name]) if isinstance(part, Slot) else part for part in self.parts
        )


@lru_cache(maxsize=4096)
def parse_template(text: str) -> Template:
    """Parse a text; raise `ValueError` for an unmatched single brace. A brace must be closed or doubled."""
    parts: list[str | Slot] = []
    literal = ""
    for token in _TOKEN.split(text):
        if token in ("{{", "}}"):
            literal += token[0]
        elif token in ("{", "}"):
            raise ValueError(f"{text[:80]!r} has a {token} on its own; double a literal brace: {token * 2}")
        elif token.startswith("{"):
            parts += [literal] if literal else []
            parts.append(Slot(token[1:-1]))
            literal = ""
        else:
            literal += token
    return Template((*parts, literal) if literal or not parts else tuple(parts))


def is_absent(arguments: Arguments, name: str) -> bool:
    """Return True if an argument is missing or null. A field with such an argument is left out."""
    return arguments.get(name) is None


def write_plain(_name: str, value: object) -> str:
    """Write an argument as people would: texts as they are, lists with commas, the rest as JSON."""
    if isinstance(value, list):
        return ",".join(write_scalar(item) for item in value)
    return write_scalar(value)


def write_scalar(value: object) -> str:
    """Write one value as text.

    Text stays as it is, whole numbers have no fraction, everything else is JSON.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    return dumps(value).decode()


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
        path = "/".join(_write_segment(segment, arguments) for segment in self.path)
        return self.origin + path + (f"?{self.query}" if self.query else "")


def parse_target(text: str) -> Target:
    """Take the URL of a rule apart; raise `ValueError` with the cure."""
    match = _URL.fullmatch(text)
    if match is None or _CONTROL.search(text) or " " in text:
        raise ValueError("must be a URL such as https://api.example.com/v1/cities/{city}")
    if match["rest"] is not None:
        raise ValueError("a request has no fragment; remove # and what follows, or write it as %23")
    host = _checked_host(match["host"])
    path = tuple(parse_template(match["path"] or "/").split("/"))
    if any(unquote(segment.fixed or "") in (".", "..") for segment in path):
        raise ValueError("write the path as it is meant, without . and ..")
    query = parse_template(match["query"] or "")
    if query.fixed is None:
        raise ValueError("an argument in the query is written under query, not into the URL")
    return Target(f"{match['scheme']}://{host}", path, quote(query.fixed, safe=_IN_QUERIES))


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


def _write_segment(template: Template, arguments: Arguments) -> str:
    if template.fixed is not None:
        return quote(template.fixed, safe=_IN_PATHS)
    written = template.fill(arguments, write_plain)
    if written is None:
        missing = next(name for name in template.names if arguments.get(name) is None)
        raise UnfitArgument(f"the argument {missing!r} is needed: it is part of the address")
    _refuse_other_path(template, written)
    return "".join(
        quote(write_plain(part.name, arguments[part.name]), safe="")
        if isinstance(part, Slot)
        else quote(part, safe=_IN_PATHS)
        for part in template.parts
    )


def _refuse_other_path(template: Template, written: str) -> None:
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


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE = re.compile(r"[\x20-\x7e\t]*")

# Of the connection (RFC 9110, 7.6.1), or written by the client from the body.
_OF_THE_CONNECTION = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_INSTEAD = {
    "authorization": "a credential of the adapter's owner: write credential: NAME",
    "cookie": "cookies",
    "content-type": "body_type",
}
# By these a request is taken for another one, or for another caller's: no model may set them.
_CHANGE_THE_REQUEST = frozenset(
    {
        "forwarded",
        "x-client-ip",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-server",
        "x-host",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-host",
        "x-original-url",
        "x-real-ip",
        "x-rewrite-url",
        "true-client-ip",
    }
)


def is_token(name: str) -> bool:
    """Return True if a text is a valid header name (RFC 9110, 5.6.2)."""
    return _HEADER_NAME.fullmatch(name) is not None


def check_header(name: str, value: Template) -> None:
    """Raise `ValueError` for a header not allowed in a rule."""
    lower = name.lower()
    if not is_token(name):
        raise ValueError(f"{name[:40]!r} is no name of a header")
    if lower in _INSTEAD:
        raise ValueError(f"the header {name} is not set here; use {_INSTEAD[lower]}")
    if lower in _OF_THE_CONNECTION:
        raise ValueError(f"the header {name} belongs to the connection, and is not for a rule to set")
    if lower in _CHANGE_THE_REQUEST and value.names:
        raise ValueError(f"the header {name} would let an argument change the request; write a fixed value")
    if not all(_VISIBLE.fullmatch(part) for part in value.parts if isinstance(part, str)):
        raise ValueError(f"the value of {name} must be visible ASCII")


def check_cookie(name: str) -> None:
    """Raise `ValueError` for an invalid cookie name."""
    if not is_token(name):
        raise ValueError(f"{name[:40]!r} is no name of a cookie")


def in_header(name: str, value: object) -> str:
    """Return an argument as the text of a header.

    Raises `UnfitArgument` for an argument that no header can hold.
    """
    text = write_plain(name, value)
    if not _VISIBLE.fullmatch(text):
        raise UnfitArgument(f"the argument {name!r} goes into a header: visible ASCII only, no line breaks")
    return text
