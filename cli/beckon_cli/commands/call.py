"""`beckon call`: a tool through the Broker, without a model."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import orjson
from cyclopts import Parameter

from beckon_cli.errors import CommandError
from beckon_cli.local.session import agent_session
from beckon_cli.output import print_json
from beckon_cli.settings import Settings, load_settings


def call(tool: str, *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Call a tool through the broker, without a model; print its result as JSON.

    For instance: beckon call calculator expression="17% of 2340"

    Parameters
    ----------
    tool
        The tool's name, as `beckon tools` prints it.
    arguments
        key=value, where a value that is JSON is read as JSON.
    """
    asyncio.run(_call(load_settings(), tool, dict(_pair(pair) for pair in arguments)))


async def _call(settings: Settings, tool: str, arguments: Mapping[str, object]) -> None:
    async with agent_session(settings) as client:
        answer = await client.call(tool, arguments)
    print_json(answer["result"])


def _pair(text: str) -> tuple[str, object]:
    """Read `key=value`; a value that is JSON is that, any other is text."""
    key, found, value = text.partition("=")
    if not found or not key:
        raise CommandError(f"{text!r} is not key=value; write for instance: location=Paris", status=2)
    try:
        return key, orjson.loads(value)
    except orjson.JSONDecodeError:
        return key, value
