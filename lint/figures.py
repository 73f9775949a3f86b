"""Figures of the product's Python: its size, its names and its docstrings, each beside the aim.

They say how far the code is from the rules of docs/glossary.md. `python -m lint.names` refuses new names that
break one.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lint.rules import Identifier, banned_word, find_fragments, group_classes, module_identifier
from lint.source import ROOT, BadSource, Module, read_modules

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_RELATIVE = re.compile(r"\b(what|who|whom|whose|that|which|where|whether)\b")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and the most that we want it to be."""

    label: str
    value: float
    aim: float

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.label:42} {self.value:>8}   (at most {self.aim})"


def measure(modules: list[Module]) -> list[Figure]:
    """Return the figures of these modules."""
    functions = list(_functions(modules))
    openings = list(_openings(modules))
    places = group_classes(modules).values()
    one_word = sum("_" not in function.name.strip("_") for function in functions)
    relative = sum(bool(_RELATIVE.search(opening.lower())) for opening in openings)
    namesakes = sum(len(paths) > 1 for paths in places)
    fragments = sum(1 for _ in find_fragments(modules))
    return [
        Figure("modules", len(modules), 400),
        Figure("lines", sum(module.lines for module in modules), 56_000),
        Figure("functions named by one word, %", round(_percent(one_word, len(functions))), 35),
        Figure("classes with a namesake in their room, %", round(_percent(namesakes, len(places)), 1), 2),
        Figure("functions, classes, modules: banned words", sum(map(bool, _banned(modules))), 0),
        Figure("docstrings opening with a relative, %", round(_percent(relative, len(openings))), 15),
        Figure("short modules with one importer, %", round(_percent(fragments, len(modules)), 1), 3),
    ]


def _functions(modules: Iterable[Module]) -> Iterator[_Function]:
    """Yield the functions that we named: Python names those of two underscores."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, _Function) and not node.name.startswith("__"):
                yield node


def _classes(modules: Iterable[Module]) -> Iterator[ast.ClassDef]:
    for module in modules:
        yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def _openings(modules: list[Module]) -> Iterator[str]:
    for node in (*_functions(modules), *_classes(modules)):
        if docstring := ast.get_docstring(node):
            yield docstring.split("\n")[0]


def _banned(modules: list[Module]) -> Iterator[str]:
    """Yield the banned word of each function, class and module, or an empty text."""
    yield from (banned_word(Identifier(node.name, node.lineno)) for node in _functions(modules))
    yield from (banned_word(Identifier(node.name, node.lineno, is_scope=True)) for node in _classes(modules))
    yield from (banned_word(module_identifier(module)) for module in modules)


def _percent(part: int, whole: int) -> float:
    return 100 * part / max(whole, 1)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 where `--strict` is given and one is over its aim, 2 without a source."""
    parser = argparse.ArgumentParser(
        prog="python -m lint.figures", description=(__doc__ or "").strip().replace("\n", " ")
    )
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the checkout (default: this one)")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a figure is over its aim")
    options = parser.parse_args(arguments)
    try:
        figures = measure(read_modules(options.root))
    except (BadSource, OSError) as error:
        sys.stderr.write(f"python -m lint.figures: {error}\n")
        return 2
    sys.stdout.writelines(f"{figure}\n" for figure in figures)
    return int(options.strict and any(figure.value > figure.aim for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
