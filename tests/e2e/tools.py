"""Tools for the end-to-end tests, served as a user's own are: `beckon_tools serve tests.e2e.tools:…`."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from beckon_tools import ToolError, tool


def _add_line(file: Path) -> None:
    with file.open("a") as lines:
        lines.write("begun\n")


@tool(type="test.sleep")
async def sleep(
    seconds: Annotated[float, Field(description="How long to sleep")],
    begun: Annotated[str, Field(description="A file that gets a line when it begins")] = "",
) -> str:
    """Sleep for some seconds."""
    if begun:
        await asyncio.to_thread(_add_line, Path(begun))
    await asyncio.sleep(seconds)
    return f"slept {seconds:g} seconds"


@tool(type="test.fail")
async def fail(kind: Annotated[str, Field(description="refuse or crash")]) -> str:
    """Fail on purpose."""
    if kind == "refuse":
        raise ToolError("this tool was asked to refuse")
    raise RuntimeError("the paper is out")
