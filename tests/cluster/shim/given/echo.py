"""A tool that says a text again after a while."""

import asyncio

from beckon_tools import tool


@tool(type="echo")
async def echo(text: str, seconds: float = 0.0) -> str:
    """Say something again."""
    await asyncio.sleep(seconds)
    return text
