"""The standard error of a command, logged by line and rate-limited."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Sequence
from typing import TextIO

logger = logging.getLogger(__name__)

_LONGEST = 2000  # characters of a line that are logged
_MOST, _SECONDS = 200, 60.0  # lines that are logged in so many seconds; the others are counted
_CHUNK = 65_536
_LAST_WORDS = 1.0  # seconds for what an ended command has left in the pipe
_HIDDEN = "[hidden]"


@contextlib.asynccontextmanager
async def logged(name: str, secrets: Sequence[str] = ()) -> AsyncIterator[TextIO]:
    """Yield a file; its lines are logged under the server's name.

    The secrets of the server are hidden.
    """
    reading, writing = os.pipe()
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb")
    )
    lines = asyncio.create_task(_log(stream, _LineReader(name, secrets)))
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

    def take(self, line: bytes) -> None:
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


async def _log(stream: asyncio.StreamReader, lines: _LineReader) -> None:
    rest = b""
    try:
        while chunk := await stream.read(_CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                lines.take(line)
            if len(rest) > _CHUNK:  # no line at all
                lines.take(rest)
                rest = b""
        lines.take(rest)
    finally:
        lines.log_omitted()
