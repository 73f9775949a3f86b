"""An MCP server run as a command, in one supervised process.

The process keeps running between calls, is ended if it no longer answers, and is started again after its
end.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TextIO

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Tool, ToolListChangedNotification

from beckon_adapter.bridge.failures import convert_errors, first, is_lost
from beckon_adapter.bridge.servers import LISTING_SECONDS, list_tools
from beckon_adapter.bridge.settings import NamedServer
from beckon_adapter.bridge.stderr import logged
from beckon_adapter.bridge.watched import watched
from beckon_adapter.outbound.egress import Unreachable

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_SIGN_OF_LIFE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

Noticed = Callable[[], None]
"""Called when the tools may be others: a connection is there, or the server says so."""


class CommandServer:
    """Runs one process for all calls, from the first call or `keep` on."""

    def __init__(self, server: NamedServer, noticed: Noticed = lambda: None) -> None:
        program, *words = server.command
        self._name = server.name
        self._parameters = StdioServerParameters(command=program, args=words, env=dict(server.env))
        self._secrets = server.secrets
        self._noticed = noticed
        self._current: _Run | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], seconds: float, heard: ProgressFnT | None = None
    ) -> CallToolResult:
        """Call the tool, starting the command if it is not running."""
        sent = False
        with convert_errors(lambda: sent):
            run = await self._started()
            try:
                async with asyncio.timeout(seconds):
                    sent = True
                    return await run.client.result().call_tool(tool, dict(arguments), progress_callback=heard)
            except TimeoutError:
                self._spawn(self._look_after(run))
                raise
            except Exception as error:
                if is_lost(error):
                    self._forget(run)
                raise

    async def tools(self) -> Sequence[Tool]:
        """Return the tools of the command, starting it if needed."""
        with convert_errors(lambda: False):
            run = await self._started()
            async with asyncio.timeout(LISTING_SECONDS):
                return await list_tools(run.client.result())

    async def keep(self, ready: Callable[[], None]) -> None:
        """Keep the command running until cancelled.

        Calls `ready` after each start. The pause before the next start doubles with each failed one, up
        to `_LONGEST_PAUSE`.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                with convert_errors(lambda: False):
                    run = await self._started()
            except Unreachable:
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                ready()
                pause = _FIRST_PAUSE
                await run.over.wait()
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """End the command."""
        if self._current is not None:
            self._forget(self._current)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()

    async def _started(self) -> "_Run":
        """Return the running process, starting it if needed; raise `Unreachable`."""
        if self._current is None:
            self._current = _Run()
            self._spawn(self._run(self._current))
        run = self._current
        await asyncio.shield(run.client)
        return run

    def _forget(self, run: "_Run") -> None:
        """Stop a process; the next call starts another."""
        run.over.set()
        if self._current is run:
            self._current = None

    async def _run(self, run: "_Run") -> None:
        """Run one process from its start to its end.

        A connection has to be closed by the task that opened it.
        """
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = self._client(run, await stack.enter_async_context(logged(self._name, self._secrets)))
                async with asyncio.timeout(_START_SECONDS):
                    connected = await stack.enter_async_context(client)
                run.client.set_result(connected)
                logger.info("the MCP server %s runs", self._name)
                self._noticed()
                await run.over.wait()
        except Exception as error:
            reason = f"no answer in {_START_SECONDS:g} s" if isinstance(error, TimeoutError) else first(error)
            if run.client.done():
                logger.warning("the MCP server %s did not end well: %s", self._name, reason)
            else:
                logger.warning("the MCP server %s does not start: %s", self._name, reason)
                run.client.set_exception(Unreachable(f"does not start: {reason}", sent=False))
                run.client.exception()  # whoever waits hears it; nobody need
        finally:
            self._forget(run)

    def _client(self, run: "_Run", errors: TextIO) -> Client:
        def ended() -> None:
            if not run.over.is_set():
                logger.warning("the MCP server %s has ended; it is started again", self._name)
            self._forget(run)

        async def heard(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._noticed()

        transport = watched(stdio_client(self._parameters, errlog=errors), self._name, ended)
        return Client(transport, cache=None, message_handler=heard)

    async def _look_after(self, run: "_Run") -> None:
        """End a process if it no longer answers.

        The next call then starts another one.
        """
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE_SECONDS):
                await run.client.result().list_tools()
        except Exception:  # no answer, or an error of any kind: what runs there is of no use
            if not run.over.is_set():
                logger.warning("the MCP server %s hangs, and is ended", self._name)
            self._forget(run)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Run:
    """One process: the future of its client, and its end event."""

    def __init__(self) -> None:
        self.client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
