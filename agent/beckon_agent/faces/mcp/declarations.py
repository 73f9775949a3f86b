"""Tools as MCP declares them: `tools/list`, page by page in the order of names."""

from collections.abc import Iterable, Mapping
from itertools import islice

from beckon_contract.tools import Tool

PAGE = 1_000  # tools; several clients never ask for a second page
_CURSOR = "after:"


class BadCursor(ValueError):
    """A cursor that no page ends with."""


def page(tools: Mapping[str, Tool], cursor: str | None) -> dict[str, object]:
    """Return the members of a page; raises `BadCursor`.

    The cursor is the last name that was told, so that changes between two pages lose no tool.
    """
    found = [_declared(tool) for tool in islice(_after(tools, cursor), PAGE + 1)]
    if len(found) <= PAGE:
        return {"tools": found, "resultType": "complete"}
    cursor = f"{_CURSOR}{found[PAGE - 1]['name']}"
    return {"tools": found[:PAGE], "nextCursor": cursor, "resultType": "complete"}


def _after(tools: Mapping[str, Tool], cursor: str | None) -> Iterable[Tool]:
    if cursor is None:
        return tools.values()
    if not cursor.startswith(_CURSOR):
        raise BadCursor("the cursor is none of this server's; leave it out to begin with the first page")
    last = cursor.removeprefix(_CURSOR)
    return (tool for name, tool in tools.items() if name > last)


def _declared(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "title": tool.event_type,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {
            "readOnlyHint": tool.read_only,
            # Where an EventType says nothing of it, a client should rather ask once too often.
            "destructiveHint": not tool.read_only if tool.destructive is None else tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": True,  # a service may talk to whomever it likes
        },
    }
