"""Descriptions for the tests: read from the shared data or from a text, and imported."""

from pathlib import Path
from typing import Any

import yaml

from beckon_adapter.request import HttpRequest, build_request
from beckon_adapter.rule import parse_rule
from beckon_cli.importing.candidates import ImportSource
from beckon_cli.importing.openapi.finding import Reading, find_operations
from beckon_cli.importing.openapi.importer import Imported, OpenApiOptions
from beckon_cli.importing.openapi.openapi3 import ServerChoice
from tests.shared_data import shared_data

DATA = shared_data("openapi")
TWELVE = sorted(DATA.glob("*.json"))


def found_in(
    path: Path, *select: str, choice: ServerChoice | None = None, **options: Any
) -> ImportSource[Imported]:
    """Return what becomes of the operations of a file."""
    reading = Reading(None, lambda line: None)
    return find_operations(str(path), select, OpenApiOptions(**options), choice or ServerChoice(), reading)


def written(folder: Path, description: dict[str, Any] | str, name: str = "api.yaml") -> Path:
    """Write a description into a file and return its path."""
    path = folder / name
    path.write_text(description if isinstance(description, str) else yaml.safe_dump(description), "utf-8")
    return path


def openapi(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a description with these paths."""
    info = {"title": "Pets", "version": "1"}
    return {
        "openapi": "3.0.3",
        "info": info,
        "servers": [{"url": "https://pets.example/v1"}],
        "paths": paths,
        **more,
    }


def tools_of(found: ImportSource[Imported]) -> dict[str, Imported]:
    """Return the tools by their names."""
    return {tool.name: tool for tool in found.tools}


def request(tool: Imported, **arguments: Any) -> HttpRequest:
    """Return the request of a call, as the adapter makes it."""
    return build_request(parse_rule(tool.rule_text, tool.parameters), arguments)
