"""`beckon runs` and `beckon approvals`: stored runs and pending approvals."""

import asyncio
import time
from typing import Any, Literal

from beckon_cli.client import AgentClient
from beckon_cli.errors import CommandError
from beckon_cli.output import call_text, err, out, print_json, print_rows
from beckon_cli.settings import Settings, load_settings

Status = Literal["queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]

_MOST = 100
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def runs(*, status: Status | None = None, agent: str = "", limit: int = 20, json: bool = False) -> None:
    """List the runs that are stored, the newest first: ids for `beckon replay`.

    Parameters
    ----------
    status
        Only runs of this status.
    agent
        Only runs of this agent.
    limit
        How many at most: 1 to 100; else 20.
    json
        Print one JSON document instead.
    """
    found = asyncio.run(_get_page(load_settings(), "/runs", _check_limit(limit), status=status, agent=agent))
    if json:
        print_json(found)
        return
    print_rows(
        [
            (run["id"], run["status"], _time_ago(run["created_at"]), _tool_names(run), run["question"])
            for run in found
        ]
    )
    if not found:
        out.print("no runs")


def approvals(*, limit: int = 20, json: bool = False) -> None:
    """List the calls that wait for a person: ids for `beckon approve`.

    Parameters
    ----------
    limit
        How many at most: 1 to 100; else 20.
    json
        Print one JSON document instead.
    """
    found = asyncio.run(_get_page(load_settings(), "/approvals", _check_limit(limit)))
    if json:
        print_json(found)
        return
    rows = [
        (one["response"] or one["run"], call_text(one["name"], one["arguments"]), one["question"])
        for one in found
    ]
    print_rows(rows)
    if not found:
        out.print("no call waits for a person")
    elif found[0]["response"]:
        err.print(f"next: beckon approve {found[0]['response']}", style="dim")


async def _get_page(settings: Settings, path: str, limit: int, **query: object) -> list[dict[str, Any]]:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        return await client.get_page(path, limit=limit, **query)


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= _MOST:
        raise CommandError(f"--limit is {limit}; write a number from 1 to {_MOST}", status=2)
    return limit


def _tool_names(run: dict[str, Any]) -> str:
    return ", ".join(
        tool["name"] if tool["calls"] == 1 else f"{tool['name']} ×{tool['calls']}" for tool in run["tools"]
    )


def _time_ago(moment: float) -> str:
    """Return how long ago something was, in one unit."""
    seconds = max(0.0, time.time() - moment)
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"
