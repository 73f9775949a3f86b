"""An MCP server that misbehaves on request, over its standard streams.

TOOLS in the environment names a file; where it is there, `second` has another parameter. MARK names a file
to which every start adds a line.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("wild", log_level="ERROR")
CHANGED = os.environ.get("TOOLS", "")


def leave(mark: str, line: str) -> None:
    """Add a line to a file."""
    with Path(mark).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@server.tool(structured_output=False)
def process() -> str:
    """Tell which process this is."""
    return str(os.getpid())


@server.tool(structured_output=False)
async def hang(mark: str) -> str:
    """Leave a mark, and answer nothing any more."""
    leave(mark, "hung")
    time.sleep(600)  # noqa: ASYNC251 nothing else is to run
    return "awake"


@server.tool(structured_output=False)
def end() -> str:
    """End the server."""
    os._exit(1)


@server.tool(structured_output=False)
def complain(text: str, times: int) -> str:
    """Write on the standard error."""
    for _ in range(times):
        sys.stderr.write(f"{text}\n")
    return "said"


@server.tool(structured_output=False)
def secret() -> str:
    """Tell the secret."""
    return f"it is {os.environ['SECRET']}"


@server.tool(structured_output=False)
async def walk(steps: int, ctx: Context) -> str:
    """Walk slowly, and tell of each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(2)
    return "there"


@server.tool(structured_output=False)
def orphan() -> str:
    """Leave a process behind whose parent has ended; return its id."""
    shown = subprocess.run(
        ["sh", "-c", "sleep 2 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


def first(number: int) -> str:
    """Take one parameter."""
    return str(number)


def other(count: int) -> str:
    """Take another one."""
    return str(count)


@server.tool(structured_output=False)
async def change() -> str:
    """Exchange a tool for another one, and say so."""
    server.remove_tool("second")
    server.add_tool(other, name="second", structured_output=False)
    await asyncio.sleep(0)
    return "changed"


if __name__ == "__main__":
    if mark := os.environ.get("MARK"):
        leave(mark, str(os.getpid()))
    changed = bool(CHANGED) and Path(CHANGED).exists()
    server.add_tool(other if changed else first, name="second", structured_output=False)
    server.run("stdio")
