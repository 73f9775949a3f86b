"""The HTTP request of a call, made from its rule and its arguments."""

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import httpx2

from beckon_adapter.rule import FORM, MULTIPART, Encoding, HttpRule, Parameter
from beckon_adapter.templates import (
    Arguments,
    UnfitArgument,
    in_header,
    parse_target,
    parse_template,
    write_plain,
    write_scalar,
)
from beckon_contract.jsontext import dumps

Pair = tuple[str, str]
"""A name and a value, both percent-encoded already."""

_DELIMITER = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def write_pairs(name: str, value: object, encoding: Encoding, taken: Collection[str] = ()) -> Iterator[Pair]:
    """Yield the parameters for one value, none for null.

    `taken` are the names of other parameters, which the fields of an exploded object may not set.
    """
    if value is None:
        return
    if encoding.style == "deepObject" and isinstance(value, dict | list):
        yield from _write_deep(name, value)
    elif encoding.style == "json" or not isinstance(value, dict | list):
        yield _encode_text(name), _encode_text(write_scalar(value))
    elif isinstance(value, list) and encoding.exploded:
        yield from (
            (_encode_text(name), _encode_text(write_scalar(item))) for item in value if item is not None
        )
    elif isinstance(value, dict) and encoding.exploded:
        yield from _write_fields(name, value, taken)
    elif value:
        flat = value if isinstance(value, list) else [each for pair in value.items() for each in pair]
        written = (_encode_text(write_scalar(item)) for item in flat if item is not None)
        yield _encode_text(name), _DELIMITER[encoding.style].join(written)


def _write_fields(name: str, value: dict[str, object], taken: Collection[str]) -> Iterator[Pair]:
    for key, inner in value.items():
        if key in taken:
            raise UnfitArgument(f"the field {key[:60]!r} of {name!r} would replace a parameter of that name")
        if inner is not None:
            yield _encode_text(key), _encode_text(write_plain(key, inner))


