"""The headers and cookies allowed in a rule, and their values."""

import re

from beckon_adapter.templates import Template, UnfitArgument, plain

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
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
    return _TOKEN.fullmatch(name) is not None


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
    text = plain(name, value)
    if not _VISIBLE.fullmatch(text):
        raise UnfitArgument(f"the argument {name!r} goes into a header: visible ASCII only, no line breaks")
    return text
