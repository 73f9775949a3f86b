"""An embedded broker for one probe: a process with its own folder, killed and started at will."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from beckon_cli.errors import CommandError
from beckon_cli.local.ports import answers
from beckon_cli.local.process import die_with_parent

_HOST = "127.0.0.1"
_START_SECONDS = 30.0
_PAUSE = 0.05


class BrokerProcess:
    """A module of Python that is a broker. `url` is its ingress, `folder` its manifests.

    It answers `/healthz` at the root of the ingress.
    """

    def __init__(self, url: str, folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self.url = url
        self.folder = folder
        self._words = words
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; return once it answers. Raises `CommandError` if it ends before."""
        command = (sys.executable, "-m", *self._words)
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self._environment,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,
        )
        self._process = process
        deadline = time.monotonic() + _START_SECONDS
        while not await answers(self.url):
            if process.returncode is not None or time.monotonic() > deadline:
                raise CommandError(f"{self._words[0]} does not start", status=2)
            await asyncio.sleep(_PAUSE)

    async def restart(self) -> None:
        """Kill the process with SIGKILL, and start it again."""
        await self.kill()
        await self.start()

    async def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def _find_port() -> int:
    """Return a port that is free now, chosen by the system, so that two probes at once get different ones."""
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextlib.asynccontextmanager
async def embedded_broker(environment: Mapping[str, str] | None = None) -> AsyncIterator[BrokerProcess]:
    """Run an embedded broker on an empty folder; yield it, and kill it at the end.

    `environment` has its settings, such as the log behind it; by default it is that of this process.
    """
    with tempfile.TemporaryDirectory(prefix="beckon-probe-") as folder:
        manifests = Path(folder)
        port = _find_port()
        settings = {
            **(os.environ if environment is None else environment),
            "BECKON_HOST": _HOST,
            "BECKON_PORT": str(port),
            "BECKON_MANIFESTS": folder,
            "BECKON_LOG_LEVEL": "error",
        }
        url = f"http://{_HOST}:{port}/default/default"
        broker = BrokerProcess(url, manifests, ["beckon_broker"], settings)
        try:
            await broker.start()
            yield broker
        finally:
            await asyncio.shield(broker.kill())
