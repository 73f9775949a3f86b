"""`beckon call`: a tool through the Broker, without a model."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.local.session import agent_session
from beckon_cli.output import err, print_json, report_text
from beckon_cli.settings import Settings, load_settings


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
    given: dict[str, object] = {}
    for text in arguments:
        key, value = _pair(text)
        if key in given:
            raise CommandError(f"{key} is given twice; a list is written as JSON: {key}='[1, 2]'", status=2)
        given[key] = value
    asyncio.run(_call(load_settings(), tool, given))


async def _call(settings: Settings, tool: str, arguments: Mapping[str, object]) -> None:
    async with agent_session(settings) as client:
        with err.status(f"waiting for {tool} …") as waiting:
            answer: dict[str, Any] = {}
            async for name, reported in client.call_tool(tool, arguments):
                if name == "progress":
                    waiting.update(Text(report_text(tool, reported)))
                else:
                    answer = reported
    if not answer:
        raise CommandError(f"the agent at {client.url} went away before the answer")
    print_json(answer["result"])


def _pair(text: str) -> tuple[str, object]:
    """Parse `key=value`; the value is read as JSON, else as text.

    Raises `CommandError` for a text without key or `=`.
    """
    key, found, value = text.partition("=")
    if not found or not key:
        raise CommandError(f"{text!r} is not key=value; write for instance: location=Paris", status=2)
    try:
        return key, json.loads(value, parse_constant=_refuse_constant)
    except ValueError:
        return key, value


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity as JSON; they are read as text.

    The parser of the standard library is used because it reads long integers exactly.
    """
    raise ValueError(name)
