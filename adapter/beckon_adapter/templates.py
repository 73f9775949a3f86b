"""Texts with `{arguments}` in them; `{{` and `}}` are literal braces."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from beckon_contract.jsontext import dumps

Arguments = Mapping[str, object]
"""The arguments of a call, as orjson reads them."""
Write = Callable[[str, object], str]
"""Writes an argument, given by name and value, as text; raises `UnfitArgument`."""

_EXACT = 2.0**53  # every whole number below it is itself as a float
_TOKEN = re.compile(r"(\{\{|\}\}|\{[^{}]+\}|[{}])")


class UnfitArgument(ValueError):
    """An argument unfit for its place in the rule.

    The message is for the caller.
    """


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
        """Yield the parts between separators in the literal text.

        The name of a slot is never split.
        """
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

    def fill(self, arguments: Arguments, write: Write, literal: Callable[[str], str] = str) -> str | None:
        """Return the text with its arguments written by `write`.

        Returns `None` if one of them is absent.
        """
        if any(is_absent(arguments, name) for name in self.names):
            return None
        return "".join(
            write(part.name, arguments[part.name]) if isinstance(part, Slot) else literal(part)
            for part in self.parts
        )


@lru_cache(maxsize=4096)
def parse_template(text: str) -> Template:
    """Parse a text; raise `ValueError` for an unmatched single brace.

    A brace must be closed or doubled.
    """
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
    """Return True if an argument is missing or null.

    A field with such an argument is left out.
    """
    return arguments.get(name) is None


def plain(_name: str, value: object) -> str:
    """Write an argument as people would: texts as they are, lists with commas, the rest as JSON."""
    if isinstance(value, list):
        return ",".join(scalar(item) for item in value)
    return scalar(value)


def scalar(value: object) -> str:
    """Write one value as text.

    Text stays as it is, whole numbers have no fraction, everything else is JSON.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    return dumps(value).decode()
