"""The body of a request: the rule's own, with the arguments in their places."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import httpx2

from beckon_adapter.parameters import pairs
from beckon_adapter.rule import FORM, MULTIPART, Encoding, HttpRule
from beckon_adapter.templates import (
    Arguments,
    UnfitArgument,
    parse_template,
    plain,
    scalar,
)
from beckon_contract.jsontext import dumps

Body = tuple[str, bytes]
"""The media type of a body, and its bytes."""


class _Absent:
    """The type of an omitted value."""


_ABSENT: Final = _Absent()


def body_of(rule: HttpRule, arguments: Arguments) -> Body | None:
    """Return the body for these arguments; raise `UnfitArgument`.

    Returns `None` if there is no body.
    """
    if not rule.has_body:
        return None
    value = _fill(rule.body, arguments)
    if isinstance(value, _Absent):
        return None
    if rule.is_json:
        return rule.body_type, dumps(value)
    if rule.body_type == FORM:
        return FORM, _form(rule, value).encode()
    if rule.body_type == MULTIPART:
        return _multipart(rule, value)
    if (file := _media(value)) is not None:
        return file
    return f"{rule.body_type}; charset=utf-8", plain("body", value).encode()


def _fill(value: object, arguments: Arguments) -> object:
    """Return a value with its templates filled in.

    A text with an absent argument becomes `_ABSENT`, and is left out of its mapping or list.
    """
    if isinstance(value, Mapping):
        filled = {name: _fill(inner, arguments) for name, inner in value.items()}
        return {name: inner for name, inner in filled.items() if not isinstance(inner, _Absent)}
    if isinstance(value, list):
        items = [_fill(inner, arguments) for inner in value]
        return [item for item in items if not isinstance(item, _Absent)]
    if not isinstance(value, str):
        return value
    template = parse_template(value)
    if template.only is not None:
        return arguments.get(template.only, _ABSENT)
    text = template.fill(arguments, plain)
    return _ABSENT if text is None else text


def _form(rule: HttpRule, value: object) -> str:
    fields = value if isinstance(value, dict) else {}
    default = Encoding()
    written = [
        f"{name}={text}"
        for field, inner in fields.items()
        for name, text in pairs(field, inner, rule.encoding.get(field, default), fields.keys() - {field})
    ]
    return "&".join(written)


def _multipart(rule: HttpRule, value: object) -> Body | None:
    """Return a body of parts: a file for each `{media_type, data_base64}`, a field for all else."""
    parts: list[tuple[str, tuple[str | None, bytes | str, str | None]]] = []
    for name, inner in (value if isinstance(value, dict) else {}).items():
        for item in inner if isinstance(inner, list) else [inner]:
            if item is None:
                continue
            file = _media(item)
            parts.append((name, (name, file[1], file[0]) if file else (None, scalar(item), None)))
    if not parts:
        return None
    request = httpx2.Request(rule.method, rule.url.partition("{")[0], files=parts)
    return request.headers["content-type"], request.read()


def _media(value: object) -> Body | None:
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
