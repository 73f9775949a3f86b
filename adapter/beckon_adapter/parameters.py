"""Lists and objects as parameters of a query or a form, in the styles of OpenAPI 3."""

from collections.abc import Collection, Iterator
from urllib.parse import quote

from beckon_adapter.rule import Encoding
from beckon_adapter.templates import UnfitArgument, plain, scalar

Pair = tuple[str, str]
"""A name and a value, both percent-encoded already."""

_DELIMITER = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def pairs(name: str, value: object, encoding: Encoding, taken: Collection[str] = ()) -> Iterator[Pair]:
    """Yield the parameters for one value, none for null.

    `taken` are the names of other parameters, which the fields of an exploded object may not set.
    """
    if value is None:
        return
    if encoding.style == "deepObject" and isinstance(value, dict | list):
        yield from _deep(name, value)
    elif encoding.style == "json" or not isinstance(value, dict | list):
        yield _encoded(name), _encoded(scalar(value))
    elif isinstance(value, list) and encoding.exploded:
        yield from ((_encoded(name), _encoded(scalar(item))) for item in value if item is not None)
    elif isinstance(value, dict) and encoding.exploded:
        yield from _fields(name, value, taken)
    elif value:
        flat = value if isinstance(value, list) else [each for pair in value.items() for each in pair]
        written = (_encoded(scalar(item)) for item in flat if item is not None)
        yield _encoded(name), _DELIMITER[encoding.style].join(written)


def _fields(name: str, value: dict[str, object], taken: Collection[str]) -> Iterator[Pair]:
    for field, inner in value.items():
        if field in taken:
            raise UnfitArgument(
                f"the field {field[:60]!r} of {name!r} would replace a parameter of that name"
            )
        if inner is not None:
            yield _encoded(field), _encoded(plain(field, inner))


def _deep(name: str, value: object) -> Iterator[Pair]:
    """Yield a[b]=c for objects and a[0]=c for lists, however deep."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _deep(f"{name}[{key}]", inner)
    elif value is not None:
        yield _encoded(name), _encoded(scalar(value))


def _encoded(text: str) -> str:
    return quote(text, safe="")
