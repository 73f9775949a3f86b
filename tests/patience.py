"""How long tests wait for what is sure to come.

On a quiet machine it is there within milliseconds, so the limit is only seen where it never comes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE = 45.0
"""Seconds: a process starts in one, and on a busy machine in thirty; a test that hangs is ended after 180."""


async def eventually(condition: Callable[[], Awaitable[object]], seconds: float = PATIENCE) -> None:
    """Ask until the answer is yes."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - a condition has no event to wait for
            await asyncio.sleep(0.01)


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Look until something is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Look until something is so, in a test that runs no event loop."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} seconds"
        time.sleep(0.05)
