"""The modules of the product and of what checks it, read from their source alone: nothing is imported."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
_MODULES = "*/beckon_*/**/*.py"
_CHECKS = ("bench", "charts", "docs", "lint", "supply_chain", "tests")
_FOREIGN = frozenset(("vendor", "node_modules", ".venv"))


class BadSource(Exception):
    """Source without product code, or with a file that does not parse; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Module:
    """One module of a room: its path below the root, its dotted name, its length and its syntax tree."""

    path: PurePosixPath
    name: str
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        """The top-level folder."""
        return self.path.parts[0]

    @property
    def is_private(self) -> bool:
        """Whether only other modules use it: neither a package's face nor a program."""
        return self.path.stem not in ("__init__", "__main__")


def read_modules(root: Path) -> list[Module]:
    """Return the modules of every room below a root; raise `BadSource`."""
    paths = [path.relative_to(root) for path in sorted(root.glob(_MODULES))]
    modules = [_read_module(root, path) for path in paths if _FOREIGN.isdisjoint(path.parts)]
    if not modules:
        raise BadSource(f"{root} has no file {_MODULES}; name the root of a checkout")
    return modules


def read_checks(root: Path) -> list[Module]:
    """Return the modules of tests, benches and tools below a root; raise `BadSource`."""
    paths = [path.relative_to(root) for folder in _CHECKS for path in sorted((root / folder).rglob("*.py"))]
    return [_read_module(root, path) for path in paths if _FOREIGN.isdisjoint(path.parts)]


def find_importers(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Return for each module, by its name, the names of the modules that import it."""
    importers: dict[str, set[str]] = {module.name: set() for module in modules}
    for module in modules:
        for name in imported_names(module.tree):
            if name in importers and name != module.name:
                importers[name].add(module.name)
    return importers


def _read_module(root: Path, path: Path) -> Module:
    text = (root / path).read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BadSource(f"{path}:{error.lineno}: not valid Python: {error.msg}; correct it first") from error
    name = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
    return Module(PurePosixPath(path.as_posix()), name, text.count("\n"), tree)


def imported_names(tree: ast.Module) -> set[str]:
    """Return the names of the modules that a module imports, and of what it imports from them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names
