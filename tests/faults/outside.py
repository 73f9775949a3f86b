"""What is never killed, in a process of its own: two tools of the SDK and the model that calls both of them.

Each tool notes its effects in an SQLite file. `python -m tests.faults.outside FILE HOST` prints the URLs of
the tools and of the model.
"""

import asyncio
import json
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from beckon_tools import Hints, tool
from beckon_tools.app import app
from beckon_tools.declaration import AnyTool
from tests.agent.scripted_model import calls, chunk, fragment, sse
from tests.serving import served

WORK_SECONDS = 0.3
"""The seconds of a call in its tool: six of twenty calls a second are there when a part is killed."""

ONCE, AGAIN = "once", "again"
TOOLS = (ONCE, AGAIN)


class Effects:
    """The effects in a file: a row for each time that a tool did its work."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def create(self) -> None:
        """Make the file."""
        with closing(sqlite3.connect(self._file)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE effects (tool TEXT, run TEXT)")

    def add(self, name: str, run: str) -> None:
        """Note one."""
        with closing(sqlite3.connect(self._file, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute("INSERT INTO effects VALUES (?, ?)", (name, run))

    def count(self) -> Counter[tuple[str, str]]:
        """Return how often each tool did its work for each run."""
        with closing(sqlite3.connect(self._file)) as database:
            return Counter(map(tuple, database.execute("SELECT tool, run FROM effects")))


def result(name: str, run: str) -> str:
    """Return what a tool answers."""
    return f"{name} for {run}"


def make_tools(effects: Effects) -> list[AnyTool]:
    """Return the tools; only the second one says that a call may be delivered again."""

    @tool(type="faults.once")
    async def once(run: str) -> str:
        """Do something that must not happen twice."""
        await asyncio.sleep(WORK_SECONDS)
        effects.add(ONCE, run)
        return result(ONCE, run)

    @tool(type="faults.again", hints=Hints(idempotent=True))
    async def again(run: str) -> str:
        """Do something that may be requested again."""
        await asyncio.sleep(WORK_SECONDS)
        effects.add(AGAIN, run)
        return result(AGAIN, run)

    return [once, again]


async def model(scope: Scope, receive: Receive, send: Send) -> None:
    """Call both tools side by side with the user's text, then answer; list the model for a GET."""
    request = Request(scope, receive)
    if request.method == "GET":
        await JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}]})(scope, receive, send)
        return
    messages = json.loads(await request.body())["messages"]
    run = next(message["content"] for message in messages if message["role"] == "user")
    if any(message["role"] == "tool" for message in messages):
        pieces = [chunk({"content": "Done."}), chunk(finish="stop")]
    else:
        fragments = [
            calls(fragment(number, f"call_{number}", f"faults_{name}", json.dumps({"run": run})))
            for number, name in enumerate(TOOLS)
        ]
        pieces = [*fragments, chunk(finish="tool_calls")]
    await StreamingResponse(iter([sse(*pieces)]), media_type="text/event-stream")(scope, receive, send)


async def serve(file: Path, host: str) -> None:
    """Serve until the standard input ends."""
    effects = Effects(file)
    effects.create()
    async with AsyncExitStack() as stack:
        serving = [served(app(each), host=host) for each in make_tools(effects)]
        urls = [await stack.enter_async_context(each) for each in (*serving, served(model, host=host))]
        sys.stdout.write(" ".join(urls) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
