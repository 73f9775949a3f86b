"""Work that stops when its client hangs up."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client hung up before its answer was whole."""


async def unless_gone(receive: Receive, work: Coroutine[object, object, Result]) -> Result:
    """Return the result of some work; cancel it and raise `ClientGone` when the client hangs up first.

    The body of the request must have been read. Nothing of the work is left when this returns.
    """
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
