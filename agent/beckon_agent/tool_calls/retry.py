"""Retries of a call until it is accepted."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import aiohttp

from beckon_agent.tool_calls.outcome import NEVER_CONNECTED, CallOutcome

MAX_TRIES = 4  # where no server answers at an address; a busy one is tried until the deadline
_PAUSE = 0.2


class NotAccepted(Exception):
    """The call was not accepted now, and nothing ran.

    `pause` is the wait before the next try in seconds, `detail` says why.
    """

    def __init__(self, pause: float, detail: str) -> None:
        super().__init__(detail)
        self.pause = pause
        self.detail = detail


async def retry_until_accepted(
    post: Callable[[float], Awaitable[CallOutcome]],
    wait: float,
    again: Callable[[aiohttp.ClientConnectionError], bool],
    *,
    tries: int = MAX_TRIES,
) -> CallOutcome:
    """Post until the call is accepted, within `wait` seconds.

    `post` receives the seconds left. `again` says whether a post may be repeated after such a connection
    error, `tries` is the number of connection errors at which it gives up. Raises the error of the last
    post, or the error after which the call may have had its effect, if there was one.
    """
    deadline = time.monotonic() + wait
    lost: list[aiohttp.ClientConnectionError] = []
    while True:
        try:
            return await post(deadline - time.monotonic())
        except NotAccepted as busy:
            pause = busy.pause
            if pause >= deadline - time.monotonic():
                # What was lost before may have had its effect, and must not be told as never called.
                raise next(filter(_is_doubtful, lost), busy) from None
        except aiohttp.ClientConnectionError as error:
            pause = _PAUSE * 2 ** len(lost)
            lost.append(error)
            in_time = pause < deadline - time.monotonic()
            if len(lost) == tries or not in_time or not again(error):
                raise _most_doubtful(lost) from None
        await asyncio.sleep(pause)


def _most_doubtful(errors: Sequence[aiohttp.ClientConnectionError]) -> aiohttp.ClientConnectionError:
    """Return the error after a possible effect of the call, if any.

    Else it is the last error of the tries.
    """
    return next(filter(_is_doubtful, errors), errors[-1])


def _is_doubtful(error: aiohttp.ClientConnectionError) -> bool:
    return not isinstance(error, NEVER_CONNECTED)


def retry_after(text: str) -> float:
    """Return the seconds to wait by a Retry-After header.

    Without a number in it, and at least, that is a short pause.
    """
    return max(float(text), _PAUSE) if text.isdecimal() else _PAUSE
