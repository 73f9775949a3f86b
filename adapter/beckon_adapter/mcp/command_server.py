"""MCP servers as commands: their processes, connections and standard error."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TextIO

import anyio
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, Tool, ToolListChangedNotification

from beckon_adapter.egress.client import Unreachable
from beckon_adapter.mcp.forms import ServerForms
from beckon_adapter.mcp.http_server import (
    LISTING_SECONDS,
    ServerCall,
    convert_errors,
    first_error_text,
    is_lost,
    read_tool_list,
)
from beckon_adapter.rule import NamedServer

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watch_transport(
    transport: Transport, name: str, ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of a connection; call `ended` at its end. That is the end of the server's stream."""
    async with transport as (read, write):
        yield _Reading(read, name, ended), write


class _Reading:
    """A stream of messages as the client of the SDK reads it."""

    def __init__(self, stream: Any, name: str, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._name = name
        self._ended = ended
        self._noise = False

    async def receive(self) -> Any:
        try:
            message = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise
        if isinstance(message, Exception) and not self._noise:
            self._noise = True
            logger.warning(
                "%s writes on its standard output what is no message; it is passed over", self._name
            )
        return message

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


_LONGEST = 2000  # characters of a line that are logged
_MOST, _SECONDS = 200, 60.0  # lines that are logged in so many seconds; the others are counted
_CHUNK = 65_536
_LAST_WORDS = 1.0  # seconds for what an ended command has left in the pipe
_HIDDEN = "[hidden]"


@contextlib.asynccontextmanager
async def log_stderr(name: str, secrets: Sequence[str] = ()) -> AsyncIterator[TextIO]:
    """Yield a file; its lines are logged under the server's name. The secrets of the server are hidden."""
    reading, writing = os.pipe()
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb")
    )
    lines = asyncio.create_task(_log_lines(stream, _LineReader(name, secrets)))
    try:
        with os.fdopen(writing, "w") as file:
            yield file
    finally:
        await asyncio.wait([lines], timeout=_LAST_WORDS)  # what the command has started may hold the pipe
        lines.cancel()
        transport.close()


class _LineReader:
    """Logs lines, at most `_MOST` in `_SECONDS`; counts the others."""

    def __init__(self, name: str, secrets: Sequence[str]) -> None:
        self._name = name
        self._secrets = secrets
        self._began = time.monotonic()
        self._logged = 0
        self._left_out = 0

    def take_line(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if not text:
            return
        if time.monotonic() - self._began > _SECONDS:
            self.log_omitted()
        if self._logged >= _MOST:
            self._left_out += 1
            return
        self._logged += 1
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)  # before the cut, which may go through one
        logger.info("%s: %s", self._name, text[:_LONGEST])

    def log_omitted(self) -> None:
        """Log the number of omitted lines, and start to count again."""
        if self._left_out:
            logger.warning("%s: %d more lines were left out of the log", self._name, self._left_out)
        self._began, self._logged, self._left_out = time.monotonic(), 0, 0


async def _log_lines(stream: asyncio.StreamReader, lines: _LineReader) -> None:
    rest = b""
    try:
        while chunk := await stream.read(_CHUNK):
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete:
                lines.take_line(line)
            if len(rest) > _CHUNK:  # no line at all
                lines.take_line(rest)
                rest = b""
        lines.take_line(rest)
    finally:
        lines.log_omitted()


_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_SIGN_OF_LIFE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

Noticed = Callable[[], None]
"""Called when the tools may be others: a connection is there, or the server says so."""


