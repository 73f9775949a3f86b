"""Plain functions beside the event loop: a thread a call, as many as calls may run.

Not the loop's executor: that one has a handful of threads, so that calls would wait for each other,
and the process would wait at its end for a function that nobody can stop.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any


async def in_thread(function: Callable[..., object], arguments: Mapping[str, Any]) -> object:
    """Call a function in a thread, in the context of the caller; raise what it raises.

    Cancelled, it leaves the thread to itself.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[object] = loop.create_future()
    context = copy_context()

    def work() -> None:
        try:
            result = context.run(function, **arguments)
        except BaseException as error:
            tell(_fail, error)
        else:
            tell(_end, result)

    def tell(how: Callable[..., None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(how, ended, value)

    threading.Thread(target=work, name="tool", daemon=True).start()
    return await ended


def _end(ended: asyncio.Future[object], result: object) -> None:
    if not ended.done():
        ended.set_result(result)


def _fail(ended: asyncio.Future[object], error: BaseException) -> None:
    if ended.done():
        return
    if isinstance(error, StopIteration):  # a future cannot hold one
        error = RuntimeError(f"the function raised {error!r}")
    ended.set_exception(error)
