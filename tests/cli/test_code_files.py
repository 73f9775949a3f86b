"""The source files of a local command: found by its words, and compared."""

import sys
from pathlib import Path

import pytest

from beckon_cli.local.code_files import CodeFiles


def write(path: Path, text: str = "") -> Path:
    """Write a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with code, in which the commands run."""
    for name in ("orders.py", "prices.py", "shop/__init__.py", "shop/stock.py", "server.js", "run.sh"):
        write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changes(command: str, *changed: Path, environment: dict[str, str] | None = None) -> list[str]:
    """Return the names of the changes that a command's code has after these files are written."""
    code = CodeFiles(command.split(), environment or {})
    for path in changed:
        write(path, "changed")
    return [path.name for path in code.read_changes()]


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (f"{sys.executable} -m beckon_tools serve orders:order_status", "orders.py"),
        (f"{sys.executable} -m beckon_tools serve orders:order_status", "prices.py"),
        (f"{sys.executable} -m beckon_tools serve orders:order_status", "shop/stock.py"),
        (f"{sys.executable} -m beckon_tools serve orders:order_status", "new.py"),
        (f"{sys.executable} -m shop.stock", "shop/stock.py"),
        (f"{sys.executable} orders.py", "orders.py"),
        ("uvicorn shop.stock:app", "shop/stock.py"),
        ("uvicorn shop:app", "shop/__init__.py"),
        ("node server.js", "server.js"),
        ("./run.sh", "run.sh"),
    ],
)
def test_a_changed_file_of_a_command_is_found(project: Path, command: str, changed: str) -> None:
    assert changes(command, project / changed) == [Path(changed).name]


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (f"{sys.executable} orders.py --store orders.sqlite", "orders.sqlite"),
        (f"{sys.executable} orders.py", "server.js"),
        (f"{sys.executable} orders.py", "notes.txt"),
        (f"{sys.executable} orders.py", ".hidden/secret.py"),
        (f"{sys.executable} orders.py", "node_modules/__init__.py"),
        ("node server.js", "orders.py"),
        ("sleep 1000", "orders.py"),
    ],
)
def test_a_change_of_another_file_is_none(project: Path, command: str, changed: str) -> None:
    write(project / "orders.sqlite")

    assert changes(command, project / changed) == []


def test_a_module_is_found_on_the_path_of_the_environment(project: Path, tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "lib" / "billing.py")

    assert changes("python -m billing", elsewhere, environment={"PYTHONPATH": str(elsewhere.parent)}) == [
        "billing.py"
    ]


def test_a_change_is_reported_once_and_a_deleted_file_is_one(project: Path) -> None:
    code = CodeFiles(["python", "orders.py"], {})
    (project / "prices.py").unlink()

    assert [path.name for path in code.read_changes()] == ["prices.py"]
    assert code.read_changes() == []