def _write_deep(name: str, value: object) -> Iterator[Pair]:
    """Yield a[b]=c for objects and a[0]=c for lists, however deep."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _write_deep(f"{name}[{key}]", inner)
    elif value is not None:
        yield _encode_text(name), _encode_text(write_scalar(value))


def _encode_text(text: str) -> str:
    return quote(text, safe="")


Body = tuple[str, bytes]
"""The media type of a body, and its bytes."""


class _Absent:
    """The type of an omitted value."""


_ABSENT: Final = _Absent()


def body_of(rule: HttpRule, arguments: Arguments) -> Body | None:
    """Return the body for these arguments; raise `UnfitArgument`. Returns `None` if there is no body."""
    if not rule.has_body:
        return None
    value = _fill_value(rule.body, arguments)
    if isinstance(value, _Absent):
        return None
    if rule.is_json:
        return rule.body_type, dumps(value)
    if rule.body_type == FORM:
        return FORM, _form_body(rule, value).encode()
    if rule.body_type == MULTIPART:
        return _multipart_body(rule, value)
    if (file := _read_media(value)) is not None:
        return file
    return f"{rule.body_type}; charset=utf-8", write_plain("body", value).encode()


def _fill_value(value: object, arguments: Arguments) -> object:
    """Return a value with its templates filled in.

    A text with an absent argument becomes `_ABSENT`, and is left out of its mapping or list.
    """
    if isinstance(value, Mapping):
        filled = {name: _fill_value(inner, arguments) for name, inner in value.items()}
        return {name: inner for name, inner in filled.items() if not isinstance(inner, _Absent)}
    if isinstance(value, list):
        items = [_fill_value(inner, arguments) for inner in value]
        return [item for item in items if not isinstance(item, _Absent)]
    if not isinstance(value, str):
        return value
    template = parse_template(value)
    if template.only is not None:
        return arguments.get(template.only, _ABSENT)
    text = template.fill(arguments, write_plain)
    return _ABSENT if text is None else text


def _form_body(rule: HttpRule, value: object) -> str:
    fields = value if isinstance(value, dict) else {}
    default = Encoding()
    written = [
        f"{name}={text}"
        for field, inner in fields.items()
        for name, text in write_pairs(
            field, inner, rule.encoding.get(field, default), fields.keys() - {field}
        )
    ]
    return "&".join(written)


def _multipart_body(rule: HttpRule, value: object) -> Body | None:
    """Return a body of parts: a file for each `{media_type, data_base64}`, a field for all else."""
    parts: list[tuple[str, tuple[str | None, bytes | str, str | None]]] = []
    for name, inner in (value if isinstance(value, dict) else {}).items():
        for item in inner if isinstance(inner, list) else [inner]:
            if item is None:
                continue
            file = _read_media(item)
            parts.append((name, (name, file[1], file[0]) if file else (None, write_scalar(item), None)))
    if not parts:
        return None
    request = httpx2.Request(rule.method, rule.url.partition("{")[0], files=parts)
    return request.headers["content-type"], request.read()


def _read_media(value: object) -> Body | None:
    """Return the media type and bytes of a file argument.

    A file is `{media_type, data_base64}`, as replies write media. Returns `None` for other values, and
    raises `UnfitArgument` for an invalid file.
    """
    if not isinstance(value, dict) or value.keys() != {"media_type", "data_base64"}:
        return None
    kind, text = value["media_type"], value["data_base64"]
    if not isinstance(kind, str) or not isinstance(text, str) or not kind.isascii() or not kind.isprintable():
        raise UnfitArgument("media_type and data_base64 of a file must be texts")
    try:
        return kind, base64.b64decode(text, validate=True)
    except binascii.Error:
        raise UnfitArgument("data_base64 of a file is no base64") from None


MAX_URL = 8192  # characters; more than most servers take
_COOKIE_SAFE = "!#$&'()*+-./:<=>?@[]^_`{|}~"  # RFC 6265, 4.1.1
_DEFAULT = Encoding()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, without the credentials of the adapter's owner."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


def build_request(rule: HttpRule, arguments: Arguments) -> HttpRequest:
    """Return the request for a call; raise `UnfitArgument`.

    The error is for arguments that do not fit their places in the rule. No argument changes the scheme,
    the host, the port, the method, or the number of path segments.
    """
    url = parse_target(rule.url).url(arguments)
    if query := "&".join(f"{name}={value}" for name, value in _write_query(rule, arguments)):
        url += ("&" if "?" in url else "?") + query
    if len(url) > MAX_URL:
        raise UnfitArgument(f"the arguments make an address of {len(url)} characters; {MAX_URL} are allowed")
    headers = list(_write_headers(rule, arguments))
    body = body_of(rule, arguments)
    if body is None:
        return HttpRequest(rule.method, url, tuple(headers))
    return HttpRequest(rule.method, url, (*headers, ("content-type", body[0])), body[1])


def _write_query(rule: HttpRule, arguments: Arguments) -> Iterator[Pair]:
    for name, parameter in rule.query.items():
        encoding = parameter if isinstance(parameter, Parameter) else _DEFAULT
        text = parameter.value if isinstance(parameter, Parameter) else write_plain(name, parameter)
        template = parse_template(text)
        only = template.only
        value = template.fill(arguments, write_plain) if only is None else arguments.get(only)
        yield from write_pairs(name, value, encoding, rule.query.keys() - {name})


def _write_headers(rule: HttpRule, arguments: Arguments) -> Iterator[tuple[str, str]]:
    for name, text in rule.headers.items():
        value = parse_template(write_plain(name, text)).fill(arguments, in_header)
        if value is not None:
            yield name.lower(), value.strip()
    cookies = [
        f"{name}={value}"
        for name, text in rule.cookies.items()
        if (value := parse_template(write_plain(name, text)).fill(arguments, write_plain)) is not None
    ]
    if cookies:
        yield "cookie", "; ".join(_in_cookie(cookie) for cookie in cookies)


def _in_cookie(cookie: str) -> str:
    name, _, value = cookie.partition("=")
    return f"{name}={quote(value, safe=_COOKIE_SAFE)}"
