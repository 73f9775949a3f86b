"""`beckon call`: a tool through the Broker, without a model."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from beckon_cli.client import AgentClient, UnknownTool
from beckon_cli.errors import CommandError
from beckon_cli.local.session import agent_session
from beckon_cli.output import err, print_json, report_text
from beckon_cli.settings import Settings, load_settings
from beckon_contract.names import sanitise


def call(tool: str, /, *arguments: str) -> None:
    """Call a tool through the broker, without a model; print its result as JSON.

    For instance: beckon call calculator expression="17% of 2340"

    Parameters
    ----------
    tool
        The tool's name, as `beckon tools` prints it.
    arguments
        key=value, where a value that is JSON is read as JSON.
    """
    if not tool:
        raise CommandError("no tool; write for instance: beckon call calculator expression=2+2", status=2)
    values = {key: read_value(value) for key, value in split_pairs(arguments).items()}
    asyncio.run(_call(load_settings(), tool, values))


async def _call(settings: Settings, tool: str, arguments: Mapping[str, object]) -> None:
    async with agent_session(settings) as client:
        try:
            answer = await _get_result(client, tool, arguments)
        except UnknownTool as error:
            reason = _find_reason(tool, await client.get_catalogue())
            raise CommandError(reason or str(error)) from None
    if not answer:
        raise CommandError(f"the agent at {client.url} went away before the answer")
    print_json(answer["result"])


async def _get_result(client: AgentClient, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    with err.status(f"waiting for {tool} …") as waiting:
        async for name, reported in client.call_tool(tool, arguments):
            if name == "progress":
                waiting.update(Text(report_text(tool, reported)))
            else:
                answer = reported
    return answer


def _find_reason(tool: str, catalogue: Mapping[str, Any]) -> str:
    """Return why an EventType of this name is no tool, with the cure; "" if there is none.

    A file that cannot be read may be the one with the EventType.
    """
    for word in ("refused", "skipped"):
        for one in catalogue[word]:
            if one["event_type"] and sanitise(one["event_type"]) == sanitise(tool):
                what = (
                    f"there is no tool {tool}: its EventType {one['namespace']}/{one['event_type']} is {word}"
                )
                where = f" ({one['origin']})" if one["origin"] else ""
                field = f"{one['field']}: " if one.get("field") else ""
                return f"{what}{where}: {one['reason']}: {field}{one['message']}"
    unreadable = [one for one in catalogue["refused"] if not one["event_type"]]
    if not unreadable:
        return ""
    reasons = "; ".join(f"{one['origin']}: {one['message']}" for one in unreadable)
    return f"there is no tool {tool}, and a manifest cannot be read: {reasons}"


def split_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of `key=value` arguments by their keys.

    Raises `CommandError` for a text without key or `=`, and for a key that is given twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise CommandError(f"{text!r} is not key=value; write for instance: location=Paris", status=2)
        if key in pairs:
            raise CommandError(f"{key} is given twice; a list is written as JSON: {key}='[1, 2]'", status=2)
        pairs[key] = value
    return pairs


def read_value(text: str) -> object:
    """Return a value that is JSON as JSON, else as text."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        return text


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity as JSON; they are read as text.

    The parser of the standard library is used because it reads long integers exactly.
    """
    raise ValueError(name)
