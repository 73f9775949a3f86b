"""An MCP server of the SDK, a program of its own: over HTTP, its port as argument, or over its streams."""

import asyncio
import base64
import os
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer("tools of a test", log_level="ERROR")


class Point(BaseModel):
    """A place on paper."""

    x: int
    y: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def trace_of(ctx: Context) -> str:
    """Tell the trace that the call belongs to."""
    return str((ctx.request_context.meta or {}).get("traceparent"))


@server.tool()
def mirror(x: int, y: int) -> Point:
    """Mirror a point."""
    return Point(x=-x, y=-y)


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Say a text."""
    return text


@server.tool(structured_output=False)
def several() -> list[TextContent | Image | Audio]:
    """Return blocks of several kinds."""
    return [
        TextContent(type="text", text="a"),
        Image(data=b"\x89PNG", format="png"),
        Audio(data=b"RIFF", format="wav"),
    ]


@server.tool(structured_output=False)
def picture() -> Image:
    """Return a picture."""
    return Image(data=base64.b64decode("iVBO"), format="png")


@server.tool(structured_output=False)
def refuse(text: str) -> str:
    """Refuse."""
    raise ValueError(text)


@server.tool(annotations=ToolAnnotations(destructive_hint=True), structured_output=False)
def die() -> str:
    """End the server."""
    os._exit(1)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True), structured_output=False)
def die_once(mark: str) -> str:
    """End the server unless a file is there."""
    if not os.path.exists(mark):  # noqa: PTH110 one line of a test's program
        with open(mark, "w", encoding="utf-8"):  # noqa: PTH123 one line of a test's program
            os._exit(1)
    return "alive"


@server.tool(structured_output=False)
def process() -> str:
    """Tell which process this is, and what it inherited."""
    return f"{os.getpid()} {os.environ.get('BECKON_MANIFESTS', '')}{os.environ.get('GIVEN', '')}"


@server.tool(structured_output=False)
async def slow(seconds: float) -> str:
    """Take long."""
    await asyncio.sleep(seconds)
    return "done"


@server.tool(structured_output=False)
async def count(to: int, ctx: Context, received: str = "") -> str:
    """Count, and report it; with a folder, continue once a file of the number exists."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"{number} of {to}, {os.environ.get('GIVEN', '')}")
        while received and not os.path.exists(f"{received}/{number}"):  # noqa: ASYNC110, ASYNC240, PTH110 a test's
            await asyncio.sleep(0.01)
    requested = "progress_token" in (ctx.request_context.meta or {})
    return "progress requested" if requested else "no progress requested"


@server.tool(structured_output=False)
def large() -> str:
    """Return more than anybody takes."""
    return "x" * 100_000


class Wrong(BaseModel):
    """A result that does not fit the schema which clients see."""

    size: Annotated[int, Field(json_schema_extra={"maximum": 10})]


@server.tool()
def oversized() -> Wrong:
    """Return more than the schema says."""
    return Wrong(size=11)


@server.tool(structured_output=False)
def region(name: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], ctx: Context) -> str:
    """Return the header of the argument."""
    request = ctx.request_context.request
    return f"{name} {getattr(request, 'headers', {}).get('mcp-param-region')}"


COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


@server.tool(structured_output=False)
def wrap(item: str, ctx: Context) -> str | InputRequiredResult:
    """Wrap an item in paper of a colour that a person chooses."""
    answer = (ctx.input_responses or {}).get("paper")
    if not isinstance(answer, ElicitResult):
        form = ElicitRequestFormParams(message=f"Which paper for {item}?", requested_schema=COLOUR)
        requests: dict[str, Any] = {"paper": ElicitRequest(params=form)}
        return InputRequiredResult(input_requests=requests, request_state="wrapping")
    return f"{answer.action} {(answer.content or {}).get('colour')}, {ctx.request_state}"


@server.tool(structured_output=False)
def sign(ctx: Context) -> str | InputRequiredResult:
    """Require a person to open a page."""
    page = ElicitRequestURLParams(message="Sign here.", url="https://example.com", elicitation_id="1")
    requests: dict[str, Any] = {"page": ElicitRequest(params=page)}
    return InputRequiredResult(input_requests=requests, request_state="signing")


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
