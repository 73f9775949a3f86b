"""The rule for docstrings: what they name in backticks exists.

A function that gets another name keeps its old one in docstrings, where no type checker sees it.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping

from lint.rules import Finding
from lint.source import Module, find_importers, imported_names

_NAMED = re.compile(r"`((?:\w+\.)*)([A-Za-z_]\w*)(?:\([^`]*\))?`")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ALWAYS = frozenset(("true", "false", "null", *dir(builtins)))
_MESSAGE = (
    "the docstring names it, and the code near it has no such name; write the present one, or words without "
    "backticks"
)


def find_absent_names(modules: list[Module]) -> Iterator[Finding]:
    """Yield each name in a docstring that the code does not have.

    A class, and a name after that of its module or class, may be anywhere in the product. Another name must
    be near: in its module, in one that this imports, or in one that imports it. Words in the strings near it
    count, too. Names in capitals are constants or stand for a value, and are not checked.
    """
    parts = {part for module in modules for part in module.name.split(".")} | _ALWAYS
    names = {module.name: set(_names(module.tree)) for module in modules}
    words = {module.name: names[module.name] | _words_of_strings(module.tree) for module in modules}
    anywhere = parts.union(*names.values())
    near = _words_near(modules, words)
    for module in modules:
        for text in _texts(module.tree):
            for place, name in dict.fromkeys(_NAMED.findall(str(text.value))):
                is_known = name in near[module.name] or name in parts
                if (place or name[0].isupper()) and name in anywhere:
                    is_known = True
                if not (is_known or name.isupper()):
                    yield Finding(str(module.path), "absent", name, text.lineno, _MESSAGE)


def _words_near(modules: Iterable[Module], words: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return for each module, by its name, the words of its code and of the code next to it."""
    importers = find_importers(modules)
    near = {}
    for module in modules:
        others = imported_names(module.tree) | importers[module.name]
        near[module.name] = words[module.name].union(*(words[name] for name in others if name in words))
    return near


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module, of its classes and functions, and below variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _words_of_strings(tree: ast.Module) -> set[str]:
    """Return the words of a module's strings, without its docstrings."""
    docstrings = set(map(id, _texts(tree)))
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, str):
                words.update(_WORD.findall(node.value))
            elif isinstance(node.value, bytes):
                words.update(_WORD.findall(node.value.decode("latin-1")))
    return words


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case (
                ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name))
            ):
                yield name
            case ast.alias(name=name, asname=other):
                yield from name.split(".")
                yield other or name
