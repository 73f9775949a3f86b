"""The shape of the code: small modules, short functions, no way around the rules, and no exceptions list."""

import ast
from collections.abc import Iterator
from pathlib import Path

from supply_chain.sbom import ROOMS

ROOT = Path(__file__).resolve().parents[1]
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
HTTPX_CALLS = {"Client", "AsyncClient", "request", "stream", "get", "post", "put", "patch", "delete", "head"}


def python_files() -> list[Path]:
    folders = [ROOT / room for room in ROOMS] + [ROOT / "tests", ROOT / "bench"]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}

    too_long = {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_MODULE_LINES}

    assert len(lengths) > 100
    assert too_long == {}


def test_no_function_is_longer_than_a_screen() -> None:
    found = [(path, name, lines) for path in python_files() for name, lines in functions(path)]

    too_long = [f"{p.relative_to(ROOT)}:{name} {n}" for p, name, n in found if n >= MAX_FUNCTION_LINES]

    assert len(found) > 500
    assert too_long == []


def test_the_operator_folder_never_shadows_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_every_exception_to_a_rule_gives_its_reason() -> None:
    bare = []
    for path in python_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for mark in ("# noqa:", "# type: ignore["):
                _, found, rest = line.partition(mark)
                if found and path.name != "test_shape.py" and len(rest.split()) < 3:
                    bare.append(f"{path.relative_to(ROOT)}:{number}")

    assert bare == []


def test_every_package_says_what_belongs_in_it() -> None:
    packages = [path for path in python_files() if path.name == "__init__.py" and "tests" not in path.parts]

    silent = [
        str(p.relative_to(ROOT)) for p in packages if not ast.get_docstring(ast.parse(p.read_text("utf-8")))
    ]

    assert silent == []


def test_no_request_of_a_test_has_the_default_limit_of_its_client() -> None:
    """httpx waits for five seconds, in which a busy machine may not have started what answers."""
    hasty = []
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "httpx" in text else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="httpx"), attr=name)) if (
                    name in HTTPX_CALLS
                ):
                    if not {"timeout", "transport"} & {keyword.arg for keyword in node.keywords}:
                        hasty.append(f"{path.relative_to(ROOT)}:{node.lineno}")
                case ast.ImportFrom(module="httpx", names=names) if {
                    each.name for each in names
                } & HTTPX_CALLS:
                    hasty.append(f"{path.relative_to(ROOT)}:{node.lineno}: import httpx, and call httpx.NAME")

    assert hasty == []
