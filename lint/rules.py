"""The rules for names and modules: plain words, one class of a name in a room, no fragments.

The words and their cures are in `docs/glossary.md`, too; a test compares the two.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lint.source import Module, find_importers

BANNED: dict[str, str] = {
    "around": "name the object, such as `namespace_view`",
    "asked": "`prompt`, `requested`, or the verb of the function",
    "desk": "the class's job, such as `ResponseCreator`",
    "doors": "`origins`, `routes` or `middleware`",
    "doubts": "`ambiguous_dead_letters`, or what is uncertain",
    "endings": "`responses` or `end_reasons`",
    "keeping": "`persistence`, `retention` or `context`",
    "kept": "`stored`, `retained` or `cached`",
    "leg": "`run_worker`",
    "lessons": "`learned_capabilities`",
    "lines": "`log_fields`",
    "nobody": "`anonymous`, `unclaimed` or `no_client`",
    "offering": "`tool_selection`",
    "roster": "`agent_registry`",
    "somebody": "`principal`, `user` or `client`",
    "spoken": "`search_text`",
    "tell": "the verb: `describe`, `publish`, `report`, `write`",
    "telling": "`stream`, `progress` or `report`",
    "tells": "the verb: `describes`, `publishes`, `reports`",
    "together": "`group`, `batch` or `group_commit`",
    "told": "the verb: `describe`, `publish`, `error_text`, `to_sse`",
    "way": "`route`, `action`, `mode` or `client`",
    "ways": "`routes`, `actions` or `modes`",
    "whoever": "`principal`, `caller` or `client`",
    "wishes": "`request_options`",
    "wordless": "`redaction`, `redacted`",
}
"""Each banned word, and what to write instead."""

SHORT_MODULE = 60
_GLOSSARY = "docs/glossary.md"
_ONLY_MODULES_AND_CLASSES = frozenset(("lines",))  # the lines of a text are what a variable may hold
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One name that breaks a rule: its place, what is wrong, and the cure."""

    path: str
    rule: str
    name: str
    line: int
    message: str

    def __str__(self) -> str:
        """Return one line as compilers write it."""
        return f"{self.path}:{self.line}: {self.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Identifier:
    """One name that a module gives to something, and the line; `is_scope` for modules and classes."""

    name: str
    line: int
    is_scope: bool = False


def find_banned_words(modules: Iterable[Module]) -> Iterator[Finding]:
    """Yield each name of a module, the first time it is given, with a banned word in it."""
    for module in modules:
        seen: set[str] = set()
        for identifier in sorted(_identifiers(module), key=lambda one: one.line):
            word = banned_word(identifier)
            if word and identifier.name not in seen:
                seen.add(identifier.name)
                message = f"{word!r} says too little here; write {BANNED[word]}; see {_GLOSSARY}"
                yield Finding(str(module.path), "word", identifier.name, identifier.line, message)


def find_namesakes(modules: Iterable[Module]) -> Iterator[Finding]:
    """Yield each class whose name a class in another module of its room has, leading `_` aside."""
    for (_room, name), places in group_classes(modules).items():
        for path, line in places.items():
            others = sorted(set(places) - {path})
            if others:
                message = (
                    f"a class of this name is in {others[0]}, too; give one of them a second word; "
                    f"see {_GLOSSARY}"
                )
                yield Finding(path, "namesake", name, line, message)


def find_fragments(modules: list[Module]) -> Iterator[Finding]:
    """Yield each short private module with exactly one importer."""
    importers = find_importers(modules)
    for module in modules:
        if module.is_private and module.lines < SHORT_MODULE and len(importers[module.name]) == 1:
            (importer,) = importers[module.name]
            message = (
                f"{module.lines} lines and one importer, {importer}: merge the two; a module of its own "
                f"has {SHORT_MODULE} lines or a second importer"
            )
            yield Finding(str(module.path), "fragment", module.path.stem, 1, message)


def find_all(modules: list[Module]) -> list[Finding]:
    """Return what every rule finds, by path."""
    return sorted([*find_banned_words(modules), *find_namesakes(modules), *find_fragments(modules)])


def group_classes(modules: Iterable[Module]) -> dict[tuple[str, str], dict[str, int]]:
    """Return by room and class name the paths that define such a class, each with its line."""
    places: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[module.room, node.name.lstrip("_")].setdefault(str(module.path), node.lineno)
    return places


def banned_word(identifier: Identifier) -> str:
    """Return the first banned word among the words of a name, or an empty text."""
    for word in split_words(identifier.name):
        if word in BANNED and (identifier.is_scope or word not in _ONLY_MODULES_AND_CLASSES):
            return word
    return ""


def split_words(name: str) -> list[str]:
    """Return the words of a name in small letters, parted at `_`, digits and camel case."""
    return [word.lower() for word in _WORD.findall(name)]


def module_identifier(module: Module) -> Identifier:
    """Return the name of a module's file, or of the folder where it is a package's face."""
    is_package = module.path.stem == "__init__"
    return Identifier(module.path.parent.name if is_package else module.path.stem, 1, is_scope=True)


def _identifiers(module: Module) -> Iterator[Identifier]:
    yield module_identifier(module)
    for node in ast.walk(module.tree):
        read_name = _NAMES.get(type(node))
        if read_name and (name := read_name(node)):
            yield Identifier(name, getattr(node, "lineno", 1), is_scope=isinstance(node, ast.ClassDef))


def _stored(node: ast.Name | ast.Attribute) -> str:
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name if isinstance(node.ctx, ast.Store) else ""


# What gives a name; uses of one are not looked at, since they follow its definition.
_NAMES: dict[type[ast.AST], Callable[..., str | None]] = {
    ast.FunctionDef: lambda node: node.name,
    ast.AsyncFunctionDef: lambda node: node.name,
    ast.ClassDef: lambda node: node.name,
    ast.arg: lambda node: node.arg,
    ast.Name: _stored,
    ast.Attribute: _stored,
    ast.alias: lambda node: node.asname,
    ast.ExceptHandler: lambda node: node.name,
    ast.MatchAs: lambda node: node.name,
    ast.MatchStar: lambda node: node.name,
    ast.MatchMapping: lambda node: node.rest,
}
