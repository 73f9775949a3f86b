"""The parts of a tool's docstring: description, arguments and result.

The styles of Google, NumPy and Sphinx are all read; text in no such style is a description.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import docstring_parser


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """The parts of a docstring, each on one line; empty if missing."""

    description: str
    arguments: Mapping[str, str]
    result: str


def read_docstring(function: Callable[..., object]) -> DocstringParts:
    """Read a function's docstring: of its description, the first paragraph."""
    text = inspect.getdoc(function) or ""
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return DocstringParts(_first_paragraph(text), {}, "")
    arguments = {one.arg_name: _one_line(one.description) for one in parsed.params if one.description}
    result = _one_line(parsed.returns.description) if parsed.returns else ""
    return DocstringParts(_first_paragraph(parsed.description or ""), arguments, result)


def _first_paragraph(text: str) -> str:
    return _one_line(text.partition("\n\n")[0])


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
