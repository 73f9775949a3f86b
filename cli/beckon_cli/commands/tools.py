"""`beckon tools`: the catalogue as the model sees it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from beckon_cli.client import AgentClient, is_agent
from beckon_cli.errors import CommandError
from beckon_cli.output import err, out, print_json, print_json_line, print_rows
from beckon_cli.settings import Settings, load_settings
from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.resources.tools import Tool, declare
from beckon_sources.folders import read_folder


def tools(*, manifests: Path | None = None, json: bool = False) -> None:
    """Print the tools as the model sees them, and the refused ones with reasons.

    Parameters
    ----------
    manifests
        Read this folder; nothing needs to run.
    json
        Print OpenAI's `tools` array, and what was refused or skipped as JSON lines on standard error.
    """
    asyncio.run(_get_tools(load_settings(), manifests, as_json=json))


async def _get_tools(settings: Settings, manifests: Path | None, *, as_json: bool) -> None:
    if manifests is None and await is_agent(settings.url):
        async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
            catalogue = await client.get_catalogue()
    else:
        folder = manifests or settings.manifests
        if manifests is None and not as_json:
            err.print(f"no agent answers at {settings.url}; read from {folder}", style="dim")
        catalogue = _read_folder_tools(folder)
    if as_json:
        _print_declarations(catalogue)
    else:
        _print_table(catalogue)


def _read_folder_tools(folder: Path) -> dict[str, Any]:
    """Return the catalogue of a folder in the shape of `GET /tools`.

    Raises `CommandError` for a missing folder.
    """
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder}", status=2)
    catalogue = build_catalogue(read_folder(folder))
    return {
        "tools": [
            {**_tool_document(tool), "declaration": declare(tool)} for tool in catalogue.tools.values()
        ],
        "refused": [asdict(refusal) for refusal in catalogue.refusals],
        "skipped": [asdict(skipped) for skipped in catalogue.skipped],
    }


def _tool_document(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "type": tool.type,
        "triggers": list(tool.routes),
    }


def _print_declarations(catalogue: Mapping[str, Any]) -> None:
    print_json([tool["declaration"] for tool in catalogue["tools"]])
    for left_out in (*catalogue["refused"], *catalogue["skipped"]):
        print_json_line(left_out, to_stderr=True)


def _print_table(catalogue: Mapping[str, Any]) -> None:
    for tool in catalogue["tools"]:
        _print_tool(tool)
    if not catalogue["tools"]:
        out.print("no tools: no EventType with a description and a Trigger that routes it")
    for refusal in catalogue["refused"]:
        where = f" {refusal['field']}" if refusal["field"] else ""
        what = (
            f"{refusal['namespace']}/{refusal['event_type']}" if refusal["event_type"] else refusal["origin"]
        )
        out.print(
            Text.assemble(("refused ", "red"), f"{what}  {refusal['reason']}{where}: {refusal['message']}")
        )
    for skipped in catalogue["skipped"]:
        what = f"{skipped['namespace']}/{skipped['event_type']}"
        out.print(Text(f"skipped {what}  {skipped['reason']}: {skipped['message']}", style="dim"))


def _print_tool(tool: Mapping[str, Any]) -> None:
    out.print(Text.assemble((tool["name"], "bold cyan"), f"  {tool['description']}"))
    schema = tool["parameters"]
    required: Sequence[str] = schema.get("required") or ()
    rows = []
    for name, parameter in (schema.get("properties") or {}).items():
        described = parameter if isinstance(parameter, Mapping) else {}
        needed = "required" if name in required else "optional"
        rows.append((name, f"{_type_of(described)}, {needed}", str(described.get("description", ""))))
    print_rows(rows)


def _type_of(parameter: Mapping[str, Any]) -> str:
    """Return a parameter's type in a word or two."""
    if "enum" in parameter:
        return " | ".join(str(value) for value in parameter["enum"])
    kind = parameter.get("type")
    if isinstance(kind, list):
        return " | ".join(kind)
    return str(kind) if kind else "any"
