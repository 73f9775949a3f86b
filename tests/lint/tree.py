"""Small checkouts for the tests of the lint: a room with the modules that a test gives."""

from pathlib import Path

LONG = "VALUE = 1\n" * 60  # a module that is no fragment


def write_room(root: Path, modules: dict[str, str], room: str = "shop") -> Path:
    """Write a room with these modules, by their paths inside the package, and return the root."""
    package = root / room / f"beckon_{room}"
    for name, text in {"__init__.py": '"""A room."""\n', **modules}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
