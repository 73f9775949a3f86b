"""Several of the shipped servers in one process, each on a port of its own.

The local platform runs `python -m beckon_cli.local.group calculator=8086 library=8087`, so that their imports
are paid for once. A server that cannot be built is left out with a message; the others are served.
"""

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Iterator, Sequence

import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from beckon_adapter.library import serve_library
from beckon_cli.local.services import LIBRARY
from beckon_runtime.asgi import DrainingServer, server_config
from beckon_runtime.process import CannotListen, listen, on_stop_signal, refuse_start
from beckon_tools.__main__ import read_settings
from beckon_tools.app import Application, app
from beckon_tools.command import find_tool
from beckon_tools.errors import UsageError
from beckon_tools.settings import Settings

logger = logging.getLogger(__name__)


class _GroupMember(DrainingServer):
    """A server among others, without handlers of signals."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, members: int) -> None:
        super().__init__(config, ports_of_process=members)
        self._listener = listener

    async def serve_in_group(self) -> None:
        """Serve at the listener until `should_exit`."""
        with self._listener:
            await self.serve([self._listener])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the handlers of signals as they are."""
        yield


def main() -> int:
    """Serve until SIGTERM; return 2 if nothing can be served."""
    try:
        ports = [_parse_member(word) for word in sys.argv[1:]]
        servers = _open_servers(ports, read_settings())
    except (UsageError, CannotListen) as error:
        return refuse_start("beckon_cli.local.group", str(error))
    if not servers:
        return refuse_start("beckon_cli.local.group", "no server is left; write NAME=PORT for each")
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(servers))
    return 0


def _parse_member(word: str) -> tuple[str, int]:
    name, _, port = word.partition("=")
    if not (name and port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise UsageError(f"{word!r} is no server; write NAME=PORT, such as calculator=8086")
    return name, int(port)


def _open_servers(ports: Sequence[tuple[str, int]], settings: Settings) -> list[_GroupMember]:
    """Return a server with an open port for each name.

    Raises `CannotListen` for a port that is not available.
    """
    limits = settings.connection_limits(0.75 / max(1, len(ports)))
    policy = settings.origin_policy(settings.host)
    servers = []
    for name, port in ports:
        try:
            application = _build_application(name, settings)
        except UsageError as error:
            sys.stderr.write(f"beckon_cli.local.group: {error}\n")
            continue
        config = server_config(application, policy, limits, closing_seconds=settings.drain_seconds)
        servers.append(_GroupMember(config, listen(settings.host, port), len(ports)))
    return servers


def _build_application(name: str, settings: Settings) -> Application:
    return serve_library if name == LIBRARY else app(find_tool(name, settings), settings)


async def _serve(servers: Sequence[_GroupMember]) -> None:
    def stop() -> None:
        for server in servers:
            server.should_exit = True

    on_stop_signal(stop)
    await asyncio.gather(*(server.serve_in_group() for server in servers))
    logger.info("stopped")


if __name__ == "__main__":
    sys.exit(main())