class CommandServer:
    """Runs one process for all calls, from the first call or from `keep_running` on."""

    def __init__(self, server: NamedServer, noticed: Noticed = lambda: None) -> None:
        program, *words = server.command
        self._name = server.name
        self._parameters = StdioServerParameters(command=program, args=words, env=dict(server.env))
        self._secrets = server.secrets
        self._noticed = noticed
        self._current: _Run | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def call_tool(self, call: ServerCall) -> CallToolResult:
        """Call the tool, starting the command if it is not running."""
        sent = False
        with convert_errors(lambda: sent):
            run = await self._ensure_started()
            try:
                async with asyncio.timeout(call.seconds):
                    sent = True
                    return await run.forms.answer_during(call.person, call.send_by(run.client.result()))
            except TimeoutError:
                self._spawn_task(self._check_health(run))
                raise
            except Exception as error:
                if is_lost(error):
                    self._stop_run(run)
                raise

    async def list_tools(self) -> Sequence[Tool]:
        """Return the tools of the command, starting it if needed."""
        with convert_errors(lambda: False):
            run = await self._ensure_started()
            async with asyncio.timeout(LISTING_SECONDS):
                return await read_tool_list(run.client.result())

    async def keep_running(self, note: Callable[[str], None]) -> None:
        """Keep the command running until cancelled.

        Calls `note` after each start: with "", or the reason why it failed. The pause before the next start
        doubles with each failed one, up to `_LONGEST_PAUSE`.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                with convert_errors(lambda: False):
                    run = await self._ensure_started()
            except Unreachable as error:
                note(f"the MCP server {self._name} {error}")
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                note("")
                pause = _FIRST_PAUSE
                await run.over.wait()
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """End the command."""
        if self._current is not None:
            self._stop_run(self._current)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()

    async def _ensure_started(self) -> "_Run":
        """Return the running process, starting it if needed; raise `Unreachable`."""
        if self._current is None:
            self._current = _Run()
            self._spawn_task(self._run_process(self._current))
        run = self._current
        await asyncio.shield(run.client)
        return run

    def _stop_run(self, run: "_Run") -> None:
        """Stop a process; the next call starts another."""
        run.over.set()
        if self._current is run:
            self._current = None

    async def _run_process(self, run: "_Run") -> None:
        """Run one process from its start to its end.

        A connection has to be closed by the task that opened it.
        """
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = self._make_client(
                    run, await stack.enter_async_context(log_stderr(self._name, self._secrets))
                )
                async with asyncio.timeout(_START_SECONDS):
                    connected = await stack.enter_async_context(client)
                run.client.set_result(connected)
                logger.info("the MCP server %s runs", self._name)
                self._noticed()
                await run.over.wait()
        except Exception as error:
            reason = (
                f"no answer in {_START_SECONDS:g} s"
                if isinstance(error, TimeoutError)
                else first_error_text(error)
            )
            if run.client.done():
                logger.warning("the MCP server %s did not end well: %s", self._name, reason)
            else:
                logger.warning("the MCP server %s does not start: %s", self._name, reason)
                run.client.set_exception(Unreachable(f"does not start: {reason}", sent=False))
                run.client.exception()  # marks it as retrieved, even if no caller waits
        finally:
            self._stop_run(run)

    def _make_client(self, run: "_Run", errors: TextIO) -> Client:
        def stop_run() -> None:
            if not run.over.is_set():
                logger.warning("the MCP server %s has ended; it is started again", self._name)
            self._stop_run(run)

        async def take_message(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._noticed()

        transport = watch_transport(stdio_client(self._parameters, errlog=errors), self._name, stop_run)
        return Client(transport, cache=None, message_handler=take_message, elicitation_callback=run.forms)

    async def _check_health(self, run: "_Run") -> None:
        """End a process if it no longer answers. The next call then starts another one."""
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE_SECONDS):
                await run.client.result().list_tools()
        except Exception:  # no answer, or an error of any kind: what runs there is of no use
            if not run.over.is_set():
                logger.warning("the MCP server %s hangs, and is ended", self._name)
            self._stop_run(run)

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Run:
    """One process: the future of its client, the forms of its calls, and its end event."""

    def __init__(self) -> None:
        self.client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.forms = ServerForms()
        self.over = asyncio.Event()
