"""A connection with immediate detection of its end.

Otherwise the end would be noticed with the next call only.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client import Transport

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watched(
    transport: Transport, name: str, ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of a connection; call `ended` at its end.

    That is the end of the server's stream.
    """
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
